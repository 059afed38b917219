#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runbook/command_template.h"

namespace reprise::runbook {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

CommandTemplate parse(std::string_view text) {
  std::vector<TemplateProblem> problems;
  auto command = CommandTemplate::parse(text, TemplateScope::item, problems);
  EXPECT_TRUE(problems.empty()) << problems.front().message;
  return command;
}

// The value of the only template.
std::string value_of(std::string_view text, const TemplateInput& input) {
  const auto list = expand(parse(text), input);
  if (!list) return "error: " + list.error().detail;
  return list->at(0).second;
}

TEST(Expand, TakesTextsAsTheyAreAndOthersAsJson) {
  const TemplateInput input{
      .item = R"({"t": "a \"b\" é\n\u00e9", "n": 1.50, "b": true, "o": {"x": [1,  2]}, "e": ""})"};
  EXPECT_EQ(value_of("a ${item.t}", input), "a \"b\" é\né");
  EXPECT_EQ(value_of("a ${item.n}", input), "1.50");
  EXPECT_EQ(value_of("a ${item.b}", input), "true");
  EXPECT_EQ(value_of("a ${item.o}", input), "{\"x\": [1,  2]}");
  EXPECT_EQ(value_of("a ${item.o.x}", input), "[1,  2]");
  EXPECT_EQ(value_of("a ${item.e}", input), "");
  EXPECT_EQ(value_of("a ${item.e:-b}", input), "");
  EXPECT_EQ(value_of("a ${item}", input), input.item);
  EXPECT_EQ(value_of("a ${item}", {.item = "\"text\""}), "text");
}

TEST(Expand, KnowsTheJobAndItsSurroundings) {
  TemplateInput input{.job_id = "7", .attempts = 3, .failures = 2};
  input.headers = {{"trace", "t1"}, {"a.b", "dots"}};
  input.queue = "orders";
  input.worker = "shipper";
  input.run_id = "r1";
  input.project_root = "/srv/shop";
  input.environment = [](std::string_view name) {
    return name == "HOME" ? std::optional<std::string>("/root") : std::nullopt;
  };
  const auto list = expand(parse("a ${job.id} ${job.attempts} ${job.failures} ${job.headers.trace} "
                                 "${job.headers.a.b} ${queue} ${worker} ${run.id} ${project.root} "
                                 "${env.HOME} ${env.NONE:-x}"),
                           input);
  ASSERT_TRUE(list) << list.error().detail;
  EXPECT_THAT(
      *list,
      ElementsAre(Pair("REPRISE_JOB_id", "7"), Pair("REPRISE_JOB_attempts", "3"),
                  Pair("REPRISE_JOB_failures", "2"), Pair("REPRISE_JOB_headers_trace", "t1"),
                  Pair("REPRISE_JOB_headers_a_b", "dots"), Pair("REPRISE_QUEUE_name", "orders"),
                  Pair("REPRISE_WORKER_name", "shipper"), Pair("REPRISE_RUN_id", "r1"),
                  Pair("REPRISE_PROJECT_root", "/srv/shop"), Pair("REPRISE_ENV_HOME", "/root"),
                  Pair("REPRISE_ENV_NONE", "x")));
}

struct Absent {
  std::string_view text;
  std::string_view item;
};
class Missing : public testing::TestWithParam<Absent> {};

TEST_P(Missing, IsAnErrorThatNamesTheTemplate) {
  const auto list = expand(parse(GetParam().text), {.item = GetParam().item});
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, Errc::missing_field);
  const auto name = GetParam().text.substr(2);
  EXPECT_THAT(list.error().detail, HasSubstr(std::string(name) + ": "));
}

INSTANTIATE_TEST_SUITE_P(
    Templates, Missing,
    testing::Values(Absent{"a ${item.x}", "{}"}, Absent{"a ${item.x}", R"({"x": null})"},
                    Absent{"a ${item.x.y}", R"({"x": "y"})"},
                    Absent{"a ${item.x.y}", R"({"x": null})"}, Absent{"a ${item.x}", "[1]"},
                    Absent{"a ${item.x}", ""}, Absent{"a ${item.x}", "not JSON"},
                    Absent{"a ${item}", ""}, Absent{"a ${item}", "null"},
                    Absent{"a ${job.headers.x}", "{}"}, Absent{"a ${queue}", "{}"},
                    Absent{"a ${env.X}", "{}"}, Absent{"a ${item.x}", R"({"x": "\ud800"})"}));

TEST(Missing, TakesTheFallback) {
  EXPECT_EQ(value_of("a ${item.x:-y z}", {.item = "{}"}), "y z");
  EXPECT_EQ(value_of("a ${item.x:-}", {.item = R"({"x": null})"}), "");
  EXPECT_EQ(value_of("a ${queue:-none}", {}), "none");
}

TEST(Expand, RefusesWhatNoVariableCanHold) {
  const auto nul = expand(parse("a ${item.x}"), {.item = R"({"x": "a\u0000b"})"});
  ASSERT_FALSE(nul);
  EXPECT_EQ(nul.error().code, Errc::missing_field);
  EXPECT_THAT(nul.error().detail, HasSubstr("${item.x}: holds a NUL character"));

  const std::size_t most = kMostVariableBytes - std::string_view("REPRISE_ITEM_x=").size();
  const auto item = [](std::size_t bytes) {
    return std::string(R"({"x": ")").append(bytes, 'a').append("\"}");
  };
  const std::string fits = item(most);
  EXPECT_EQ(value_of("a ${item.x}", {.item = fits}).size(), most);
  const std::string long_one = item(most + 1);
  const auto refused = expand(parse("a ${item.x}"), {.item = long_one});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::missing_field);
  EXPECT_THAT(refused.error().detail, HasSubstr("read it from standard input"));
}

}  // namespace
}  // namespace reprise::runbook
