#include <fmt/format.h>

#include "base/json.h"
#include "base/json_fields.h"
#include "model/limits.h"
#include "server/handlers.h"

namespace reprise::server {
namespace {

constexpr std::string_view kAllNamespaces = "*";
constexpr std::size_t kMaxPathBytes = 4096;  // no file system takes longer ones

}  // namespace

Result<QueueName> Request::queue_name() {
  QueueName name;
  if (auto ns = query.take("namespace")) name.ns = std::move(*ns);
  name.name = std::move(queue);
  REPRISE_TRY(check_name("queue", name.name));
  REPRISE_TRY(check_name("namespace", name.ns));
  return name;
}

Result<std::string> Request::namespace_or_all() {
  std::string ns = query.take("namespace").value_or(std::string(kDefaultNamespace));
  if (ns == kAllNamespaces) return std::string();
  REPRISE_TRY(check_name("namespace", ns));
  return ns;
}

Result<std::string> Request::only_namespace() {
  std::string ns = query.take("namespace").value_or(std::string(kDefaultNamespace));
  REPRISE_TRY(check_name("namespace", ns));
  REPRISE_TRY(query.finish());
  return ns;
}

Result<Json> Request::json_body() const {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return Json(Json::Object{});
  return Json::parse(body);
}

Status Request::expect_no_fields() const {
  if (body.empty()) return ok();
  const auto json = json_body();
  if (!json) return json.error();
  return JsonFields(*json).finish();
}

Status check_project_root(const Api& api, const Request& request) {
  if (api.workers == nullptr || !request.head.project_root) return ok();
  const auto root = percent_decode(*request.head.project_root, false);
  const auto ns = request.query.peek("namespace");
  if (!root || !ns || *ns == kAllNamespaces) return ok();
  return api.workers->check_root(*ns, *root);
}

Status expect_workers(const Api& api) {
  if (api.workers != nullptr) return ok();
  return Error{Errc::workers_disabled, "this server was started with workers = false"};
}

Status expect_stored(const Api& api, const QueueName& queue) {
  if (api.workers == nullptr || !api.workers->is_external(queue)) return ok();
  return Error{Errc::external_queue,
               fmt::format("queue '{0}' is external: its items come from the list command of its "
                           "runbook, which is where it is configured too; POST "
                           "/v1/queues/{0}/refresh lists it now",
                           queue.name)};
}

bool read_root(JsonFields& fields, std::string& root) {
  if (!fields.read("root", root)) return false;
  if (!root.starts_with('/')) {
    fields.fail("root", "must be an absolute path on the server's machine");
  } else if (root.find('\0') != std::string::npos || root.size() > kMaxPathBytes) {
    fields.fail("root", "is not the path of a directory");
  }
  return true;
}

}  // namespace reprise::server
