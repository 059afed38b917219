#include "server/push_body.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace reprise::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::string_literals::operator""s;

Result<PushBody> parse(std::string_view body) { return parse_push_body(body, Limits()); }

std::string one_job(std::string_view fields) {
  return "{\"jobs\":[{" + std::string(fields) + "}]}";
}

// The single job of a body that is taken.
NewJob job_of(std::string_view fields) {
  auto body = parse(one_job(fields));
  if (!body) {
    ADD_FAILURE() << fields << ": " << body.error().detail;
    return {};
  }
  EXPECT_EQ(body->jobs.size(), 1U);
  if (!body->jobs.front()) {
    ADD_FAILURE() << fields << ": " << body->jobs.front().error().detail;
    return {};
  }
  return *body->jobs.front();
}

// The code with which the whole request is refused.
Errc refusal_of(std::string_view body) {
  const auto parsed = parse(body);
  if (parsed) {
    ADD_FAILURE() << "was taken: " << body.substr(0, 200);
    return Errc::internal;
  }
  EXPECT_FALSE(parsed.error().detail.empty());
  return parsed.error().code;
}

// The code with which this job alone is refused.
Errc item_refusal_of(std::string_view fields) {
  const auto parsed = parse(one_job(fields));
  if (!parsed || parsed->jobs.front()) {
    ADD_FAILURE() << "not refused as an item: " << fields.substr(0, 200);
    return Errc::internal;
  }
  EXPECT_NE(parsed->jobs.front().error().detail.find("jobs[0]"), std::string::npos);
  return parsed->jobs.front().error().code;
}

TEST(PushBody, PayloadsStayTheBytesThatCame) {
  for (const std::string_view payload : {R"(null)",
                                         R"(true)",
                                         R"(false)",
                                         R"(0)",
                                         R"(-0.0)",
                                         R"(1e400)",
                                         R"(0.10)",
                                         R"(-1E+2)",
                                         R"(123456789012345678901234567890)",
                                         R"("")",
                                         R"([])",
                                         R"({})",
                                         R"({"a":1,"a":2})",
                                         "{\"b\": [1 ,2,\t{\"c\":null}],  \"a\" :\"x\"}",
                                         R"("\u00e9\/\ud83d\ude00\n\"\\")",
                                         "\"\xC3\xA9\xE2\x80\xA8\"",
                                         R"("\u0000")",
                                         R"(["payload",{"payload":"payload"}])",
                                         R"("}]},")",
                                         R"([[[[]]],{"a":[{}]}])"}) {
    const NewJob job = job_of("\"payload\": \t\r\n" + std::string(payload) + "  \n");
    EXPECT_EQ(job.payload, payload);
    EXPECT_EQ(job.payload_kind, PayloadKind::json);
  }
}

TEST(PushBody, BlanksMayStandAnywhere) {
  const auto body = parse(" {\n\"jobs\" : [ { } , {\t\"payload\" :1}\r\n] , \"create\" : true } ");
  ASSERT_TRUE(body);
  ASSERT_EQ(body->jobs.size(), 2U);
  EXPECT_EQ(body->jobs[0]->payload, "null");
  EXPECT_EQ(body->jobs[1]->payload, "1");
  EXPECT_TRUE(body->create);
}

TEST(PushBody, NoJobsAreNoError) {
  const auto body = parse(R"({"jobs":[]})");
  ASSERT_TRUE(body);
  EXPECT_TRUE(body->jobs.empty());
  EXPECT_FALSE(body->create);
}

TEST(PushBody, ReadsWhatSharesClaimsOut) {
  EXPECT_EQ(job_of("").scheduling, Scheduling{});
  EXPECT_EQ(job_of(R"("fairness_key":null,"weight":null,"throttle_keys":null)").scheduling,
            Scheduling{});
  EXPECT_EQ(
      job_of(R"("fairness_key":"acme \u20ac","weight":3,"throttle_keys":["api","b\/c"])")
          .scheduling,
      (Scheduling{
          .fairness_key = "acme \xE2\x82\xAC", .weight = 3, .throttle_keys = {"api", "b/c"}}));
  EXPECT_EQ(job_of(R"("weight":1000,"throttle_keys":[])").scheduling, (Scheduling{.weight = 1000}));
  const std::string longest(200, 'k');
  EXPECT_EQ(job_of("\"fairness_key\":\"" + longest + "\"").scheduling.fairness_key, longest);
}

TEST(PushBody, AThrottleThatIsNamedAgainCountsOnce) {
  EXPECT_EQ(job_of(R"("throttle_keys":["b","a","b","c","a"])").scheduling.throttle_keys,
            (std::vector<std::string>{"b", "a", "c"}));
}

// `count` keys that differ.
std::string throttle_keys(std::size_t count) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) {
    list += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\"";
  }
  return "\"throttle_keys\":[" + list + "]";
}

TEST(PushBody, RefusesOneJobForItsFairnessKeyWeightOrThrottles) {
  EXPECT_EQ(job_of(throttle_keys(16)).scheduling.throttle_keys.size(), 16U);
  const std::string long_key = "\"" + std::string(201, 'k') + "\"";
  struct Case {
    std::string fields;
    std::string_view message;
  };
  for (const Case& bad : {
           Case{R"("fairness_key":"")", "jobs[0].fairness_key must not be empty"},
           Case{"\"fairness_key\":" + long_key,
                "jobs[0].fairness_key has 201 bytes, at most 200 are allowed"},
           Case{R"("weight":0)", "jobs[0].weight must be between 1 and 1000"},
           Case{R"("weight":1001)", "jobs[0].weight must be between 1 and 1000"},
           Case{R"("weight":-1)", "jobs[0].weight: must not be negative, got -1"},
           Case{R"("weight":1.5)", "jobs[0].weight: must be a whole number, got 1.5"},
           Case{throttle_keys(17), "jobs[0].throttle_keys are more than 16"},
           Case{throttle_keys(1000), "jobs[0].throttle_keys are more than 16"},
           Case{R"("throttle_keys":["a",""])", "jobs[0].throttle_keys[1] must not be empty"},
           Case{"\"throttle_keys\":[" + long_key + "]",
                "jobs[0].throttle_keys[0] has 201 bytes, at most 200 are allowed"},
       }) {
    EXPECT_EQ(item_refusal_of(bad.fields), Errc::invalid_field) << bad.fields;
    EXPECT_EQ(parse(one_job(bad.fields))->jobs.front().error().detail, bad.message);
    // The others go on.
    const auto body = parse("{\"jobs\":[{" + bad.fields + "},{\"payload\":2}]}");
    ASSERT_TRUE(body) << bad.fields;
    EXPECT_EQ(body->jobs.at(1)->payload, "2");
    EXPECT_EQ(body->jobs.at(1)->scheduling, Scheduling{});
  }
}

TEST(PushBody, RefusesTheRequestForAFairnessKeyWeightOrThrottlesOfAnotherKind) {
  for (const char* fields :
       {R"("fairness_key":1)", R"("fairness_key":["a"])", R"("weight":"3")", R"("weight":true)",
        R"("throttle_keys":"api")", R"("throttle_keys":{"api":1})", R"("throttle_keys":[1])",
        R"("throttle_keys":["a",null])", R"("throttle_keys":["a",])", R"("throttle_keys":["a")",
        R"("fairness_key":"\ud800")", R"("weight":1,"weight":2)"}) {
    EXPECT_EQ(refusal_of(one_job(fields)), Errc::invalid_request) << fields;
  }
  EXPECT_EQ(refusal_of(one_job(R"("throttle_key":"a")")), Errc::unknown_field);
  EXPECT_NE(parse(one_job(R"("throttle_key":"a")")).error().detail.find("'throttle_keys'"),
            std::string::npos);
}

TEST(PushBody, ReadsEveryField) {
  const NewJob job =
      job_of(R"("payload":1,"headers":{"tenant":"a","\u00dc":"\u0001\ud83d\ude00"},"delay":"5m",)"
             R"("priority":10,"key":"k\/1","ttl":1.5)");
  EXPECT_EQ(job.headers, (Headers{{"tenant", "a"}, {"\xC3\x9C", "\x01\xF0\x9F\x98\x80"}}));
  EXPECT_EQ(job.delay, seconds(300));
  EXPECT_EQ(job.priority, 10U);
  EXPECT_EQ(job.key, "k/1");
  EXPECT_EQ(job.ttl, milliseconds(1500));
}

TEST(PushBody, HasTheDocumentedDefaults) {
  for (const char* fields :
       {"", R"("headers":null,"delay":null,"priority":null,"key":null,"ttl":null,)"
            R"("payload_base64":null)"}) {
    const NewJob job = job_of(fields);
    EXPECT_EQ(job.payload, "null");
    EXPECT_EQ(job.priority, kDefaultPriority);
    EXPECT_EQ(job.delay, Duration::zero());
    EXPECT_EQ(job.ttl, std::nullopt);
    EXPECT_TRUE(job.key.empty());
    EXPECT_TRUE(job.headers.empty());
  }
}

TEST(PushBody, NamesMayBeEscaped) {
  EXPECT_EQ(job_of(R"("pay\u006coad":7)").payload, "7");
  EXPECT_EQ(refusal_of(one_job(R"("payload":1,"pay\u006coad":7)")), Errc::invalid_request);
}

TEST(PushBody, ReadsBase64) {
  const NewJob job = job_of(R"("payload_base64":"AAEC\/w==")");
  EXPECT_EQ(job.payload, "\x00\x01\x02\xFF"s);
  EXPECT_EQ(job.payload_kind, PayloadKind::bytes);
  EXPECT_EQ(job_of(R"("payload_base64":"")").payload_kind, PayloadKind::bytes);
}

TEST(PushBody, RefusesWhatIsNoJson) {
  for (const std::string& body : {""s, "{"s, "}"s, "nul"s, "'x'"s, "{}x"s, "{} {}"s, "//\n{}"s,
                                  "\xEF\xBB\xBF{\"jobs\":[]}"s, "\0"s, "\xFF\xFE"s}) {
    EXPECT_EQ(refusal_of(body), Errc::invalid_request) << body;
  }
  for (const std::string& payload : {"01"s,
                                     "1."s,
                                     ".5"s,
                                     "+1"s,
                                     "-"s,
                                     "1e"s,
                                     "1e+"s,
                                     "0x1"s,
                                     "NaN"s,
                                     "Infinity"s,
                                     "tru"s,
                                     "truex"s,
                                     "nulll"s,
                                     "'a'"s,
                                     "\"a"s,
                                     "\"\\x\""s,
                                     "\"\\u12\""s,
                                     "\"\\u12g4\""s,
                                     "\"a\nb\""s,
                                     "\"\x01\""s,
                                     "\"\\ud800\""s,
                                     "\"\\udc00\""s,
                                     "\"\\ud800\\n\""s,
                                     "\"\\ud800\\u0041\""s,
                                     "\"\xFF\""s,
                                     "\"\xC3\""s,
                                     "\"\xED\xA0\x80\""s,
                                     "[1,]"s,
                                     "[,1]"s,
                                     "[1 2]"s,
                                     "[1"s,
                                     "{1:2}"s,
                                     "{\"a\"}"s,
                                     "{\"a\":}"s,
                                     "{\"a\":1,}"s,
                                     "{,}"s,
                                     "{\"a\" 1}"s,
                                     "// x"s,
                                     ""s,
                                     "\"a\0b\""s}) {
    EXPECT_EQ(refusal_of("{\"jobs\":[{\"payload\":" + payload + "}]}"), Errc::invalid_request)
        << payload;
  }
}

TEST(PushBody, RefusesTextAfterTheEnd) {
  for (const std::string& tail : {"x"s, "{}"s, ","s, "\0"s, "]"s}) {
    EXPECT_EQ(refusal_of("{\"jobs\":[]}" + tail), Errc::invalid_request) << tail;
  }
}

TEST(PushBody, RefusesWrongKinds) {
  for (const char* body : {"[]",
                           "1",
                           "null",
                           "true",
                           "\"x\"",
                           "{}",
                           R"({"jobs":null})",
                           R"({"jobs":{}})",
                           R"({"jobs":[1]})",
                           R"({"jobs":[null]})",
                           R"({"jobs":[[]]})",
                           R"({"create":true})",
                           R"({"jobs":[],"create":"yes"})",
                           R"({"jobs":[{"headers":[]}]})",
                           R"({"jobs":[{"headers":{"a":1}}]})",
                           R"({"jobs":[{"headers":{"a":null}}]})",
                           R"({"jobs":[{"priority":"1"}]})",
                           R"({"jobs":[{"key":1}]})",
                           R"({"jobs":[{"delay":true}]})",
                           R"({"jobs":[{"ttl":[]}]})",
                           R"({"jobs":[{"payload_base64":1}]})",
                           R"({"jobs":[{"payload":1,"payload_base64":"AAEC"}]})"}) {
    EXPECT_EQ(refusal_of(body), Errc::invalid_request) << body;
  }
}

TEST(PushBody, RefusesRepeatedFields) {
  for (const char* body :
       {R"({"jobs":[],"jobs":[]})", R"({"jobs":[],"create":true,"create":true})",
        R"({"jobs":[{"key":"a","key":"a"}]})", R"({"jobs":[{"headers":{"a":"1","a":"2"}}]})"}) {
    EXPECT_EQ(refusal_of(body), Errc::invalid_request) << body;
  }
}

TEST(PushBody, NamesUnknownFieldsAndWhatWasMeant) {
  EXPECT_EQ(refusal_of(R"({"job":{}})"), Errc::unknown_field);
  EXPECT_EQ(refusal_of(R"({"jobs":[],"":1})"), Errc::unknown_field);
  const auto body = parse(R"({"jobs":[{"payload":1},{"dely":"1s"}]})");
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().code, Errc::unknown_field);
  EXPECT_NE(body.error().detail.find("'dely'; did you mean 'delay'?"), std::string::npos);
}

TEST(PushBody, AValueOutOfItsRangeRefusesItsJobAlone) {
  for (const char* fields :
       {R"("priority":-1)", R"("priority":4294967296)", R"("priority":1.5)", R"("priority":1e300)",
        R"("priority":1180591620717411303424)", R"("delay":"soon")", R"("delay":"")",
        R"("delay":-1)", R"("delay":"100000000000d")", R"("delay":1e300)", R"("ttl":0)",
        R"("ttl":-1)", R"("key":"")", R"("headers":{"":"x"})", R"("payload_base64":"!!!!")",
        R"("payload_base64":"AAA")"}) {
    EXPECT_EQ(item_refusal_of(fields), Errc::invalid_field) << fields;
  }
  const auto body = parse(R"({"jobs":[{"payload":1},{"priority":-1,"payload":2},{"payload":3}]})");
  ASSERT_TRUE(body);
  EXPECT_TRUE(body->jobs[0]);
  EXPECT_FALSE(body->jobs[1]);
  EXPECT_EQ(body->jobs[2]->payload, "3");
}

TEST(PushBody, LimitsOfOneJobRefuseItAlone) {
  const Limits limits;
  const auto text = [](std::size_t size) { return "\"" + std::string(size, 'x') + "\""; };
  EXPECT_EQ(item_refusal_of("\"payload\":" + text(limits.max_payload_bytes - 1)),
            Errc::payload_too_large);
  EXPECT_EQ(job_of("\"payload\":" + text(limits.max_payload_bytes - 2)).payload.size(),
            limits.max_payload_bytes);
  EXPECT_EQ(item_refusal_of("\"key\":" + text(limits.max_key_bytes + 1)), Errc::key_too_long);
  EXPECT_EQ(job_of("\"key\":" + text(limits.max_key_bytes)).key.size(), limits.max_key_bytes);
  EXPECT_EQ(item_refusal_of("\"headers\":{\"a\":" + text(limits.max_header_bytes) + "}"),
            Errc::header_too_large);
  EXPECT_EQ(job_of("\"headers\":{\"a\":" + text(limits.max_header_bytes - 1) + "}").headers.size(),
            1U);
}

TEST(PushBody, CountsHeaders) {
  const auto headers = [](std::size_t count) {
    std::string text = "\"headers\":{";
    for (std::size_t i = 0; i < count; ++i) {
      text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"\"";
    }
    return text + "}";
  };
  EXPECT_EQ(job_of(headers(64)).headers.size(), 64U);
  EXPECT_EQ(item_refusal_of(headers(65)), Errc::too_many_headers);
}

TEST(PushBody, LimitsOfTheBatchRefuseAllOfIt) {
  Limits limits;
  limits.max_batch_jobs = 2;
  EXPECT_TRUE(parse_push_body(R"({"jobs":[{},{}]})", limits));
  EXPECT_EQ(parse_push_body(R"({"jobs":[{},{},{}]})", limits).error().code,
            Errc::batch_too_many_jobs);
  limits.max_batch_bytes = 10;
  EXPECT_TRUE(parse_push_body(R"({"jobs":[{"payload":12345},{"payload":12345}]})", limits));
  EXPECT_EQ(
      parse_push_body(R"({"jobs":[{"payload":12345},{"payload":123456}]})", limits).error().code,
      Errc::batch_too_large);
}

TEST(PushBody, NestsUpToTheLimitAndNoDeeper) {
  const auto nested = [](std::size_t depth) {
    return "\"payload\":" + std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(job_of(nested(61)).payload.size(), 122U);  // three levels are the body's own
  EXPECT_EQ(refusal_of(one_job(nested(62))), Errc::invalid_request);
  EXPECT_EQ(refusal_of(one_job(nested(50'000))), Errc::invalid_request);
  EXPECT_EQ(refusal_of(std::string(1'000'000, '[')), Errc::invalid_request);
}

TEST(PushBody, SaysWhereTheTextGoesWrong) {
  const auto body = parse("{\"jobs\":[\n {\"payload\":01}]}");
  ASSERT_FALSE(body);
  EXPECT_NE(body.error().detail.find("line 2"), std::string::npos) << body.error().detail;
}

TEST(PushBody, EveryCutOffBodyIsRefused) {
  const std::string body =
      R"({"jobs":[{"payload":{"a":[1,"\u00e9"]},"headers":{"h":"v"},"delay":1}],"create":true})";
  ASSERT_TRUE(parse(body));
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_EQ(refusal_of(body.substr(0, size)), Errc::invalid_request) << size;
  }
}

}  // namespace
}  // namespace reprise::server
