#include "server/scheduling_json.h"

#include <cmath>

#include "model/job_fields_json.h"

namespace reprise::server {
namespace {

// To three decimals: enough to read, and no 0.6666666666666666.
double rounded(double number) { return std::round(number * 1000) / 1000; }

// What one key and the sum of many have in common.
void write_deliveries(JsonWriter& out, const KeyStats& key) {
  out.key("delivered").value(key.delivered).key("share").value(rounded(key.share));
}

void write_key(JsonWriter& out, const KeyStats& key) {
  out.begin_object().key("key").value(key.key);
  out.key("pending").value(key.pending).key("active").value(key.active);
  out.key("weight");
  key.weight == 0 ? out.null() : out.value(key.weight);
  write_deliveries(out, key);
  out.end_object();
}

void write_throttle(JsonWriter& out, const ThrottleStats& stats) {
  const Throttle& throttle = stats.throttle;
  out.begin_object().key("key").value(throttle.key).key("namespace").value(throttle.ns);
  out.key("rate").value(format_rate(throttle.rate)).key("burst").value(throttle.burst);
  out.key("tokens").value(rounded(stats.tokens)).key("waiting").value(stats.waiting);
  write_time(out, "updated_at", throttle.updated_at);
  out.end_object();
}

}  // namespace

void write_breaker(JsonWriter& out, const QueueStats& stats) {
  out.key("breaker");
  if (!stats.breaker) {
    out.null();
    return;
  }
  const OutageStats& breaker = *stats.breaker;
  const bool is_open = breaker.state == BreakerState::open;
  out.begin_object();
  out.key("state").value(breaker_state_name(breaker.state));
  write_time_or_null(out, "open_until", breaker.open_until, is_open);
  out.key("opened").value(breaker.opened).key("spared").value(breaker.spared);
  out.key("failure_rate").value(rounded(breaker.failure_rate));
  out.key("ended").value(breaker.ended).key("canaries_out").value(breaker.canaries_out);
  out.end_object();
}

void write_keys(JsonWriter& out, const KeysStats& keys) {
  out.key("keys").begin_object();
  out.key("active").value(keys.active);
  out.key("top").begin_array();
  for (const KeyStats& key : keys.top) write_key(out, key);
  out.end_array();
  out.key("other").begin_object();
  out.key("pending").value(keys.other.pending).key("active").value(keys.other.active);
  write_deliveries(out, keys.other);
  out.end_object().end_object();
}

Response throttle_response(const ThrottleStats& stats) {
  JsonWriter out;
  write_throttle(out, stats);
  return json_response(std::move(out));
}

Response throttles_response(const std::vector<ThrottleStats>& throttles) {
  JsonWriter out;
  out.begin_object().key("throttles").begin_array();
  for (const ThrottleStats& stats : throttles) write_throttle(out, stats);
  out.end_array().end_object();
  return json_response(std::move(out));
}

Response throttle_deleted_response(const ThrottleStats& last) {
  JsonWriter out;
  out.begin_object().key("key").value(last.throttle.key);
  out.key("namespace").value(last.throttle.ns).key("deleted").value(true).end_object();
  return json_response(std::move(out));
}

}  // namespace reprise::server
