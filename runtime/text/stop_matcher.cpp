#include "runtime/text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "kernels/check.h"

namespace troupe {

StopMatcher::Stop::Stop(std::string stop) : text(std::move(stop)), border(text.size() + 1, 0) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    advance(text[i]);
    border[i + 1] = matched;
  }
  matched = 0;
}

void StopMatcher::Stop::advance(char c) {
  while (matched > 0 && text[matched] != c) matched = border[matched];
  if (text[matched] == c) ++matched;
}

StopMatcher::StopMatcher(const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) {
    if (!stop.empty()) stops_.emplace_back(stop);
  }
}

std::string StopMatcher::push(std::string_view bytes) {
  TROUPE_CHECK(!match_);
  std::size_t at = held_.size();
  std::string out = std::exchange(held_, {});
  out += bytes;
  std::size_t undecided = at;
  for (; at < out.size() && !match_; ++at) {
    std::size_t complete = 0;
    undecided = 0;
    for (Stop& stop : stops_) {
      stop.advance(out[at]);
      undecided = std::max(undecided, stop.matched);
      if (stop.complete()) complete = std::max(complete, stop.matched);
    }
    if (complete > 0) match_ = released_ + at + 1 - complete;
  }
  const std::size_t free = match_ ? *match_ - released_ : out.size() - undecided;
  if (!match_) held_ = out.substr(free);
  out.resize(free);
  released_ += free;
  return out;
}

std::string StopMatcher::flush() {
  released_ += held_.size();
  return std::exchange(held_, {});
}

}  // namespace troupe
