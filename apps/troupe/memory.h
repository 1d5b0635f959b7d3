// How much memory the program holds, in megabytes of 10^6 bytes.
#pragma once

namespace troupe::app {

double resident_megabytes();       // now; 0 where /proc does not tell
double peak_resident_megabytes();  // the most since the start

}  // namespace troupe::app
