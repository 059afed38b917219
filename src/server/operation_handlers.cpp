#include <charconv>
#include <utility>

#include "base/text.h"
#include "model/limits.h"
#include "server/handlers.h"
#include "server/operation_json.h"

namespace reprise::server {
namespace {

constexpr std::uint64_t kMaxAuditRecords = 1000;

// The operation a request names, for a route that takes nothing else.
Result<OperationId> operation_id(Request& request) {
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  OperationId id = 0;
  const std::string& text = request.id;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (problem != std::errc() || end != text.data() + text.size()) {
    return Error{Errc::operation_not_found,
                 "no operation '" + std::string(cut_at_character(text, 32)) + "'"};
  }
  return id;
}

Response operation_response(const Operation& operation) {
  JsonWriter out;
  write_operation(out, operation);
  return json_response(std::move(out));
}

}  // namespace

Status list_operations(Api& api, Request& request, const Exchange& exchange) {
  std::optional<OperationState> state;
  if (const auto name = request.query.take("state")) {
    state = operation_state_from_name(*name);
    if (!state) request.query.fail("state", "must be running, done, cancelled or failed");
  }
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  api.broker.list_operations(
      exchange.then<std::vector<Operation>>([state](const std::vector<Operation>& operations) {
        JsonWriter out;
        out.begin_object().key("operations").begin_array();
        for (const Operation& operation : operations) {
          if (!state || operation.state == *state) write_operation(out, operation);
        }
        out.end_array().end_object();
        return json_response(std::move(out));
      }));
  return ok();
}

Status show_operation(Api& api, Request& request, const Exchange& exchange) {
  const auto id = operation_id(request);
  if (!id) return id.error();
  api.broker.show_operation(*id, exchange.then<Operation>(operation_response));
  return ok();
}

Status cancel_operation(Api& api, Request& request, const Exchange& exchange) {
  const auto id = operation_id(request);
  if (!id) return id.error();
  api.broker.cancel_operation(*id, request.caller, exchange.then<Operation>(operation_response));
  return ok();
}

Status list_audit(Api& api, Request& request, const Exchange& exchange) {
  Query& query = request.query;
  AuditQuery audit{.ns = query.take("namespace").value_or(""),
                   .queue = query.take("queue").value_or("")};
  for (const auto& [what, name] : {std::pair("namespace", &audit.ns), {"queue", &audit.queue}}) {
    if (!name->empty()) REPRISE_TRY(check_name(what, *name));
  }
  if (const auto name = query.take("action")) {
    audit.action = audit_action_from_name(*name);
    if (!audit.action) query.fail("action", "must be retry, purge, drop, delete or cancel");
  }
  if (const auto limit = query.take_number("limit", 1, kMaxAuditRecords)) {
    audit.limit = static_cast<std::uint32_t>(*limit);
  }
  audit.before = query.take_number("before", 1, ~std::uint64_t{0});
  REPRISE_TRY(query.finish());
  REPRISE_TRY(request.expect_no_fields());
  api.broker.audit(std::move(audit), exchange.then<AuditPage>(audit_response));
  return ok();
}

}  // namespace reprise::server
