// Result<T>: a value, or an Error that says in a sentence what went wrong.
//
// The first of the house's three kinds of wrong: what a user, a file or a peer can cause is a Result. What only our own
// code can cause is an assert (TROUPE_CHECK in kernels/check.h); a broken device is an exception (kernels/fault.h).
// A Result must be looked at; taking the value of a failed one is a bug in the caller and throws std::logic_error.
//
//     Result<Gguf> file = Gguf::open(path);
//     if (!file) return file.error();
//     use(*file);
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace troupe {

// 0 is no code: CAF takes it for "no error".
enum class ErrorCode : std::uint8_t {
  bad_input = 1,   // malformed data or arguments: the message names what, where and what to do next
  not_found,       // no such file, session, tensor or name
  io,              // the operating system refused a read or a write
  unsupported,     // well-formed, but something this build does not do
  context_length,  // the prompt (and limit) does not fit the context: the message has both numbers
  out_of_memory,   // page pool or host memory cannot hold it: the message has both numbers
  overloaded,      // the waiting line is full: try again later
  busy,            // the session has too many turns waiting
  cancelled,       // stopped by its owner
  timed_out,       // a deadline passed
  shutting_down,   // the host is draining
  step_failed,     // one step of this session failed; the session stands at its last committed token
  engine_failed,   // the engine or the device failed and was not restarted
};

// The stable, lower-case name of a code ("bad_input"), for logs and wire formats.
constexpr const char* name(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_input:
      return "bad_input";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::io:
      return "io";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::context_length:
      return "context_length";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::overloaded:
      return "overloaded";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::timed_out:
      return "timed_out";
    case ErrorCode::shutting_down:
      return "shutting_down";
    case ErrorCode::step_failed:
      return "step_failed";
    case ErrorCode::engine_failed:
      return "engine_failed";
  }
  return "unknown";
}

struct Error {
  ErrorCode code = ErrorCode::bad_input;
  std::string message;                  // one sentence for a person; no trailing newline
  std::chrono::seconds retry_after{0};  // of `overloaded`: when there may be room, as far as is known; 0: not said
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    if (ok()) throw std::logic_error("Result::error() of a success");
    return std::get<1>(state_);
  }

 private:
  T& value() {
    if (!ok()) throw std::logic_error("Result has no value: " + std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  const T& value() const { return const_cast<Result*>(this)->value(); }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    if (ok()) throw std::logic_error("Result::error() of a success");
    return error_;
  }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace troupe
