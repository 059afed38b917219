#include <fmt/format.h>

#include "base/json.h"
#include "base/json_fields.h"
#include "model/limits.h"
#include "server/handlers.h"

namespace reprise::server {

Result<QueueName> Request::queue_name() {
  QueueName name;
  if (auto ns = query.take("namespace")) name.ns = std::move(*ns);
  name.name = std::move(queue);
  REPRISE_TRY(check_name("queue", name.name));
  REPRISE_TRY(check_name("namespace", name.ns));
  return name;
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

}  // namespace reprise::server
