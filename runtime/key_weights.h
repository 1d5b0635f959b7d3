// How much each key may have of what all want: twice the weight, twice the rows of a launch and the pages of the line.
//
// Who runs a host sets them (HostOptions::key_weights); a key that is not named has kUsual. Only what is short is
// shared by weight: a key that is alone has everything.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "kernels/result.h"

namespace troupe {

class KeyWeights {
 public:
  static constexpr int kUsual = 1;
  static constexpr int kMost = 1000;

  KeyWeights() = default;
  // An Error names the first key whose weight is not 1 to kMost.
  static Result<KeyWeights> of(std::map<std::string, int> by_key) {
    for (const auto& [key, weight] : by_key) {
      if (weight >= 1 && weight <= kMost) continue;
      return Error{ErrorCode::bad_input, "a key's weight is " + std::to_string(weight) + "; it must be 1 to " +
                                             std::to_string(kMost) + " (key_weights)"};
    }
    KeyWeights weights;
    weights.by_key_ = std::move(by_key);
    return weights;
  }

  const std::map<std::string, int>& by_key() const { return by_key_; }
  double operator[](const std::string& key) const {
    const auto named = by_key_.find(key);
    return named == by_key_.end() ? kUsual : named->second;
  }

 private:
  std::map<std::string, int> by_key_;
};

}  // namespace troupe
