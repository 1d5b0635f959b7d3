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
  auto made = spdlog::stderr_color_mt("troupe");
  made->set_level(spdlog::level::warn);
  return made;
}

}  // namespace

void log_info(const std::string& text) {
  logger()->info("{}", text);
}
void log_warning(const std::string& text) {
  logger()->warn("{}", text);
}
void log_error(const std::string& text) {
  logger()->error("{}", text);
}

}  // namespace troupe
