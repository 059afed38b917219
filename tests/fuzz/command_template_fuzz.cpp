// Whatever stands in a command: its templates become references to variables and nothing else of it
// changes, what a job brings never becomes a part of the script, and a script has nothing of ours
// left to be replaced.
//
// An input is the command, a 0x00, and the item as JSON.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "runbook/command_template.h"

namespace reprise::runbook {
namespace {

struct Parsed {
  CommandTemplate command;
  bool usable = true;
};

Parsed parse(std::string_view text, TemplateScope scope) {
  std::vector<TemplateProblem> problems;
  Parsed parsed{.command = CommandTemplate::parse(text, scope, problems)};
  std::size_t lines = 1;
  for (const char c : text) lines += c == '\n';
  for (const TemplateProblem& problem : problems) {
    parsed.usable &= problem.warning;
    REPRISE_CHECK(!problem.message.empty() && problem.line >= 1 && problem.line <= lines);
  }
  return parsed;
}

bool is_variable(std::string_view name) {
  if (!name.starts_with("REPRISE_")) return false;
  for (const char c : name) {
    const bool known = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!known && c != '_') return false;
  }
  return true;
}

void check_references(const CommandTemplate& command) {
  std::vector<std::string_view> names;
  for (const TemplateReference& reference : command.references()) {
    REPRISE_CHECK(is_variable(reference.variable));
    for (const std::string_view name : names) REPRISE_CHECK(name != reference.variable);
    names.push_back(reference.variable);
    REPRISE_CHECK(command.script().find(reference.variable) != std::string::npos);
  }
  if (names.empty()) REPRISE_CHECK(command.script() == command.source());
}

void check_expansion(const CommandTemplate& command, std::string_view item) {
  TemplateInput input{.item = item,
                      .job_id = "7ZK3M9QAX2B4C",
                      .attempts = 2,
                      .failures = 1,
                      .headers = {{"tenant", "a"}},
                      .queue = "orders",
                      .worker = "shipper",
                      .run_id = "r1",
                      .project_root = "/project"};
  input.environment = [](std::string_view name) -> std::optional<std::string> {
    if (name == "HOME") return "/home/me";
    return std::nullopt;
  };
  const auto expanded = expand(command, input);
  if (!expanded) {
    REPRISE_CHECK(expanded.error().code == Errc::missing_field && !expanded.error().detail.empty());
    return;
  }
  REPRISE_CHECK(expanded->size() == command.references().size());
  for (const auto& [name, value] : *expanded) {
    REPRISE_CHECK(is_variable(name));
    REPRISE_CHECK(value.find('\0') == std::string::npos);
    REPRISE_CHECK(name.size() + 1 + value.size() <= kMostVariableBytes);
  }
}

void check(std::string_view text, std::string_view item, TemplateScope scope) {
  const Parsed parsed = parse(text, scope);
  REPRISE_CHECK(parsed.command.source() == text);
  if (!parsed.usable) return;
  check_references(parsed.command);
  check_expansion(parsed.command, item);
  // References are the shell's own.
  const Parsed again = parse(parsed.command.script(), scope);
  if (again.usable) {
    REPRISE_CHECK(again.command.references().empty());
    REPRISE_CHECK(again.command.script() == parsed.command.script());
  }
}

}  // namespace
}  // namespace reprise::runbook

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise::runbook;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  const std::string_view item = end == input.npos ? R"({"id":1})" : input.substr(end + 1);
  check(input.substr(0, end), item, TemplateScope::item);
  check(input.substr(0, end), item, TemplateScope::list);
  return 0;
}

std::vector<std::string> reprise::fuzz::seeds() {
  using namespace std::string_literals;
  return {"ship ${item.id} \"${item.a.b:-none}\"\0{\"id\":7,\"a\":{\"b\":\"x y\"}}"s};
}
