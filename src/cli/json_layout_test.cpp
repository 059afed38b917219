#include "cli/json_layout.h"

#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

TEST(JsonLayout, OneMemberALine) {
  EXPECT_EQ(indented_json(R"({"a":1.0,"b":[true,null],"c":{"d":"x"}})"),
            "{\n"
            "  \"a\": 1.0,\n"
            "  \"b\": [\n"
            "    true,\n"
            "    null\n"
            "  ],\n"
            "  \"c\": {\n"
            "    \"d\": \"x\"\n"
            "  }\n"
            "}");
}

TEST(JsonLayout, WhatIsEmptyStaysOnItsLine) {
  EXPECT_EQ(indented_json("{\"a\": { }, \"b\":[\n]}"), "{\n  \"a\": {},\n  \"b\": []\n}");
  EXPECT_EQ(indented_json("{}"), "{}");
}

TEST(JsonLayout, StringsAreLeftAlone) {
  EXPECT_EQ(indented_json(R"("a,{[ \" }:")"), R"("a,{[ \" }:")");
  EXPECT_EQ(indented_json(R"(["\\",1])"), "[\n  \"\\\\\",\n  1\n]");
}

TEST(JsonLayout, ControlsAreEscaped) { EXPECT_EQ(indented_json("\"\x7f\""), "\"\\u007f\""); }

}  // namespace
}  // namespace reprise::cli
