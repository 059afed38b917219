#include "daemon/logging.h"

#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <string_view>

#include "base/json_writer.h"
#include "base/time.h"

namespace reprise::daemon {
namespace {

// {"at":"2026-01-31T08:15:00.250Z","level":"info","message":"..."}
class JsonLines final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(message.level);
    JsonWriter json;
    json.begin_object();
    json.key("at").value(format_timestamp(std::chrono::floor<Duration>(message.time)));
    json.key("level").value(std::string_view(level.data(), level.size()));
    json.key("message").value(std::string_view(message.payload.data(), message.payload.size()));
    json.end_object();
    out.append(json.text());
    out.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonLines>();
  }
};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void set_up_logging(LogLevel level, LogFormat format) {
  auto logger = std::make_shared<spdlog::logger>("reprise",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (format == LogFormat::json) {
    logger->set_formatter(std::make_unique<JsonLines>());
  } else {
    logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %l: %v", spdlog::pattern_time_type::utc));
  }
  logger->set_level(spdlog_level(level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace reprise::daemon
