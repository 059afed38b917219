#include "base/json_view.h"

#include <gtest/gtest.h>

#include <string>

namespace reprise {
namespace {

TEST(JsonView, GivesTheBytesOfAValue) {
  const JsonView view(R"( {"payload" : {"a": 1.0 , "b":[ 2 ]} , "id":"x"} )");
  EXPECT_EQ(view["payload"].raw(), R"({"a": 1.0 , "b":[ 2 ]})");
  EXPECT_EQ(view["payload"]["a"].raw(), "1.0");
  EXPECT_EQ(view["id"].string_or(""), "x");
}

TEST(JsonView, BracketsAndQuotesInStringsMeanNothing) {
  const JsonView view(R"({"a":"}],\"{[","b":2})");
  EXPECT_EQ(view["b"].raw(), "2");
  EXPECT_EQ(view["a"].string_or(""), R"(}],"{[)");
}

TEST(JsonView, DecodesNamesAndStrings) {
  const JsonView view(R"({"\u0061b":"\u00e9\n"})");
  EXPECT_EQ(view["ab"].string_or(""), "é\n");
  EXPECT_EQ(view.members().front().first, "ab");
}

TEST(JsonView, ListsElements) {
  EXPECT_TRUE(JsonView("[]").elements().empty());
  EXPECT_TRUE(JsonView("[ ]").elements().empty());
  const auto elements = JsonView(R"([1, [2,3] ,{"a":[]},"x"])").elements();
  ASSERT_EQ(elements.size(), 4U);
  EXPECT_EQ(elements[1].raw(), "[2,3]");
  EXPECT_EQ(elements[2].raw(), R"({"a":[]})");
}

TEST(JsonView, TellsKindsApart) {
  const JsonView view(R"({"null":null,"true":true,"n":-1.5,"big":18446744073709551615})");
  EXPECT_TRUE(view["null"].is_null());
  EXPECT_TRUE(view["null"].present());
  EXPECT_FALSE(view["absent"].present());
  EXPECT_TRUE(view["absent"].is_null());
  EXPECT_TRUE(view["true"].is_true());
  EXPECT_EQ(view["n"].number(), -1.5);
  EXPECT_EQ(view["n"].unsigned_integer(), std::nullopt);
  EXPECT_EQ(view["big"].unsigned_integer(), 18446744073709551615U);
  EXPECT_EQ(view["true"].string_or("no"), "no");
}

TEST(JsonView, WhatIsNotJsonIsAbsent) {
  for (const char* text :
       {"", " ", "{", "[", "\"", "\"\\", "<html>x</html> y", "{} {}", "}", "]"}) {
    const JsonView view(text);
    EXPECT_FALSE(view.present()) << text;
    EXPECT_FALSE(view["a"].present()) << text;
    EXPECT_TRUE(view.elements().empty()) << text;
  }
  // Broken inside: what can be read is read, and nothing beyond the end is touched.
  EXPECT_TRUE(JsonView("{\"a\"}").members().empty());
  EXPECT_EQ(JsonView("[1,]").elements().size(), 1U);
}

TEST(JsonView, DepthCostsNoStack) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::string text = R"({"a":)" + deep + "}";
  EXPECT_EQ(JsonView(text)["a"].raw(), deep);
}

}  // namespace
}  // namespace reprise
