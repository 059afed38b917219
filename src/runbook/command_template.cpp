#include "runbook/command_template.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runbook/reference_table.h"
#include "runbook/shell_scanner.h"

namespace reprise::runbook {
namespace {

// A template in a nested shell's command is looked at twice; it is told once, as an error if it was
// one at all.
void add(std::vector<TemplateProblem>& problems, TemplateProblem problem) {
  for (TemplateProblem& known : problems) {
    if (known.line != problem.line || known.message != problem.message) continue;
    known.warning = known.warning && problem.warning;
    return;
  }
  problems.push_back(std::move(problem));
}

}  // namespace

CommandTemplate CommandTemplate::parse(std::string_view text, TemplateScope scope,
                                       std::vector<TemplateProblem>& problems) {
  ReferenceTable references;
  ShellScanner scanner(text, {.scope = scope}, references);
  scanner.scan();
  for (const ScanProblem& problem : scanner.problems()) {
    const auto before = text.substr(0, problem.offset);
    const auto line = static_cast<std::size_t>(std::ranges::count(before, '\n') + 1);
    add(problems, {problem.warning, line, problem.message});
  }
  std::vector<Edit> edits = scanner.edits();
  std::ranges::sort(edits, {}, &Edit::begin);
  CommandTemplate command;
  command.source_ = text;
  std::size_t at = 0;
  std::set<std::string_view> used;
  for (const Edit& edit : edits) {
    // Never twice in one place, whatever was found there.
    if (edit.begin < at) continue;
    command.script_.append(text.substr(at, edit.begin - at)).append(edit.text);
    used.insert(edit.variable);
    at = edit.end;
  }
  command.script_.append(text.substr(at));
  command.references_ = references.take();
  // What was read as a nested shell's command and turned out to be none may have left references
  // behind: a job must not fail for want of a field that no command uses.
  std::erase_if(command.references_, [&](const TemplateReference& reference) {
    return !used.contains(reference.variable);
  });
  return command;
}

}  // namespace reprise::runbook
