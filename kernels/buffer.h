// Buffer: owned memory of one device. Move-only; given back by the function that its maker put in.
//
// Host buffers (allocate_host) are zeroed, aligned to 2 MiB and advised for huge pages from 2 MiB up: on a virtual
// machine 2 MiB pages are worth 1.2 to 1.5 times the read bandwidth of 4 KiB ones. Below that they are aligned to 64.
#pragma once

#include <cstddef>
#include <utility>

namespace troupe {

// Host buffers of this many bytes and more are mapped, and aligned to as many.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

class Buffer {
 public:
  using Release = void (*)(std::byte* data, std::size_t bytes);

  Buffer() = default;
  Buffer(std::byte* data, std::size_t bytes, Release release) : data_(data), bytes_(bytes), release_(release) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        release_(std::exchange(other.release_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) release_(data_, bytes_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_ = nullptr;
};

// Throws std::bad_alloc when the system has no such memory.
Buffer allocate_host(std::size_t bytes);

}  // namespace troupe
