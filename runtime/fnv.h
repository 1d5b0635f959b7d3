// FNV-1a, 64 bits, over bytes that come in parts. (Fowler, Noll, Vo; draft-eastlake-fnv.)
// Every step is a bijection of the state, so two inputs that differ in one byte never have the same value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace troupe {

class Fnv64 {
 public:
  void add(std::span<const std::byte> bytes) {
    for (std::byte byte : bytes) value_ = (value_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace troupe
