#include "cli/drain_report.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/exit_code.h"

namespace reprise::cli {

using spool::DrainEnd;
using spool::DrainResult;

std::string drain_text(const DrainResult& result) {
  return fmt::format(
      "accepted {}, duplicates {}, retried {}, dead-lettered {}, corrupt {}, remaining {}\n",
      result.accepted, result.duplicates, result.retried, result.dead_lettered, result.corrupt,
      result.remaining);
}

std::string drain_json(const DrainResult& result) {
  JsonWriter json;
  json.begin_object();
  json.key("accepted").value(result.accepted).key("retried").value(result.retried);
  json.key("deadLettered").value(result.dead_lettered).key("corrupt").value(result.corrupt);
  json.key("duplicates").value(result.duplicates).key("remaining").value(result.remaining);
  json.key("stoppedEarly").value(result.stopped_early());
  if (result.stopped_early()) json.key("stopReason").value(result.stop_reason);
  json.end_object();
  return json.take() + "\n";
}

std::string deaths_note(const DrainResult& result) {
  const std::uint64_t died = result.dead_lettered + result.corrupt;
  if (died == 0) return {};
  return fmt::format(
      "⚠ {} {} moved to dead-letter queue\n"
      "  Run `reprise spool inspect` to see details.\n"
      "  Run `reprise spool retry` to re-process them.",
      died, died == 1 ? "event" : "events");
}

std::optional<Problem> drain_problem(const DrainResult& result) {
  if (result.end == DrainEnd::interrupted) {
    return Problem{
        .code = "interrupted",
        .message = fmt::format("{}; {} left to be sent", result.stop_reason, result.remaining)};
  }
  if (result.stopped_early()) {
    return Problem{.code = "stopped_early", .message = result.stop_reason};
  }
  if (result.local_failures > 0) {
    return Problem{.code = "io",
                   .message = fmt::format("{} {} could not be dealt with; see the warnings",
                                          result.local_failures,
                                          result.local_failures == 1 ? "file" : "files")};
  }
  if (result.failed_batches > 0) {
    return Problem{
        .code = "batch_failed",
        .message = fmt::format("{} {} could not be sent; drain again later", result.failed_batches,
                               result.failed_batches == 1 ? "batch" : "batches")};
  }
  return std::nullopt;
}

int drain_exit_code(const DrainResult& result) {
  if (result.stopped_early()) return kExitMoreToSend;
  // What a person must look at comes before what time may heal.
  if (result.local_failures > 0) return kExitRefused;
  return result.failed_batches > 0 ? kExitMoreToSend : kExitOk;
}

}  // namespace reprise::cli
