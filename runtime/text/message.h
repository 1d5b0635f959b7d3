// One message of a chat, as the C++ API gives it.
#pragma once

#include <string>

namespace troupe {

struct Message {
  std::string role;
  std::string content;

  bool operator==(const Message&) const = default;
};

}  // namespace troupe
