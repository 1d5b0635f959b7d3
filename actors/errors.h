// Error (kernels/result.h) to and from caf::error: the code is the category's number, the sentence its message.
#pragma once

#include <caf/all.hpp>
#include <exception>

#include "actors/messages.h"

namespace troupe {

caf::error to_caf(const Error& error);
// CAF's own errors (a time-out, a receiver that is gone) get our nearest code and a sentence.
Error from_caf(const caf::error& error);
// What an actor threw: engine_failed, with its words.
Error from_exception(const std::exception_ptr& thrown);

}  // namespace troupe
