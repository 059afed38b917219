#include "model/queue_config_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Status apply_text(QueueConfig& config, std::string_view text) {
  const auto json = Json::parse(text);
  if (!json) return json.error();
  return apply_config_json(config, *json, text);
}

// A config in which nothing has its default, so that a field which is lost or swapped shows.
QueueConfig all_set() {
  return {
      .lease = 45s,
      .ttl = 2h,
      .retry = {.attempts = 7, .wait = 90s},
      .fetch = {.retry_share_ppm = 300'000, .retry_in_flight = 17},
      .concurrency = 50,
      .concurrency_per_key = 5,
      .breaker =
          OutagePolicy{
              .failure_rate_ppm = 900'000, .window = 5min, .min = 7, .pause = 10s, .canaries = 3},
      .max_jobs = 1000,
      .max_bytes = 5'000'000,
      .key_window = 7min,
      .dead_letter_queue = "graves",
      .keep_dead = 720h,
      .max_dead = 31,
      .keep_completed = 3h,
      .on_dead_webhook = "http://hooks.example/dead",
      .vars = {"id", "customer"},
      .defaults = R"({"customer":"unknown","rate":1.0})"};
}

struct Good {
  std::string_view json;
  void (*edit)(QueueConfig&);
};

class GoodConfigField : public testing::TestWithParam<Good> {};

// Over the defaults it is what PUT does, over a full config what PATCH does.
TEST_P(GoodConfigField, ChangesThatFieldAndNoOther) {
  for (QueueConfig config : {QueueConfig{}, all_set()}) {
    QueueConfig expected = config;
    GetParam().edit(expected);
    const Status applied = apply_text(config, GetParam().json);
    ASSERT_TRUE(applied) << applied.error().detail;
    EXPECT_EQ(config, expected) << GetParam().json;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Values, GoodConfigField,
    testing::Values(
        Good{R"({})", [](QueueConfig&) {}},
        Good{R"({"lease": "2m"})", [](QueueConfig& c) { c.lease = 2min; }},
        Good{R"({"lease": 1.5})", [](QueueConfig& c) { c.lease = 1500ms; }},
        Good{R"({"lease": "100ms"})", [](QueueConfig& c) { c.lease = 100ms; }},
        Good{R"({"lease": "7d"})", [](QueueConfig& c) { c.lease = 168h; }},
        Good{R"({"ttl": "1h"})", [](QueueConfig& c) { c.ttl = 1h; }},
        Good{R"({"ttl": 1})", [](QueueConfig& c) { c.ttl = 1s; }},
        Good{R"({"retry": {}})", [](QueueConfig&) {}},
        Good{R"({"retry": {"attempts": 0}})", [](QueueConfig& c) { c.retry.attempts = 0; }},
        Good{R"({"retry": {"attempts": 4294967295}})",
             [](QueueConfig& c) { c.retry.attempts = std::numeric_limits<std::uint32_t>::max(); }},
        Good{R"({"retry": {"cooldown": "30s"}})",
             [](QueueConfig& c) { c.retry.wait = Duration(30s); }},
        Good{R"({"retry": {"cooldown": 0}})", [](QueueConfig& c) { c.retry.wait = Duration(0s); }},
        Good{R"({"retry": {"attempts": 3, "cooldown": "1m"}})",
             [](QueueConfig& c) { c.retry = {.attempts = 3, .wait = 1min}; }},
        Good{R"({"retry": {"max_retries": 2, "cooldown": "1m"}})",
             [](QueueConfig& c) {
               c.retry = {.attempts = 3, .told_as_retries = true, .wait = 1min};
             }},
        Good{R"({"fetch": {"retry_share": 0.5}})",
             [](QueueConfig& c) { c.fetch.retry_share_ppm = 500'000; }},
        Good{R"({"fetch": {"retry_share": 0}})",
             [](QueueConfig& c) { c.fetch.retry_share_ppm = 0; }},
        Good{R"({"fetch": {"retry_in_flight": 9}})",
             [](QueueConfig& c) { c.fetch.retry_in_flight = 9; }},
        Good{R"({"concurrency": 1})", [](QueueConfig& c) { c.concurrency = 1; }},
        Good{R"({"concurrency_per_key": 18446744073709551615})",
             [](QueueConfig& c) {
               c.concurrency_per_key = std::numeric_limits<std::uint64_t>::max();
             }},
        Good{R"({"dead_letter_queue": "dlq"})",
             [](QueueConfig& c) { c.dead_letter_queue = "dlq"; }},
        Good{R"({"keep_dead": "30d"})", [](QueueConfig& c) { c.keep_dead = 720h; }},
        Good{R"({"max_dead": 0})", [](QueueConfig& c) { c.max_dead = 0; }},
        Good{R"({"keep_completed": "1h"})", [](QueueConfig& c) { c.keep_completed = 1h; }},
        Good{R"({"on_dead_webhook": "https://a.example/x"})",
             [](QueueConfig& c) { c.on_dead_webhook = "https://a.example/x"; }},
        Good{R"({"max_jobs": 1})", [](QueueConfig& c) { c.max_jobs = 1; }},
        Good{R"({"max_bytes": 18446744073709551615})",
             [](QueueConfig& c) { c.max_bytes = std::numeric_limits<std::uint64_t>::max(); }},
        Good{R"({"key_window": "48h"})", [](QueueConfig& c) { c.key_window = 48h; }},
        Good{R"({"max_jobs": 5, "lease": "1s"})", [](QueueConfig& c) {
               c.max_jobs = 5;
               c.lease = 1s;
             }}));

INSTANTIATE_TEST_SUITE_P(
    NullMeansTheDefault, GoodConfigField,
    testing::Values(
        Good{R"({"lease": null})", [](QueueConfig& c) { c.lease = 30s; }},
        Good{R"({"ttl": null})", [](QueueConfig& c) { c.ttl.reset(); }},
        Good{R"({"retry": null})", [](QueueConfig& c) { c.retry = {}; }},
        Good{R"({"retry": {"attempts": null}})", [](QueueConfig& c) { c.retry.attempts = 0; }},
        Good{R"({"retry": {"cooldown": null}})",
             [](QueueConfig& c) { c.retry.wait = Duration(0s); }},
        Good{R"({"fetch": null})", [](QueueConfig& c) { c.fetch = {}; }},
        Good{R"({"fetch": {"retry_share": null, "retry_in_flight": null}})",
             [](QueueConfig& c) { c.fetch = {}; }},
        Good{R"({"concurrency": null})", [](QueueConfig& c) { c.concurrency.reset(); }},
        Good{R"({"concurrency_per_key": null})",
             [](QueueConfig& c) { c.concurrency_per_key.reset(); }},
        Good{R"({"breaker": null})", [](QueueConfig& c) { c.breaker.reset(); }},
        Good{R"({"dead_letter_queue": null})", [](QueueConfig& c) { c.dead_letter_queue.clear(); }},
        Good{R"({"keep_dead": null})", [](QueueConfig& c) { c.keep_dead.reset(); }},
        Good{R"({"max_dead": null})", [](QueueConfig& c) { c.max_dead.reset(); }},
        Good{R"({"keep_completed": null})", [](QueueConfig& c) { c.keep_completed.reset(); }},
        Good{R"({"on_dead_webhook": null})", [](QueueConfig& c) { c.on_dead_webhook.clear(); }},
        Good{R"({"max_jobs": null})", [](QueueConfig& c) { c.max_jobs.reset(); }},
        Good{R"({"max_bytes": null})", [](QueueConfig& c) { c.max_bytes.reset(); }},
        Good{R"({"key_window": null})", [](QueueConfig& c) { c.key_window = 24h; }}));

INSTANTIATE_TEST_SUITE_P(
    OfPayloads, GoodConfigField,
    testing::Values(Good{R"({"vars": ["b", "a"]})",
                         [](QueueConfig& c) {
                           c.vars = {"b", "a"};
                         }},
                    Good{R"({"vars": []})", [](QueueConfig& c) { c.vars.clear(); }},
                    Good{R"({"vars": null})", [](QueueConfig& c) { c.vars.clear(); }},
                    Good{R"({"vars": ["a.b", " ", "\u00e4"]})",
                         [](QueueConfig& c) {
                           c.vars = {"a.b", " ", "\xC3\xA4"};
                         }},
                    Good{R"({"defaults": {"a": 1}})",
                         [](QueueConfig& c) { c.defaults = R"({"a":1})"; }},
                    Good{R"({"defaults": { "n" : [ 1.0, 1e2, 123456789012345678901234567890 ] ,)"
                         "\n\t"
                         R"( "s": " a \" b \\" } })",
                         [](QueueConfig& c) {
                           c.defaults =
                               R"({"n":[1.0,1e2,123456789012345678901234567890],"s":" a \" b \\"})";
                         }},
                    Good{R"({"\u0064efaults": {"a": 1.0}})",
                         [](QueueConfig& c) { c.defaults = R"({"a":1.0})"; }},
                    Good{R"({"defaults": {}})", [](QueueConfig& c) { c.defaults.clear(); }},
                    Good{R"({"defaults": null})", [](QueueConfig& c) { c.defaults.clear(); }}));

// What it does not name has its default and not what was there before.
INSTANTIATE_TEST_SUITE_P(
    ABreakerIsReplacedAsAWhole, GoodConfigField,
    testing::Values(
        Good{R"({"breaker": {}})", [](QueueConfig& c) { c.breaker = OutagePolicy{}; }},
        Good{R"({"breaker": {"failure_rate": null, "window": null, "min": null, "pause": null,)"
             R"( "canaries": null}})",
             [](QueueConfig& c) { c.breaker = OutagePolicy{}; }},
        Good{R"({"breaker": {"failure_rate": 1}})",
             [](QueueConfig& c) { c.breaker = OutagePolicy{.failure_rate_ppm = 1'000'000}; }},
        Good{R"({"breaker": {"failure_rate": 1e-9}})",
             [](QueueConfig& c) { c.breaker = OutagePolicy{.failure_rate_ppm = 1}; }},
        Good{R"({"breaker": {"window": "1s"}})",
             [](QueueConfig& c) { c.breaker = OutagePolicy{.window = 1s}; }},
        Good{R"({"breaker": {"window": 3600}})",
             [](QueueConfig& c) { c.breaker = OutagePolicy{.window = 1h}; }},
        Good{R"({"breaker": {"min": 1}})",
             [](QueueConfig& c) { c.breaker = OutagePolicy{.min = 1}; }},
        Good{R"({"breaker": {"min": 1000000}})",
             [](QueueConfig& c) { c.breaker = OutagePolicy{.min = 1'000'000}; }},
        Good{R"({"breaker": {"pause": "100ms"}})",
             [](QueueConfig& c) { c.breaker = OutagePolicy{.pause = 100ms}; }},
        Good{R"({"breaker": {"pause": "1d"}})",
             [](QueueConfig& c) { c.breaker = OutagePolicy{.pause = 24h}; }},
        Good{R"({"breaker": {"canaries": 1000}})",
             [](QueueConfig& c) { c.breaker = OutagePolicy{.canaries = 1000}; }},
        Good{R"({"breaker": {"failure_rate": 0.25, "window": "10s", "min": 4, "pause": "2m",)"
             R"( "canaries": 2}})",
             [](QueueConfig& c) {
               c.breaker = OutagePolicy{.failure_rate_ppm = 250'000,
                                        .window = 10s,
                                        .min = 4,
                                        .pause = 2min,
                                        .canaries = 2};
             }}));

struct Bad {
  std::string_view json;
  Errc code;
  std::string_view message;
};

class BadConfig : public testing::TestWithParam<Bad> {};

TEST_P(BadConfig, IsRefusedByNameAndChangesNothing) {
  for (const QueueConfig& before : {QueueConfig{}, all_set()}) {
    QueueConfig config = before;
    const Status applied = apply_text(config, GetParam().json);
    ASSERT_FALSE(applied) << GetParam().json;
    EXPECT_EQ(applied.error().code, GetParam().code) << applied.error().detail;
    EXPECT_THAT(applied.error().detail, HasSubstr(GetParam().message));
    EXPECT_EQ(config, before);
  }
}

INSTANTIATE_TEST_SUITE_P(
    WrongKind, BadConfig,
    testing::Values(
        Bad{"[]", Errc::invalid_request, "object"}, Bad{"null", Errc::invalid_request, "object"},
        Bad{R"({"lease": true})", Errc::invalid_request, "lease"},
        Bad{R"({"ttl": []})", Errc::invalid_request, "ttl"},
        Bad{R"({"retry": 3})", Errc::invalid_request, "retry"},
        Bad{R"({"retry": []})", Errc::invalid_request, "retry"},
        Bad{R"({"retry": {"attempts": "3"}})", Errc::invalid_request, "retry.attempts"},
        Bad{R"({"retry": {"cooldown": {}}})", Errc::invalid_request, "retry.cooldown"},
        Bad{R"({"fetch": 1})", Errc::invalid_request, "fetch"},
        Bad{R"({"fetch": {"retry_share": "x"}})", Errc::invalid_request, "fetch.retry_share"},
        Bad{R"({"fetch": {"share": 1}})", Errc::unknown_field, "fetch.share"},
        Bad{R"({"fetch": {"retry_share": 1.01}})", Errc::invalid_field, "fetch.retry_share"},
        Bad{R"({"fetch": {"retry_share": -0.1}})", Errc::invalid_field, "fetch.retry_share"},
        Bad{R"({"fetch": {"retry_in_flight": 0}})", Errc::invalid_field, "fetch.retry_in_flight"},
        Bad{R"({"dead_letter_queue": "a b"})", Errc::invalid_name, "dead_letter_queue"},
        Bad{R"({"keep_dead": "0s"})", Errc::invalid_field, "keep_dead"},
        Bad{R"({"keep_dead": "5x"})", Errc::invalid_field, "keep_dead"},
        Bad{R"({"keep_completed": 0})", Errc::invalid_field, "keep_completed"},
        Bad{R"({"max_jobs": "10"})", Errc::invalid_request, "max_jobs"},
        Bad{R"({"max_bytes": false})", Errc::invalid_request, "max_bytes"},
        Bad{R"({"key_window": []})", Errc::invalid_request, "key_window"}));

INSTANTIATE_TEST_SUITE_P(
    OutOfRange, BadConfig,
    testing::Values(Bad{R"({"lease": "99ms"})", Errc::invalid_field, "lease"},
                    Bad{R"({"lease": 0})", Errc::invalid_field, "lease"},
                    Bad{R"({"lease": "7d1s"})", Errc::invalid_field, "lease"},
                    Bad{R"({"lease": "soon"})", Errc::invalid_field, "lease"},
                    Bad{R"({"ttl": "0s"})", Errc::invalid_field, "ttl"},
                    Bad{R"({"ttl": -1})", Errc::invalid_field, "ttl"},
                    Bad{R"({"retry": {"attempts": -1}})", Errc::invalid_field, "retry.attempts"},
                    Bad{R"({"retry": {"attempts": 1.5}})", Errc::invalid_field, "retry.attempts"},
                    Bad{R"({"retry": {"attempts": 4294967296}})", Errc::invalid_field,
                        "retry.attempts"},
                    Bad{R"({"retry": {"cooldown": "5x"}})", Errc::invalid_field, "retry.cooldown"},
                    Bad{R"({"max_jobs": 0})", Errc::invalid_field, "max_jobs"},
                    Bad{R"({"max_jobs": -1})", Errc::invalid_field, "max_jobs"},
                    Bad{R"({"max_bytes": 0})", Errc::invalid_field, "max_bytes"},
                    Bad{R"({"max_bytes": 1e30})", Errc::invalid_field, "max_bytes"},
                    Bad{R"({"key_window": "101 years"})", Errc::invalid_field, "key_window"}));

INSTANTIATE_TEST_SUITE_P(
    Scheduling, BadConfig,
    testing::Values(
        Bad{R"({"concurrency": 0})", Errc::invalid_field, "concurrency: must be at least 1"},
        Bad{R"({"concurrency": -1})", Errc::invalid_field, "concurrency:"},
        Bad{R"({"concurrency": 1.5})", Errc::invalid_field, "concurrency:"},
        Bad{R"({"concurrency": "5"})", Errc::invalid_request, "concurrency:"},
        Bad{R"({"concurrency_per_key": 0})", Errc::invalid_field,
            "concurrency_per_key: must be at least 1"},
        Bad{R"({"concurrency_per_key": 1e30})", Errc::invalid_field, "concurrency_per_key:"},
        Bad{R"({"concurrency_per_key": true})", Errc::invalid_request, "concurrency_per_key:"},
        Bad{R"({"breaker": true})", Errc::invalid_request, "breaker:"},
        Bad{R"({"breaker": []})", Errc::invalid_request, "breaker:"},
        Bad{R"({"breaker": {"failure_rate": 0}})", Errc::invalid_field, "breaker.failure_rate:"},
        Bad{R"({"breaker": {"failure_rate": 1.01}})", Errc::invalid_field, "breaker.failure_rate:"},
        Bad{R"({"breaker": {"failure_rate": "x"}})", Errc::invalid_request,
            "breaker.failure_rate:"},
        Bad{R"({"breaker": {"window": "999ms"}})", Errc::invalid_field, "breaker.window:"},
        Bad{R"({"breaker": {"window": "1h1s"}})", Errc::invalid_field, "breaker.window:"},
        Bad{R"({"breaker": {"window": "soon"}})", Errc::invalid_field, "breaker.window:"},
        Bad{R"({"breaker": {"min": 0}})", Errc::invalid_field, "breaker.min:"},
        Bad{R"({"breaker": {"min": 1000001}})", Errc::invalid_field, "breaker.min:"},
        Bad{R"({"breaker": {"min": 2.5}})", Errc::invalid_field, "breaker.min:"},
        Bad{R"({"breaker": {"pause": "99ms"}})", Errc::invalid_field, "breaker.pause:"},
        Bad{R"({"breaker": {"pause": "1d1s"}})", Errc::invalid_field, "breaker.pause:"},
        Bad{R"({"breaker": {"canaries": 0}})", Errc::invalid_field, "breaker.canaries:"},
        Bad{R"({"breaker": {"canaries": 1001}})", Errc::invalid_field, "breaker.canaries:"},
        Bad{R"({"breaker": {"canary": 1}})", Errc::unknown_field, "breaker.canary"},
        Bad{R"({"breaker": {"windo": "1m"}})", Errc::unknown_field,
            "did you mean 'breaker.window'"},
        Bad{R"({"lease": "5s", "breaker": {"min": 0}})", Errc::invalid_field, "breaker.min:"}));

INSTANTIATE_TEST_SUITE_P(
    OfPayloads, BadConfig,
    testing::Values(
        Bad{R"({"vars": "id"})", Errc::invalid_request, "vars: expected an array of names"},
        Bad{R"({"vars": {}})", Errc::invalid_request, "vars:"},
        Bad{R"({"vars": ["a", 1]})", Errc::invalid_request, "vars: expected names, got a number"},
        Bad{R"({"vars": [null]})", Errc::invalid_request, "vars:"},
        Bad{R"({"vars": [""]})", Errc::invalid_field, "vars: has an empty name"},
        Bad{R"({"vars": ["a", "b", "\u0061"]})", Errc::invalid_field, "vars: has 'a' twice"},
        Bad{R"({"var": ["a"]})", Errc::unknown_field, "did you mean 'vars'"},
        Bad{R"({"defaults": []})", Errc::invalid_request, "defaults: expected an object"},
        Bad{R"({"defaults": "{}"})", Errc::invalid_request, "defaults:"},
        Bad{R"({"defaults": {"a": 1, "a": 2}})", Errc::invalid_request, "duplicate field 'a'"}));

std::string quoted(char c, std::size_t times) { return '"' + std::string(times, c) + '"'; }

TEST(PayloadFields, HaveLimits) {
  QueueConfig config;
  EXPECT_TRUE(apply_text(config, R"({"vars": [)" + quoted('x', 200) + "]}"));
  const Status long_name = apply_text(config, R"({"vars": [)" + quoted('x', 201) + "]}");
  ASSERT_FALSE(long_name);
  EXPECT_EQ(long_name.error().code, Errc::invalid_field);
  EXPECT_THAT(long_name.error().detail, HasSubstr("vars: has a name of 201 bytes"));

  const auto names = [](int count) {
    std::string text = R"({"vars": ["0")";
    for (int i = 1; i < count; ++i) text += ",\"" + std::to_string(i) + '"';
    return text + "]}";
  };
  EXPECT_TRUE(apply_text(config, names(64)));
  EXPECT_EQ(config.vars.size(), 64U);
  const Status many = apply_text(config, names(65));
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().detail, HasSubstr("vars: has 65 names; at most 64"));

  // Blanks do not count.
  const auto defaults = [](std::size_t bytes) {
    return R"({"defaults": {  "a" : )" + quoted('x', bytes - 8) + " } }";
  };
  EXPECT_TRUE(apply_text(config, defaults(64 << 10)));
  EXPECT_EQ(config.defaults.size(), 64U << 10);
  const Status large = apply_text(config, defaults((64 << 10) + 1));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Errc::invalid_field);
  EXPECT_THAT(large.error().detail, HasSubstr("defaults: has 65537 bytes; at most 65536"));
}

TEST(PayloadFields, DefaultsComeFromTheValuesWhenThereIsNoText) {
  QueueConfig config;
  ASSERT_TRUE(apply_config_json(config, *Json::parse(R"({"defaults": {"a": "x", "b": 1.5}})")));
  EXPECT_EQ(config.defaults, R"({"a":"x","b":1.5})");
}

INSTANTIATE_TEST_SUITE_P(Unknown, BadConfig,
                         testing::Values(Bad{R"({"leases": "30s"})", Errc::unknown_field,
                                             "did you mean 'lease'"},
                                         Bad{R"({"colour": null})", Errc::unknown_field, "colour"},
                                         Bad{R"({"retry": {"attempt": 3}})", Errc::unknown_field,
                                             "did you mean 'retry.attempts'"},
                                         Bad{R"({"retry": {"backoff": {"start": 1}}})",
                                             Errc::unknown_field, "retry.backoff.start"}));

// A good field beside a bad one must not be half applied, whichever stands first.
INSTANTIATE_TEST_SUITE_P(
    BesideGoodFields, BadConfig,
    testing::Values(Bad{R"({"max_jobs": 5, "lease": "1ms"})", Errc::invalid_field, "lease"},
                    Bad{R"({"lease": "1ms", "max_jobs": 5})", Errc::invalid_field, "lease"},
                    Bad{R"({"lease": "5s", "retry": {"attempts": 2, "cooldown": "x"}})",
                        Errc::invalid_field, "retry.cooldown"},
                    Bad{R"({"retry": {"attempts": 2}, "lese": "5s"})", Errc::unknown_field,
                        "lese"}));

std::string written(const QueueConfig& config) {
  JsonWriter out;
  write_config_json(out, config);
  return out.take();
}

TEST(WrittenConfig, NamesEveryFieldEvenWhenItIsNotSet) {
  EXPECT_EQ(written({}), R"({"lease":"30s","ttl":null,"retry":{"attempts":0,"cooldown":"0s"},)"
                         R"("fetch":{"retry_share":0.2,"retry_in_flight":null},)"
                         R"("concurrency":null,"concurrency_per_key":null,"breaker":null,)"
                         R"("max_jobs":null,"max_bytes":null,"key_window":"1d",)"
                         R"("dead_letter_queue":null,"keep_dead":null,"max_dead":null,)"
                         R"("keep_completed":null,"on_dead_webhook":null,"on_enqueue":null,)"
                         R"("on_failure":null,"on_hook_error":"retry","hook_timeout_ms":null,)"
                         R"("hook_memory_bytes":null,"vars":[],"defaults":null})");
}

TEST(WrittenConfig, HasTheWholeBreaker) {
  EXPECT_THAT(written({.breaker = OutagePolicy{}}),
              HasSubstr(R"("breaker":{"failure_rate":0.5,"window":"1m","min":20,"pause":"30s",)"
                        R"("canaries":1},)"));
}

TEST(WrittenConfig, AppliedOverAnyConfigGivesTheSameBack) {
  QueueConfig odd;
  odd.lease = 100ms;
  odd.ttl = 1us;
  odd.max_bytes = std::numeric_limits<std::uint64_t>::max();
  for (const QueueConfig& config : {QueueConfig{}, all_set(), odd}) {
    for (QueueConfig target : {QueueConfig{}, all_set()}) {
      const Status applied = apply_text(target, written(config));
      ASSERT_TRUE(applied) << applied.error().detail;
      EXPECT_EQ(target, config) << written(config);
    }
  }
}

}  // namespace
}  // namespace reprise
