// Files that went wrong on the way: whatever they hold, they are read or refused, and nothing else.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runbook/load.h"

namespace reprise::runbook {
namespace {

constexpr std::string_view kToml = R"toml(
[queue.orders]
type = "persisted"
vars = ["id", "customer"]
defaults = { customer = "unknown", n = [1, 2.5, true] }
retry = { attempts = 3, backoff = { base = "1s", max = "1m" } }
[queue.bugs]
type = "external"
list = "gh issue list --json number"
take = '''gh issue edit ${item.number} "$(date +%s ${job.id:-x})" '''
poll = "30s"
[pipeline.ship]
timeout = "10m"
on_fail = "undo"
[[pipeline.ship.step]]
name = "pick"
run = """
cat <<END | bash -c 'read x; echo ${item.a.b} "${x}"'
  ${item.id} $(echo `pwd` ${FOO:-${item.x}}) \\${item.y}
END
case ${item.id} in a|b) echo $((1 + 2)) ;
; *) [[ ${item.id} == x* ]] ;
; esac
"""
[[pipeline.ship.step]]
name = "undo"
run = "./undo.sh ${item.id}"
[worker.shipper]
queue = "orders"
run = "ship"
concurrency = 4
[worker.fixer]
queue = "bugs"
run = "ship"
)toml";

constexpr std::string_view kJson = R"json({
 "queue": {"orders": {"type": "persisted", "vars": ["id"], "retry": {"attempts": 3}},
           "bugs": {"type": "external", "list": "ls", "take": "take ${item.id}", "poll": 30}},
 "pipeline": {"ship": {"timeout": "10m", "step": [
   {"name": "pick", "run": "cat <<'END'\n${item.id}\nEND\n", "on_fail": "undo"},
   {"name": "undo", "run": "echo \"$(echo '\u00e9' `x`)\" \ud83d\ude00"}]}},
 "worker": {"shipper": {"queue": "orders", "run": "ship", "concurrency": 4, "autostart": true},
            "fixer": {"queue": "bugs", "run": "ship"}}
})json";

// Pieces that mean something to one of the readers.
const std::vector<std::string> kPieces = {
    "${item.x}", "${",   "}",    "$(",        ")",     "((",  "))",   "`",  "'",   "\"",
    "\"\"\"",    "'''",  "\\",   "[",         "]",     "[[",  "]]",   "{",  ",",   "=",
    ".",         "\n",   "#",    "<<END\n",   "END\n", "$'",  "\xff", "\r", "\t",  "-1",
    "0",         "null", "$((",  "a[",        "]=",    ";;",  "esac", ":-", "nan", "1e9",
    "\x7f",      " ",    "let ", "bash -c '", "case ", " in "};

std::string mutated(std::string text, std::mt19937_64& random) {
  const auto below = [&](std::size_t limit) { return random() % std::max<std::size_t>(limit, 1); };
  const std::size_t changes = 1 + below(6);
  for (std::size_t i = 0; i < changes; ++i) {
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text.erase(at, 1 + below(20));
        break;
      case 1:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), below(60)));
        break;
      case 3:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

class Mutations : public testing::TestWithParam<std::pair<const char*, std::string_view>> {};

TEST_P(Mutations, AreReadOrRefused) {
  const auto [name, good] = GetParam();
  ASSERT_TRUE(parse_runbook("/srv/shop", "", {{name, std::string(good)}}).runbook);
  std::mt19937_64 random(7);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = mutated(std::string(good), random);
    const auto result = parse_runbook("/srv/shop", "", {{name, text}});
    bool has_errors = false;
    for (const Finding& finding : result.findings) {
      has_errors = has_errors || finding.severity == Severity::error;
      EXPECT_FALSE(finding.message.empty());
    }
    ASSERT_EQ(has_errors, !result.runbook.has_value()) << text;
    refused += has_errors ? 1 : 0;
  }
  EXPECT_GT(refused, 1000);
}

INSTANTIATE_TEST_SUITE_P(Formats, Mutations,
                         testing::Values(std::pair(".reprise/a.toml", kToml),
                                         std::pair(".reprise/a.json", kJson)));

// Commands made of nothing but pieces that mean something.
TEST(Mutations, OfCommandsAreReadOrRefused) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    const std::size_t length = 1 + random() % 30;
    for (std::size_t i = 0; i < length; ++i) text += kPieces[random() % kPieces.size()];
    std::vector<TemplateProblem> problems;
    const auto command = CommandTemplate::parse(text, TemplateScope::item, problems);
    for (const TemplateProblem& problem : problems) EXPECT_GE(problem.line, 1U);
    if (problems.empty() && command.references().empty()) {
      EXPECT_EQ(command.script(), text);
    }
  }
}

}  // namespace
}  // namespace reprise::runbook
