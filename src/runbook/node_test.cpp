#include "runbook/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise::runbook {
namespace {

using testing::HasSubstr;

// "3:5 message" of the first problem.
std::string problem_of(const Document& document) {
  if (document.problems.empty()) return "none";
  const SyntaxProblem& first = document.problems.front();
  return std::to_string(first.position.line) + ":" + std::to_string(first.position.column) + " " +
         first.message;
}

TEST(JsonTree, KnowsWhereEverythingStands) {
  const Document document = read_json("{\n  \"é\": 1,\n  \"b\": {\"c\": [true,\n \"x\\ny\"]}\n}");
  ASSERT_TRUE(document.root) << problem_of(document);
  const Member& first = document.root->members.at(0);
  EXPECT_EQ(first.key, "é");
  EXPECT_EQ(first.position, (Position{2, 3}));
  EXPECT_EQ(first.value.position, (Position{2, 8}));
  const Node& list = document.root->members.at(1).value.members.at(0).value;
  EXPECT_EQ(list.items.at(0).position, (Position{3, 15}));
  EXPECT_EQ(list.items.at(1).position, (Position{4, 2}));
  EXPECT_EQ(list.items.at(1).text, "x\ny");
  EXPECT_FALSE(list.items.at(1).multiline);
}

TEST(JsonTree, ReadsEveryKindOfValue) {
  const Document document = read_json(
      R"( {"n": null, "t": true, "i": -12, "r": 1.50e3, "s": "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00",)"
      R"( "l": [], "o": {}} )");
  ASSERT_TRUE(document.root) << problem_of(document);
  EXPECT_EQ(document.root->find("s")->value.text, "\"\\/\b\f\n\r\té😀");
  EXPECT_EQ(document.root->find("r")->value.text, "1.50e3");
  EXPECT_EQ(to_json(*document.root),
            "{\"n\":null,\"t\":true,\"i\":-12,\"r\":1.50e3,"
            "\"s\":\"\\\"\\\\/\\b\\f\\n\\r\\té😀\",\"l\":[],\"o\":{}}");
}

TEST(JsonTree, TellsEveryKeyThatStandsTwice) {
  const Document document = read_json("{\"a\": {\"b\": 1,\n\"b\": 2},\n\"a\": 3}");
  ASSERT_EQ(document.problems.size(), 2U);
  EXPECT_EQ(document.problems[0].path, "a.b");
  EXPECT_EQ(problem_of(document), "2:1 'b' is defined twice, first at line 1");
  EXPECT_EQ(document.problems[1].message, "'a' is defined twice, first at line 1");
  EXPECT_TRUE(document.root);
}

struct Bad {
  std::string text;
  std::string_view problem;
};
class NotJson : public testing::TestWithParam<Bad> {};

TEST_P(NotJson, IsRefusedWithItsPlace) {
  const Document document = read_json(GetParam().text);
  EXPECT_FALSE(document.root);
  EXPECT_THAT(problem_of(document), HasSubstr(std::string(GetParam().problem)));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, NotJson,
    testing::Values(Bad{"", "1:1 not JSON"}, Bad{"[1]", "1:1 must be an object, not a list"},
                    Bad{"3", "must be an object, not a number"},
                    Bad{"{\n\"a\": 1,\n}", "3:1 not JSON: expected a field name"},
                    Bad{"{\"a\": [1,]}", "1:10 not JSON: expected a value"},
                    Bad{"{\"a\": 1} x", "1:10 not JSON: unexpected text"},
                    Bad{"{\"a\": 01}", "leading zero"}, Bad{"{\"a\": 1e999}", "too large"},
                    Bad{"{'a': 1}", "1:2 not JSON"}, Bad{"{\"a\": \"\xff\"}", "1:8 not UTF-8"},
                    Bad{"{\"a\": \"\\ud800\"}", "surrogate"}, Bad{"{\"a\": \"", "does not end"},
                    Bad{"\xEF\xBB\xBF{}", "byte order mark"},
                    Bad{std::string(100'000, '['), "nested deeper than 64 levels"},
                    Bad{"{\"a\": // comment\n1}", "1:7 not JSON"}));

TEST(TomlTree, KnowsWhereEverythingStands) {
  const Document document = read_toml(
      "[queue.b]\ntype = \"x\"\nretry = { attempts = 3 }\n[queue.a]\nlist = \"\"\"\nls\nrm\"\"\"\n"
      "take = '''ls'''\n[[pipeline.p.step]]\nname = \"é\"\n[[pipeline.p.step]]\n");
  ASSERT_TRUE(document.root) << problem_of(document);
  const Node& queues = document.root->find("queue")->value;
  // In the order of the file, not of the names.
  EXPECT_EQ(queues.members.at(0).key, "b");
  EXPECT_EQ(queues.members.at(0).position, (Position{1, 8}));
  EXPECT_EQ(queues.members.at(0).value.find("retry")->value.find("attempts")->position,
            (Position{3, 11}));
  const Node& list = queues.members.at(1).value.find("list")->value;
  EXPECT_TRUE(list.multiline);
  EXPECT_EQ(list.text_line, 6U);
  EXPECT_EQ(list.text, "ls\nrm");
  EXPECT_EQ(queues.members.at(1).value.find("take")->value.text_line, 8U);
  const Node& steps = document.root->find("pipeline")->value.find("p")->value.find("step")->value;
  EXPECT_EQ(steps.items.at(1).position.line, 11U);
}

TEST(TomlTree, ReadsEveryKindOfValue) {
  const Document document = read_toml(
      "t = true\ni = 0xff\nr = 1e3\ns = 'x'\nl = [1, 'a']\nd = 2024-01-01\nn = nan\no = {a = 1}");
  ASSERT_TRUE(document.root) << problem_of(document);
  EXPECT_EQ(document.root->find("i")->value.text, "255");
  EXPECT_EQ(document.root->find("d")->value.kind, Node::Kind::time);
  EXPECT_EQ(first_without_json(*document.root), &document.root->find("d")->value);
  EXPECT_EQ(first_without_json(document.root->find("n")->value), &document.root->find("n")->value);
  EXPECT_EQ(to_json(document.root->find("l")->value), "[1,\"a\"]");
  EXPECT_EQ(to_json(document.root->find("o")->value), "{\"a\":1}");
}

class NotToml : public testing::TestWithParam<Bad> {};

TEST_P(NotToml, IsRefusedWithItsPlace) {
  const Document document = read_toml(GetParam().text);
  EXPECT_FALSE(document.root);
  EXPECT_THAT(problem_of(document), HasSubstr(std::string(GetParam().problem)));
}

std::string repeated(std::string_view what, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text.append(what);
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Texts, NotToml,
    testing::Values(
        Bad{"a = 1\nb = ", "2:"}, Bad{"a\n", "1:"}, Bad{"a = [1, 2\nb = 3", "2:1 not TOML"},
        Bad{"a = 'x", "1:"}, Bad{"a = \"\xff\"", "1:6 not UTF-8"},
        Bad{"[queue.a]\n\n[queue.a]\nb = 1", "3:1 'queue.a' is defined twice, first at line 1"},
        Bad{"[queue.a]\nb = 1\n c = 2\nb = 3", "4:5 'b' is defined twice, first at line 2"},
        Bad{"[queue.a]\n[[queue.a]]", "2:1 'queue.a' is defined twice, first at line 1"},
        Bad{repeated("a.", 500'000) + "b = 1", "a key of more than 16 parts"},
        Bad{"x = {" + repeated("a.", 500'000) + "b = 1}", "a key of more than 16 parts"},
        Bad{"[" + repeated("\"a\" . ", 100'000) + "b]", "a key of more than 16 parts"},
        Bad{"x = " + repeated("[", 100'000), "1:"},
        Bad{"x = " + repeated("[", 100) + repeated("]", 100), "nested deeper than 64 levels"},
        Bad{"x = " + repeated("{a.b.c.d = ", 100) + "1" + repeated("}", 100),
            "nested deeper than 64 levels"}));

TEST(TomlTree, TakesDotsThatAreNoKeys) {
  const std::string dots(1000, '.');
  const std::vector<std::string> texts = {
      "a = '" + dots + "' # " + dots, "a = \"\"\"" + dots + "\\\"" + dots + "\"\"\"\"",
      "a = '''\n'" + dots + "'''\n# " + dots,
      "a = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5]"};
  for (const std::string& text : texts) {
    EXPECT_EQ(problem_of(read_toml(text)), "none") << text;
  }
}

}  // namespace
}  // namespace reprise::runbook
