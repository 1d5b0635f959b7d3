// caught(work): the work's own Result, or, when it threw, an Error: for a program that must outlive a fault of one of
// its commands.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "kernels/result.h"

namespace troupe::app {

template <class Work>
Result<void> caught(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "there is not enough memory for this"};
  } catch (const std::exception& fault) {
    return Error{ErrorCode::engine_failed, std::string("a fault of its own: ") + fault.what()};
  }
}

}  // namespace troupe::app
