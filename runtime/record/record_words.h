// What a record holds, in words for people.
#pragma once

#include <string>

#include "runtime/record/record.h"

namespace troupe {

std::string words(const RecordedSlice& slice);
std::string words(const SliceOutcome& outcome);

}  // namespace troupe
