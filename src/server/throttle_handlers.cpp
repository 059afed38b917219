// Throttles: what jobs that name a key may be started with.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_fields.h"
#include "model/limits.h"
#include "model/throttle.h"
#include "server/handlers.h"
#include "server/scheduling_json.h"

namespace reprise::server {
namespace {

struct ThrottleName {
  std::string ns;
  std::string key;
};

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

// As jobs may name it, and fit to be written into a terminal.
Status check_key(const std::string& key) {
  std::string problem = scheduling_key_problem(key);
  if (problem.empty() && std::ranges::any_of(key, is_control)) {
    problem = "must not hold control characters";
  }
  if (!problem.empty()) return Error{Errc::invalid_field, "throttle key: " + problem};
  return ok();
}

Result<ThrottleName> throttle_name(Request& request) {
  auto ns = request.only_namespace();
  if (!ns) return ns.error();
  REPRISE_TRY(check_key(request.id));
  return ThrottleName{std::move(*ns), request.id};
}

// The fields of a body; without a burst it has the one that fits its rate.
Result<Throttle> read_throttle(const Json& json) {
  Throttle throttle;
  JsonFields fields(json);
  std::string text;
  const bool has_rate = fields.read("rate", text);
  if (has_rate) {
    if (const auto rate = parse_rate(text)) {
      throttle.rate = *rate;
    } else {
      fields.fail("rate", rate.error().detail);
    }
  }
  std::optional<std::uint64_t> burst;
  fields.read("burst", burst);
  if (burst && (*burst < 1 || *burst > kMaxBurst)) {
    fields.fail("burst", fmt::format("must be between 1 and {}", kMaxBurst));
  }
  REPRISE_TRY(fields.finish());
  if (!has_rate) return Error{Errc::invalid_request, "rate: is missing: one like \"100/s\""};
  throttle.burst = burst ? static_cast<std::uint32_t>(*burst) : default_burst(throttle.rate);
  return throttle;
}

}  // namespace

Status list_throttles(Api& api, Request& request, const Exchange& exchange) {
  auto ns = request.only_namespace();
  if (!ns) return ns.error();
  REPRISE_TRY(request.expect_no_fields());
  api.broker.list_throttles(std::move(*ns),
                            exchange.then<std::vector<ThrottleStats>>(throttles_response));
  return ok();
}

Status show_throttle(Api& api, Request& request, const Exchange& exchange) {
  auto name = throttle_name(request);
  if (!name) return name.error();
  REPRISE_TRY(request.expect_no_fields());
  api.broker.show_throttle(std::move(name->ns), std::move(name->key),
                           exchange.then<ThrottleStats>(throttle_response));
  return ok();
}

Status set_throttle(Api& api, Request& request, const Exchange& exchange) {
  auto name = throttle_name(request);
  if (!name) return name.error();
  const auto json = request.json_body();
  if (!json) return json.error();
  auto throttle = read_throttle(*json);
  if (!throttle) return throttle.error();
  throttle->ns = std::move(name->ns);
  throttle->key = std::move(name->key);
  api.broker.set_throttle(std::move(*throttle), exchange.then<ThrottleStats>(throttle_response));
  return ok();
}

Status unset_throttle(Api& api, Request& request, const Exchange& exchange) {
  auto name = throttle_name(request);
  if (!name) return name.error();
  REPRISE_TRY(request.expect_no_fields());
  api.broker.unset_throttle(std::move(name->ns), std::move(name->key),
                            exchange.then<ThrottleStats>(throttle_deleted_response));
  return ok();
}

}  // namespace reprise::server
