#include "cli/hook_decision.h"

#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

// "retry: after 1s"
std::string told(const char* result) {
  const auto decision = hook_decision(JsonView(result));
  return decision.what + ": " + decision.detail;
}

TEST(HookDecision, OfAFailure) {
  EXPECT_EQ(told(R"({"status":"decided","action":"retry","delay_ms":1000})"), "retry: after 1s");
  EXPECT_EQ(told(R"({"status":"decided","action":"retry","delay_ms":0})"), "retry: at once");
  EXPECT_EQ(told(R"({"status":"decided","action":"retry"})"), "retry: at once");
  EXPECT_EQ(told(R"({"status":"decided","action":"dlq","reason":"permanent"})"), "dlq: permanent");
  EXPECT_EQ(told(R"({"status":"decided","action":"dlq"})"), "dlq: ");
}

TEST(HookDecision, OfAPush) {
  EXPECT_EQ(told(R"({"status":"decided","fairness_key":"a","weight":2,"throttle_keys":["x","y"]})"),
            "accept: fairness_key=a weight=2 throttle_keys=x,y");
  EXPECT_EQ(told(R"({"status":"decided","fairness_key":"default","weight":1,"throttle_keys":[]})"),
            "accept: fairness_key=default weight=1 throttle_keys=-");
  EXPECT_EQ(told(R"({"status":"decided","reject":"no id"})"), "reject: no id");
}

TEST(HookDecision, OfNoAnswer) {
  EXPECT_EQ(told(R"({"status":"hook_error","fault":"error","message":"line 3: x"})"),
            "hook_error: line 3: x");
  EXPECT_EQ(told(R"({"status":"hook_error","fault":"timeout","message":"more than 10 ms"})"),
            "hook_error: timeout: more than 10 ms");
  EXPECT_EQ(told(R"({"status":"hook_error","fault":"host_lost"})"), "hook_error: host_lost");
  EXPECT_TRUE(hook_decision(JsonView(R"({"status":"hook_error"})")).failed());
}

TEST(HookDecision, NonsenseFromAServerIsNoCrash) {
  for (const char* nonsense : {"null", "[]", R"({"status":7,"action":{},"delay_ms":-1})",
                               R"({"status":"decided","action":"retry","delay_ms":1e300})",
                               R"({"status":"decided","action":"retry","delay_ms":"soon"})"}) {
    EXPECT_FALSE(hook_decision(JsonView(nonsense)).failed()) << nonsense;
  }
}

TEST(GroupedDecisions, RetriesAreOneTheOthersByWhyTheLargestFirst) {
  const JsonView decisions(R"([
    {"id":"A","status":"decided","action":"dlq","reason":"once"},
    {"id":"B","status":"decided","action":"retry","delay_ms":4000},
    {"id":"C","status":"decided","action":"dlq","reason":"twice"},
    {"id":"D","status":"decided","action":"dlq","reason":"twice"},
    {"id":"E","status":"decided","action":"retry","delay_ms":1000},
    {"id":"F","status":"hook_error","fault":"error","message":"line 1: x"}])");
  const auto groups = grouped_decisions(decisions.elements());
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups[0].decision.what, "retry");
  EXPECT_EQ(groups[0].decision.detail, "after 1s to 4s");
  EXPECT_EQ(groups[0].jobs, 2U);
  EXPECT_EQ(groups[0].example, "B");
  EXPECT_EQ(groups[1].decision.detail, "twice");
  EXPECT_EQ(groups[1].example, "C");
  EXPECT_EQ(groups[2].decision.detail, "once");
  EXPECT_EQ(groups[3].decision.what, "hook_error");
  EXPECT_TRUE(grouped_decisions({}).empty());
}

TEST(GroupedDecisions, WaitsThatAreAlikeAreToldOnce) {
  const JsonView decisions(R"([{"id":"A","status":"decided","action":"retry"},
                               {"id":"B","status":"decided","action":"retry","delay_ms":0}])");
  EXPECT_EQ(grouped_decisions(decisions.elements())[0].decision.detail, "at once");
}

}  // namespace
}  // namespace reprise::cli
