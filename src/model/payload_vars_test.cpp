#include "model/payload_vars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/random.h"

namespace reprise {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;
using Names = std::vector<std::string>;

// The payload as the queue takes it, or why it does not.
std::string taken(std::string payload, const Names& vars, const std::string& defaults = {},
                  PayloadKind kind = PayloadKind::json) {
  const auto rules = PayloadVars::make({.vars = vars, .defaults = defaults});
  if (!rules) return payload;
  const std::string before = payload;
  const Status applied = rules->apply(payload, kind, "orders");
  if (applied) return payload;
  EXPECT_EQ(payload, before) << "a refusal changes nothing";
  EXPECT_EQ(applied.error().code, Errc::missing_var);
  return "refused: " + applied.error().detail;
}

constexpr char kRequires[] = ": queue 'orders' requires id, customer";

TEST(PayloadVars, AreNotThereForAConfigThatAsksForNothing) {
  EXPECT_EQ(PayloadVars::make({}), nullptr);
  EXPECT_NE(PayloadVars::make({.vars = {"a"}}), nullptr);
  EXPECT_NE(PayloadVars::make({.defaults = R"({"a":1})"}), nullptr);
}

TEST(PayloadVars, TakeWhatHasAllFieldsAsItIs) {
  for (const char* payload : {R"({"id":1,"customer":"a"})", R"({"customer":{"id":null},"id":[]})",
                              " { \"id\" : 0 ,\n\t\"customer\"\r:\"\" } ",
                              R"({"id":false,"x":null,"customer":"}{\"\\","y":[{"id":null}]})"}) {
    EXPECT_EQ(taken(payload, {"id", "customer"}), payload);
  }
}

TEST(PayloadVars, NameTheFirstMissingFieldAndAllThatAreRequired) {
  const Names vars{"id", "customer"};
  EXPECT_EQ(taken(R"({"id":1})", vars),
            std::string("refused: field 'customer' is missing") + kRequires);
  EXPECT_EQ(taken(R"({"customer":1})", vars),
            std::string("refused: field 'id' is missing") + kRequires);
  EXPECT_EQ(taken("{}", vars), std::string("refused: field 'id' is missing") + kRequires);
}

TEST(PayloadVars, NullCountsAsMissingAndIsToldSo) {
  EXPECT_EQ(taken(R"({"id":1,"customer": null})", {"id", "customer"}),
            std::string("refused: field 'customer' is null, which counts as missing") + kRequires);
  EXPECT_THAT(taken(R"({"id":null})", {"id"}, R"({"id":1})"), HasSubstr("'id' is null"))
      << "it is there, so no default takes its place";
  EXPECT_THAT(taken("{}", {"id"}, R"({"id":null})"), HasSubstr("'id' is null"));
}

TEST(PayloadVars, OnlyTheTopLevelCounts) {
  for (const char* payload : {R"({"a":{"id":1}})", R"({"a":[{"id":1}]})", R"({"a":"\"id\":1"})",
                              R"({"":{"":{"id":1}},"Id":1,"id ":2,"i":3,"idx":4})"}) {
    EXPECT_THAT(taken(payload, {"id"}), StartsWith("refused: field 'id' is missing"));
  }
}

TEST(PayloadVars, APayloadMustBeAnObjectWhenFieldsAreRequired) {
  for (const char* payload : {"null", "1", "\"id\"", "[]", R"([{"id":1}])", "true", "", "{", "body",
                              R"({"id")", R"({"id":1)", R"({"id":1}x)", R"({"id":1}})", "{\"id"}) {
    EXPECT_EQ(taken(payload, {"id", "customer"}),
              std::string("refused: the payload is not a JSON object") + kRequires)
        << payload;
  }
  EXPECT_EQ(taken(R"({"id":1})", {"id", "customer"}, {}, PayloadKind::bytes),
            std::string("refused: the payload is bytes and not a JSON object") + kRequires);
}

TEST(PayloadVars, DefaultsAloneLeaveOtherPayloadsAlone) {
  for (const char* payload : {"null", "1", "[]", "", "{"}) {
    EXPECT_EQ(taken(payload, {}, R"({"a":1})"), payload);
  }
  EXPECT_EQ(taken("{}", {}, R"({"a":1})", PayloadKind::bytes), "{}");
}

TEST(PayloadVars, DefaultsFollowWhatWasGiven) {
  const std::string defaults = R"({"b":1.0,"a":{"x":[1e2,"}"]},"c":null})";
  EXPECT_EQ(taken("{}", {}, defaults), defaults);
  EXPECT_EQ(taken("{ }", {}, R"({"b":1.0})"), R"({ "b":1.0})");
  EXPECT_EQ(taken(R"({"x":1e2})", {}, defaults),
            R"({"x":1e2,"b":1.0,"a":{"x":[1e2,"}"]},"c":null})");
  EXPECT_EQ(taken(R"({"b":2,"c":0})", {}, defaults), R"({"b":2,"c":0,"a":{"x":[1e2,"}"]}})");
  EXPECT_EQ(taken(R"({"b":null,"c":0,"a":1})", {}, defaults), R"({"b":null,"c":0,"a":1})");
  EXPECT_EQ(taken(" {\"x\": 1 \n} ", {}, R"({"b":2})"), " {\"x\": 1 \n,\"b\":2} ");
}

TEST(PayloadVars, DefaultsSatisfyWhatIsRequired) {
  EXPECT_EQ(taken(R"({"id":7})", {"id", "customer"}, R"({"customer":"unknown"})"),
            R"({"id":7,"customer":"unknown"})");
  EXPECT_THAT(taken("{}", {"id", "customer"}, R"({"customer":"unknown"})"),
              StartsWith("refused: field 'id' is missing"));
}

TEST(PayloadVars, NamesAreWhatTheySayAndNotHowTheyAreWritten) {
  EXPECT_EQ(taken(R"({"\u0069d":1})", {"id"}), R"({"\u0069d":1})");
  EXPECT_EQ(taken(R"({"id":1})", {}, R"({"\u0069d":2,"\u0061":3})"), R"({"id":1,"\u0061":3})");
  const Names odd{"\"\\/\b\f\n\r\t", "ä€😀", "a.b", std::string("\0", 1), " "};
  const std::string payload =
      R"({"\"\\\/\b\f\n\r\t":1,"\u00E4\u20ac\uD83D\uDE00":2,"a.b":3,"\u0000":4," ":5})";
  EXPECT_EQ(taken(payload, odd), payload);
  EXPECT_EQ(taken(R"({"ä€😀":1})", {"ä€😀"}), R"({"ä€😀":1})");
}

TEST(PayloadVars, ANameWithABrokenEscapeIsNoJson) {
  for (const char* name : {R"(\u12)", R"(\uD83D)", R"(\uD83Dx)", R"(\uDE00\uD83D)", R"(\x)",
                           R"(\uD83D\u0041)", R"(\uZZZZ)"}) {
    const std::string payload = std::string("{\"") + name + "\":1,\"id\":1}";
    EXPECT_THAT(taken(payload, {"id"}), HasSubstr("not a JSON object")) << name;
  }
}

// Readers differ in which of them counts, so each must be something.
TEST(PayloadVars, OfANameThatOccursTwiceEachMustBeSomething) {
  EXPECT_EQ(taken(R"({"id":1,"id":2})", {"id"}, R"({"id":3})"), R"({"id":1,"id":2})");
  EXPECT_THAT(taken(R"({"id":1,"id":null})", {"id"}), HasSubstr("is null"));
  EXPECT_THAT(taken(R"({"id":null,"\u0069d":1})", {"id"}), HasSubstr("is null"));
}

TEST(PayloadVars, AListOfManyFieldsIsCutInTheMessage) {
  Names many;
  for (int i = 10; i < 74; ++i) many.emplace_back(198, 'x').append(std::to_string(i));
  const std::string refused = taken("{}", many);
  EXPECT_THAT(refused, EndsWith(" and 59 more"));
  EXPECT_LT(refused.size(), 2000U);
}

TEST(PayloadVars, DepthCostsNoStack) {
  std::string deep = R"({"a":)" + std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_EQ(taken(deep + R"(,"id":1})", {"id"}), deep + R"(,"id":1})");
  EXPECT_THAT(taken(deep, {"id"}), HasSubstr("not a JSON object"));
}

TEST(PayloadVars, AHugePayloadIsLookedThroughOnce) {
  std::string payload = "{";
  for (int i = 0; i < 200'000; ++i)
    payload += R"("\u006B)" + std::to_string(i) + R"(":{"id":null},)";
  payload += R"("text":")" + std::string(4 << 20, 'x') + R"("})";
  const std::string grown = taken(payload, {"id"}, R"({"id":1})");
  EXPECT_THAT(grown, SizeIs(payload.size() + 7));
  EXPECT_TRUE(grown.ends_with(R"(x","id":1})"));
}

// --- Against a parser.

class Documents {
 public:
  explicit Documents(std::uint64_t seed) : random_(seed) {}

  // An object whose names are distinct, with any spelling of them and blanks anywhere.
  std::string object(int depth) {
    std::string out = "{";
    out += blanks();
    std::vector<bool> used(kNames.size());
    for (std::uint64_t left = random_.below(5); left > 0; --left) {
      const auto which = random_.below(kNames.size());
      if (used[which]) continue;
      used[which] = true;
      if (out.back() != '{' && out.find('"') != std::string::npos) out += ",";
      out.append(blanks()).append(spelled(kNames[which])).append(blanks()).append(":");
      out.append(blanks()).append(value(depth + 1)).append(blanks());
    }
    out += "}";
    return out;
  }
  Names some_names() {
    Names names;
    for (const auto& name : kNames) {
      if (random_.below(3) == 0) names.push_back(name);
    }
    return names;
  }

 private:
  const Names kNames{"a", "b", "id", "x y", "\"", "\\", "ä", "😀", "{", ""};

  std::string value(int depth) {
    switch (random_.below(depth > 4 ? 5 : 7)) {
      case 0:
        return "null";
      case 1:
        return "true";
      case 2:
        return "-1.50e+3";
      case 3:
        return std::to_string(random_.below(100));
      case 4:
        return spelled(kNames[random_.below(kNames.size())]);
      case 5:
        return object(depth);
      default:
        return array(depth + 1);
    }
  }
  std::string spelled(const std::string& text) {
    if (text == "id" && random_.below(2) == 0) return R"("\u0069\u0064")";
    if (text == "😀" && random_.below(2) == 0) return R"("\ud83d\ude00")";
    if (text == "ä" && random_.below(2) == 0) return R"("\u00e4")";
    std::string out;
    append_json_string(out, text);
    return out;
  }
  std::string array(int depth) {
    std::string out = "[";
    out.append(blanks()).append(value(depth)).append(",").append(value(depth));
    return out.append(blanks()).append("]");
  }
  const char* blanks() {
    static constexpr std::array kBlanks = {"", "", "", " ", "\n\t", "\r "};
    return kBlanks[random_.below(kBlanks.size())];
  }

  SeededRandom random_;
};

// What a parser says the payload becomes; nothing: it is refused.
std::optional<Json::Object> expected(const Json& payload, const Names& vars, const Json& defaults) {
  Json::Object all = *payload.object();
  for (const auto& [name, value] : *defaults.object()) {
    if (payload.find(name) == nullptr) all.emplace_back(name, value);
  }
  const Json whole(all);
  for (const auto& name : vars) {
    if (whole[name].is_null()) return std::nullopt;
  }
  return all;
}

TEST(PayloadVars, DoWhatAParserWouldDo) {
  int refused = 0;
  int grown = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Documents documents(seed);
    const std::string text = documents.object(0);
    const auto defaults = Json::parse(documents.object(0));
    const Names vars = seed % 3 == 0 ? Names{} : documents.some_names();
    const auto payload = Json::parse(text);
    ASSERT_TRUE(payload && defaults) << text;
    const bool any = !defaults->object()->empty();
    const std::string result = taken(text, vars, any ? defaults->dump() : "");
    const auto all = expected(*payload, vars, *defaults);
    ASSERT_EQ(!all, result.starts_with("refused: field ")) << text << "\n" << result;
    if (!all) {
      ++refused;
      continue;
    }
    const auto read = Json::parse(result);
    ASSERT_TRUE(read) << text << "\n" << result;
    ASSERT_EQ(read->dump(), Json(*all).dump()) << text << "\n" << result;
    ASSERT_TRUE(result.starts_with(text.substr(0, text.size() - 1))) << "given bytes stay";
    grown += result == text ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(grown, 1000);
}

TEST(PayloadVars, DamageIsNeverReadBeyondItsEnd) {
  SeededRandom random(7);
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    std::string text = Documents(seed).object(0);
    text.resize(random.below(text.size() + 1));
    if (!text.empty()) text[random.below(text.size())] = static_cast<char>(random.below(256));
    const std::string exact(text.begin(), text.end());  // no spare bytes behind it
    taken(exact, {"id", "a"}, R"({"b":1})");
  }
}

}  // namespace
}  // namespace reprise
