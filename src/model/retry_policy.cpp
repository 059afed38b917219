#include "model/retry_policy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/duration.h"
#include "base/json_fields.h"

namespace reprise {
namespace {

constexpr std::string_view kUnlimited = "unlimited";

bool is_given(const Json* value) { return value != nullptr && !value->is_null(); }

// A count, or "unlimited". `given` is not null.
std::optional<std::uint32_t> read_limit(JsonFields& fields, std::string_view name,
                                        const Json& given) {
  if (given.string() != nullptr) {
    if (*given.string() == kUnlimited) return std::nullopt;
    fields.fail(name, "must be a whole number or \"unlimited\"", Errc::invalid_request);
    return 0;
  }
  std::uint32_t limit = 0;
  fields.read(name, limit);
  return limit;
}

void read_attempts(JsonFields& fields, RetryPolicy& policy) {
  const Json* attempts = fields.peek("attempts");
  const Json* retries = fields.peek("max_retries");
  if (is_given(attempts) && is_given(retries)) {
    fields.fail("max_retries",
                "cannot stand beside retry.attempts (max_retries = n is attempts = n + 1)");
    return;
  }
  if (is_given(attempts)) {
    policy.attempts = read_limit(fields, "attempts", *attempts);
    policy.told_as_retries = false;
  } else if (is_given(retries)) {
    const auto limit = read_limit(fields, "max_retries", *retries);
    if (limit == std::numeric_limits<std::uint32_t>::max()) {
      fields.fail("max_retries", "must be less than 4294967295 (or \"unlimited\")");
      return;
    }
    policy.attempts = limit ? std::optional(*limit + 1) : std::nullopt;
    // No wait at all is what nobody asked for: retries come with a backoff unless told otherwise.
    if (!policy.told_as_retries && policy.wait == RetryPolicy{}.wait) policy.wait = Backoff{};
    policy.told_as_retries = true;
  } else if (attempts != nullptr || retries != nullptr) {
    policy.attempts = RetryPolicy{}.attempts;
    policy.told_as_retries = false;
  }
}

Status apply_backoff_json(Backoff& backoff, const Json& json) {
  JsonFields fields(json, "retry.backoff");
  const Backoff defaults;
  fields.read_or_default("base", backoff.base, defaults.base);
  fields.read_or_default("factor", backoff.factor, defaults.factor);
  fields.read_or_default("max", backoff.max, defaults.max);
  fields.read_or_default("jitter", backoff.jitter, defaults.jitter);
  if (!(backoff.factor >= 1) || !std::isfinite(backoff.factor)) {
    fields.fail("factor", "must be 1 or more");
  }
  if (!(backoff.jitter >= 0 && backoff.jitter <= 1)) {
    fields.fail("jitter", "must be between 0 and 1");
  }
  if (backoff.base > backoff.max) {
    fields.fail("base", "must not be more than max, which is " + format_duration(backoff.max));
  }
  return fields.finish();
}

Status read_wait(JsonFields& fields, RetryPolicy& policy) {
  const Json* cooldown = fields.peek("cooldown");
  const Json* backoff = fields.peek("backoff");
  if (is_given(cooldown) && is_given(backoff)) {
    fields.fail("backoff", "cannot stand beside retry.cooldown: choose one");
  } else if (is_given(cooldown)) {
    Duration wait{};
    fields.read("cooldown", wait);
    policy.wait = wait;
  } else if (is_given(backoff)) {
    const auto* current = std::get_if<Backoff>(&policy.wait);
    Backoff edited = current != nullptr ? *current : Backoff{};
    REPRISE_TRY(apply_backoff_json(edited, *backoff));
    policy.wait = edited;
  } else if (cooldown != nullptr || backoff != nullptr) {
    policy.wait = policy.told_as_retries ? decltype(policy.wait)(Backoff{}) : RetryPolicy{}.wait;
  }
  return ok();
}

}  // namespace

Duration nominal_wait(const RetryPolicy& policy, std::uint32_t failures) {
  if (const auto* cooldown = std::get_if<Duration>(&policy.wait)) return *cooldown;
  const auto& backoff = std::get<Backoff>(policy.wait);
  const double steps = static_cast<double>(failures) - 1;
  const double wait = static_cast<double>(backoff.base.count()) * std::pow(backoff.factor, steps);
  // Also when it is too large for anything: an overflow of pow() is infinity.
  if (!(wait < static_cast<double>(backoff.max.count()))) return backoff.max;
  return Duration(std::llround(wait));
}

double jitter_of(const RetryPolicy& policy) {
  const auto* backoff = std::get_if<Backoff>(&policy.wait);
  return backoff != nullptr ? backoff->jitter : 0;
}

Duration apply_jitter(Duration wait, double jitter, double luck) {
  const double scaled = static_cast<double>(wait.count()) * (1 + jitter * (2 * luck - 1));
  constexpr auto kLongest = static_cast<double>(Duration::max().count());
  if (!(scaled < kLongest)) return Duration::max();
  return Duration(std::llround(std::max(scaled, 0.0)));
}

Status apply_retry_json(RetryPolicy& policy, const Json& json) {
  if (json.is_null()) {
    policy = {};
    return ok();
  }
  RetryPolicy edited = policy;
  JsonFields fields(json, "retry");
  read_attempts(fields, edited);
  const Status wait = read_wait(fields, edited);
  REPRISE_TRY(fields.finish());
  REPRISE_TRY(wait);
  policy = edited;
  return ok();
}

void write_retry_json(JsonWriter& out, const RetryPolicy& policy) {
  out.begin_object();
  out.key(policy.told_as_retries ? "max_retries" : "attempts");
  if (!policy.attempts) {
    out.value(kUnlimited);
  } else {
    out.value(*policy.attempts - (policy.told_as_retries ? 1 : 0));
  }
  if (const auto* cooldown = std::get_if<Duration>(&policy.wait)) {
    out.key("cooldown").value(format_duration(*cooldown));
  } else {
    const auto& backoff = std::get<Backoff>(policy.wait);
    out.key("backoff").begin_object();
    out.key("base").value(format_duration(backoff.base));
    out.key("factor").value(backoff.factor);
    out.key("max").value(format_duration(backoff.max));
    out.key("jitter").value(backoff.jitter);
    out.end_object();
  }
  out.end_object();
}

}  // namespace reprise
