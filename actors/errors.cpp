#include "actors/errors.h"

namespace troupe {
namespace {

ErrorCode code_of(const caf::error& error) {
  if (error.category() == caf::type_id_v<ErrorCode>) return static_cast<ErrorCode>(error.code());
  if (error == caf::sec::request_timeout) return ErrorCode::timed_out;
  if (error == caf::sec::request_receiver_down || error == caf::sec::broken_promise) return ErrorCode::engine_failed;
  if (error.category() == caf::type_id_v<caf::exit_reason>) return ErrorCode::shutting_down;
  return ErrorCode::engine_failed;
}

std::string message_of(const caf::error& error) {
  if (auto text = caf::make_const_typed_message_view<std::string>(error.context())) return caf::get<0>(text);
  return "the actor that should have answered is gone (" + caf::to_string(error) + ")";
}

}  // namespace

caf::error to_caf(const Error& error) {
  if (const std::int64_t retry = error.retry_after.count(); retry > 0) {
    return caf::make_error(error.code, error.message, retry);
  }
  return caf::make_error(error.code, error.message);
}

Error from_caf(const caf::error& error) {
  if (auto both = caf::make_const_typed_message_view<std::string, std::int64_t>(error.context())) {
    return {code_of(error), caf::get<0>(both), std::chrono::seconds(caf::get<1>(both))};
  }
  return {code_of(error), message_of(error)};
}

Error from_exception(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& fault) {
    return {ErrorCode::engine_failed, fault.what()};
  } catch (...) {
    return {ErrorCode::engine_failed, "something was thrown that is no std::exception"};
  }
}

}  // namespace troupe
