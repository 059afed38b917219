#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/json_fields.h"
#include "base/json_writer.h"
#include "server/handlers.h"

namespace reprise::server {
namespace {

// Linux takes no longer path.
constexpr std::size_t kMaxPathBytes = 4095;

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

Response backup_response(const BackupReply& reply) {
  const std::chrono::duration<double> seconds = reply.took;
  JsonWriter out;
  out.begin_object().key("directory").value(reply.directory);
  out.key("bytes").value(reply.bytes);
  out.key("seconds").value(seconds.count()).end_object();
  return json_response(std::move(out));
}

// The text of a problem with a path, or nothing.
std::string path_problem(const std::string& path) {
  if (!path.starts_with('/')) return "must be an absolute path on the server's machine";
  if (path.size() > kMaxPathBytes) return fmt::format("must be at most {} bytes", kMaxPathBytes);
  // It goes to the log.
  if (std::ranges::any_of(path, is_control)) return "must not hold control characters";
  return {};
}

Result<std::string> read_directory(const Json& json) {
  JsonFields fields(json);
  std::string directory;
  const bool given = fields.read("directory", directory);
  if (given) {
    if (const auto problem = path_problem(directory); !problem.empty()) {
      fields.fail("directory", problem);
    }
  }
  REPRISE_TRY(fields.finish());
  if (!given) return Error{Errc::invalid_request, "directory: is missing"};
  return directory;
}

}  // namespace

Status make_backup(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(request.query.finish());
  const auto json = request.json_body();
  if (!json) return json.error();
  auto directory = read_directory(*json);
  if (!directory) return directory.error();
  api.broker.backup({.directory = std::move(*directory), .asked_by = std::move(request.caller)},
                    exchange.then<BackupReply>(backup_response));
  return ok();
}

}  // namespace reprise::server
