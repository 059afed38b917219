#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/json_fields.h"
#include "base/text.h"
#include "server/handlers.h"
#include "server/job_json.h"

namespace reprise::server {
namespace {

constexpr Duration kLongestWait = std::chrono::minutes(10);
constexpr Duration kShortestLease = std::chrono::milliseconds(100);
constexpr Duration kLongestLease = std::chrono::hours(24 * 7);

void read_lease(JsonFields& fields, std::optional<Duration>& lease) {
  if (!fields.read("lease", lease)) return;
  if (*lease < kShortestLease || *lease > kLongestLease) {
    fields.fail("lease", "must be between 100ms and 7d");
  }
}

void read_lane(JsonFields& fields, LaneChoice& lane) {
  std::string name;
  if (!fields.read("lane", name)) return;
  if (name == "any") {
    lane = LaneChoice::any;
  } else if (name == "fresh") {
    lane = LaneChoice::fresh;
  } else if (name == "retry") {
    lane = LaneChoice::retry;
  } else {
    fields.fail("lane", "must be any, fresh or retry");
  }
}

Status read_claim(ClaimCommand& command, const Json& json, const Limits& limits) {
  JsonFields fields(json);
  fields.read("max", command.max);
  if (command.max < 1 || command.max > limits.max_claim_jobs) {
    fields.fail("max", fmt::format("must be between 1 and {}", limits.max_claim_jobs));
  }
  fields.read("wait", command.wait);
  if (command.wait > kLongestWait) fields.fail("wait", "must be at most 10m");
  read_lease(fields, command.lease);
  read_lane(fields, command.lane);
  fields.read("worker", command.worker);
  if (command.worker.size() > kMaxWorkerNameBytes) {
    fields.fail("worker", fmt::format("must be at most {} bytes", kMaxWorkerNameBytes));
  }
  return fields.finish();
}

Result<LeaseToken> read_token(JsonFields& fields) {
  std::string text;
  if (!fields.read("token", text)) {
    fields.fail("token", "is missing", Errc::invalid_request);
    return Error{Errc::invalid_request, "no token"};
  }
  if (const auto token = decode_lease_token(text)) return *token;
  return Error{Errc::invalid_lease_token, "this text was never a lease token"};
}

// {"leases": […]}, each read by `read_item`, which takes the item's fields.
template <class Item, class ReadItem>
Result<std::vector<Item>> read_leases(Api& api, Request& request, ReadItem read_item) {
  REPRISE_TRY(request.query.finish());
  const auto json = request.json_body();
  if (!json) return json.error();
  JsonFields fields(*json);
  const Json* leases = fields.peek("leases");
  REPRISE_TRY(fields.finish());
  if (leases == nullptr || leases->array() == nullptr) {
    return Error{Errc::invalid_request, "leases: expected an array of {\"token\": …}"};
  }
  const std::uint64_t most = api.broker.limits().max_batch_jobs;
  if (leases->array()->size() > most) {
    return Error{Errc::batch_too_many_jobs, fmt::format("more than {} leases in one call", most)};
  }
  std::vector<Item> items;
  items.reserve(leases->array()->size());
  for (const Json& lease : *leases->array()) {
    JsonFields lease_fields(lease, fmt::format("leases[{}]", items.size()));
    items.push_back(read_item(lease_fields));
    REPRISE_TRY(lease_fields.finish());
  }
  return items;
}

AckItem read_ack(JsonFields& fields) { return {read_token(fields)}; }

void read_outcome(JsonFields& fields, AttemptOutcome& outcome) {
  std::string name;
  if (!fields.read("outcome", name)) return;
  if (name == outcome_name(AttemptOutcome::failed)) {
    outcome = AttemptOutcome::failed;
  } else if (name == outcome_name(AttemptOutcome::worker_lost)) {
    outcome = AttemptOutcome::worker_lost;
  } else {
    fields.fail("outcome", "must be failed or worker_lost");
  }
}

FailItem read_fail(JsonFields& fields, const Limits& limits) {
  FailItem item{.token = read_token(fields)};
  fields.read("error", item.error);
  fields.read("error_type", item.error_type);
  if (item.error_type.size() > kMaxErrorTypeBytes) {
    fields.fail("error_type", fmt::format("must be at most {} bytes", kMaxErrorTypeBytes));
  }
  read_outcome(fields, item.outcome);
  fields.read("delay", item.delay);
  fields.read("final", item.final);
  if (item.error.size() > limits.max_error_bytes) {
    item.token = Error{Errc::error_too_long,
                       fmt::format("the error is {} bytes; the limit is {}", item.error.size(),
                                   format_bytes(limits.max_error_bytes))};
    item.error.clear();
  }
  return item;
}

ReleaseItem read_release(JsonFields& fields) {
  ReleaseItem item{.token = read_token(fields)};
  fields.read("delay", item.delay);
  return item;
}

ExtendItem read_extend(JsonFields& fields) {
  ExtendItem item{.token = read_token(fields)};
  read_lease(fields, item.lease);
  return item;
}

}  // namespace

Status claim_jobs(Api& api, Request& request, const Exchange& exchange) {
  auto name = request.queue_name();
  if (!name) return name.error();
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(expect_stored(api, *name));
  const auto json = request.json_body();
  if (!json) return json.error();
  ClaimCommand command{.queue = std::move(*name)};
  REPRISE_TRY(read_claim(command, *json, api.broker.limits()));
  // The reply comes through the mailbox, so it cannot overtake waits_for().
  exchange.waits_for(
      api.broker.claim(std::move(command), exchange.then<ClaimReply>(claim_response)));
  return ok();
}

Status ack_leases(Api& api, Request& request, const Exchange& exchange) {
  auto items = read_leases<AckItem>(api, request, read_ack);
  if (!items) return items.error();
  api.broker.ack(std::move(*items), exchange.then<ItemResults<Acked>>(ack_response));
  return ok();
}

Status fail_leases(Api& api, Request& request, const Exchange& exchange) {
  const auto read_item = [&](JsonFields& fields) { return read_fail(fields, api.broker.limits()); };
  auto items = read_leases<FailItem>(api, request, read_item);
  if (!items) return items.error();
  api.broker.fail(std::move(*items), exchange.then<ItemResults<Failed>>(fail_response));
  return ok();
}

Status release_leases(Api& api, Request& request, const Exchange& exchange) {
  auto items = read_leases<ReleaseItem>(api, request, read_release);
  if (!items) return items.error();
  api.broker.release(std::move(*items), exchange.then<ItemResults<Released>>(release_response));
  return ok();
}

Status extend_leases(Api& api, Request& request, const Exchange& exchange) {
  auto items = read_leases<ExtendItem>(api, request, read_extend);
  if (!items) return items.error();
  api.broker.extend(std::move(*items), exchange.then<ItemResults<Extended>>(extend_response));
  return ok();
}

}  // namespace reprise::server
