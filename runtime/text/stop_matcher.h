// StopMatcher: finds stop strings in a stream of bytes, and holds back what could still become one.
//
//     StopMatcher stops({"\nUser:", "###"});
//     send(stops.push(bytes));
//     if (stops.match()) ...      // the stream ends at that byte; else, at its end: send(stops.flush());
//
// However the stream is cut, the same bytes come out and the same match is found: the one that ends first, and of those
// the longest. No byte of a stop string comes out, and none before it is lost. Each byte costs one step a stop string
// (Knuth, Morris and Pratt 1977), however long they are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class StopMatcher {
 public:
  // Empty stop strings are ignored: they would match before the first byte.
  explicit StopMatcher(const std::vector<std::string>& stops);

  // Bytes that are certainly before any stop string. Nothing may be pushed after a match.
  std::string push(std::string_view bytes);
  // The end of the stream: what was held.
  std::string flush();
  // Offset in the whole stream at which the matched stop string begins.
  std::optional<std::size_t> match() const { return match_; }

 private:
  struct Stop {
    explicit Stop(std::string stop);
    void advance(char c);
    bool complete() const { return matched == text.size(); }

    std::string text;
    std::vector<std::size_t> border;  // border[i]: longest proper end of text[0, i) that also begins it
    std::size_t matched = 0;          // longest end of the stream that begins `text`
  };

  std::vector<Stop> stops_;
  std::string held_;
  std::size_t released_ = 0;  // bytes that came out so far
  std::optional<std::size_t> match_;
};

}  // namespace troupe
