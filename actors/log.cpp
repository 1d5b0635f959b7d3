#include "actors/log.h"

#include <memory>
#include <mutex>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace troupe {
namespace {

std::shared_ptr<spdlog::logger> logger() {
  static std::mutex mutex;  // two hosts may log for the first time at once
  const std::lock_guard lock(mutex);
  if (auto registered = spdlog::get("troupe")) return registered;
  return spdlog::stderr_color_mt("troupe");
}

}  // namespace

void log_warning(const std::string& text) {
  logger()->warn("{}", text);
}
void log_error(const std::string& text) {
  logger()->error("{}", text);
}

}  // namespace troupe
