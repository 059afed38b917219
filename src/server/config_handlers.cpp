// Runtime values that hooks look up.
#include <utility>

#include "base/json_fields.h"
#include "model/job_fields_json.h"
#include "model/limits.h"
#include "server/handlers.h"

namespace reprise::server {
namespace {

struct ConfigName {
  std::string ns;
  std::string key;
};

Result<ConfigName> config_name(Request& request) {
  auto ns = request.only_namespace();
  if (!ns) return ns.error();
  REPRISE_TRY(check_name("config key", request.id));
  return ConfigName{std::move(*ns), request.id};
}

void write_entry(JsonWriter& out, const ConfigEntry& entry) {
  out.begin_object();
  out.key("key").value(entry.key).key("value").value(entry.value);
  out.key("namespace").value(entry.ns);
  write_time(out, "updated_at", entry.updated_at);
  out.end_object();
}

Response entry_response(const ConfigEntry& entry) {
  JsonWriter out;
  write_entry(out, entry);
  return json_response(std::move(out));
}

Response list_response(const std::vector<ConfigEntry>& entries) {
  JsonWriter out;
  out.begin_object().key("config").begin_array();
  for (const ConfigEntry& entry : entries) write_entry(out, entry);
  out.end_array().end_object();
  return json_response(std::move(out));
}

Response deleted_response(const ConfigEntry& entry) {
  JsonWriter out;
  out.begin_object().key("key").value(entry.key).key("namespace").value(entry.ns);
  out.key("deleted").value(true).end_object();
  return json_response(std::move(out));
}

}  // namespace

Status list_config(Api& api, Request& request, const Exchange& exchange) {
  auto ns = request.only_namespace();
  if (!ns) return ns.error();
  REPRISE_TRY(request.expect_no_fields());
  api.broker.list_config(std::move(*ns), exchange.then<std::vector<ConfigEntry>>(list_response));
  return ok();
}

Status show_config(Api& api, Request& request, const Exchange& exchange) {
  auto name = config_name(request);
  if (!name) return name.error();
  REPRISE_TRY(request.expect_no_fields());
  api.broker.show_config(std::move(name->ns), std::move(name->key),
                         exchange.then<ConfigEntry>(entry_response));
  return ok();
}

Status set_config(Api& api, Request& request, const Exchange& exchange) {
  auto name = config_name(request);
  if (!name) return name.error();
  const auto json = request.json_body();
  if (!json) return json.error();
  ConfigEntry entry{.ns = std::move(name->ns), .key = std::move(name->key), .value = {}};
  JsonFields fields(*json);
  const bool has_value = fields.read("value", entry.value);
  if (entry.value.find('\0') != std::string::npos) fields.fail("value", "must not hold a NUL");
  REPRISE_TRY(fields.finish());
  if (!has_value) return Error{Errc::invalid_request, "value: is missing: a string"};
  api.broker.set_config(std::move(entry), exchange.then<ConfigEntry>(entry_response));
  return ok();
}

Status unset_config(Api& api, Request& request, const Exchange& exchange) {
  auto name = config_name(request);
  if (!name) return name.error();
  REPRISE_TRY(request.expect_no_fields());
  api.broker.unset_config(std::move(name->ns), std::move(name->key),
                          exchange.then<ConfigEntry>(deleted_response));
  return ok();
}

}  // namespace reprise::server
