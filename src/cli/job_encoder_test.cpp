#include "cli/job_encoder.h"

#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

using Input = JobEncoder::Input;

TEST(JobEncoder, KeepsThePayloadsBytes) {
  EXPECT_EQ(*JobEncoder(Input::json, {}).encode(R"({"a": 1.0 })"), R"({"payload":{"a": 1.0 }})");
}

TEST(JobEncoder, AddsTheFields) {
  const JobFields fields{.delay = "5m",
                         .priority = 10,
                         .key = "k\"1",
                         .ttl = "1h",
                         .headers = {"a=b=c", "x=1", "x=2"}};
  EXPECT_EQ(*JobEncoder(Input::json, fields).encode("1"),
            R"({"payload":1,"delay":"5m","priority":10,"key":"k\"1","ttl":"1h",)"
            R"("headers":{"a":"b=c","x":"2"}})");
}

TEST(JobEncoder, AddsWhatSchedulingLooksAt) {
  EXPECT_EQ(*JobEncoder(Input::json, {.fairness_key = "acme", .weight = 3}).encode("1"),
            R"({"payload":1,"fairness_key":"acme","weight":3})");
  EXPECT_EQ(*JobEncoder(Input::bytes, {.throttle_keys = {"api", "b\"", "api"}}).encode("hi"),
            R"({"payload_base64":"aGk=","throttle_keys":["api","b\"","api"]})");
}

TEST(JobEncoder, SendsBytesAsBase64) {
  EXPECT_EQ(*JobEncoder(Input::bytes, {}).encode("hi"), R"({"payload_base64":"aGk="})");
  EXPECT_EQ(*JobEncoder(Input::base64, {}).encode("aGk="), R"({"payload_base64":"aGk="})");
  EXPECT_FALSE(JobEncoder(Input::base64, {}).encode("@@"));
}

TEST(JobEncoder, TakesWholeJobsAsTheyAre) {
  const JobEncoder encoder(Input::envelope, {});
  EXPECT_EQ(*encoder.encode(R"({ "payload":1, "new_field":2})"),
            R"({ "payload":1, "new_field":2})");
  EXPECT_EQ(*encoder.encode(R"({"payload":1,"fairness_key":"a","weight":3,"throttle_keys":["x"]})"),
            R"({"payload":1,"fairness_key":"a","weight":3,"throttle_keys":["x"]})");
  EXPECT_EQ(encoder.encode("[1]").error().detail,
            "the job must be an object with a payload, not an array");
}

TEST(JobEncoder, GivesAKeyToJobsThatHaveNone) {
  EXPECT_EQ(*JobEncoder(Input::json, {.ttl = "1h"}).encode("1", "K"),
            R"({"payload":1,"key":"K","ttl":"1h"})");
  EXPECT_EQ(*JobEncoder(Input::json, {}).encode("1", "K"), R"({"payload":1,"key":"K"})");
  EXPECT_EQ(*JobEncoder(Input::bytes, {}).encode("hi", "K"),
            R"({"payload_base64":"aGk=","key":"K"})");
  EXPECT_EQ(*JobEncoder(Input::json, {.key = "own"}).encode("1", "K"),
            R"({"payload":1,"key":"own"})");
}

TEST(JobEncoder, GivesAKeyToWholeJobsThatHaveNone) {
  const JobEncoder encoder(Input::envelope, {});
  EXPECT_EQ(*encoder.encode(R"( {"payload":1})", "K"), R"( {"key":"K","payload":1})");
  EXPECT_EQ(*encoder.encode("{ }", "K"), R"({"key":"K" })");
  EXPECT_EQ(*encoder.encode(R"({"key":"own"})", "K"), R"({"key":"own"})");
  EXPECT_EQ(*encoder.encode(R"({"payload":{"key":1}, "key" : null})", "K"),
            R"({"payload":{"key":1}, "key" : "K"})");
  EXPECT_EQ(*encoder.encode(R"({"k\u0065y":null})", "K"), R"({"k\u0065y":"K"})");
}

TEST(JobEncoder, SaysWhereJsonIsBroken) {
  const JobEncoder encoder(Input::json, {});
  EXPECT_EQ(encoder.encode("{\"a\" 1}").error().detail,
            "the payload is not valid JSON: expected ':' at column 6");
  EXPECT_NE(encoder.encode("{\n\"a\" 1}").error().detail.find("line 2"), std::string::npos);
  EXPECT_FALSE(encoder.encode(""));
  EXPECT_FALSE(encoder.encode("1 2"));
}

TEST(PushBody, JoinsJobs) {
  EXPECT_EQ(push_body({"{}", R"({"payload":1})"}, false), R"({"jobs":[{},{"payload":1}]})");
  EXPECT_EQ(push_body({"{}"}, true), R"({"jobs":[{}],"create":true})");
}

}  // namespace
}  // namespace reprise::cli
