#include "runbook/command_reader.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace reprise::runbook {
namespace {

// A script is one argument of bash.
constexpr std::size_t kMostScriptBytes = kMostVariableBytes;

void tell(TableReader& reader, const Member& member, const TemplateProblem& problem) {
  Subject subject = reader.subject_of(member.key);
  std::string message = problem.message;
  if (member.value.multiline) {
    subject.position = {
        .line = member.value.text_line + static_cast<std::uint32_t>(problem.line) - 1, .column = 1};
  } else if (problem.line > 1) {
    message += fmt::format(" (line {} of the command)", problem.line);
  }
  if (problem.warning) {
    reader.findings().warning(subject, std::move(message));
  } else {
    reader.findings().error(subject, std::move(message));
  }
}

}  // namespace

std::optional<CommandTemplate> read_command(TableReader& reader, std::string_view name,
                                            TemplateScope scope) {
  const Member* member = reader.take(name);
  std::string text;
  if (member == nullptr || !reader.read(name, text)) return std::nullopt;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    reader.error(name, "must not be empty");
    return std::nullopt;
  }
  if (text.find('\0') != std::string::npos) {
    reader.error(name, "must not hold a NUL character");
    return std::nullopt;
  }
  std::vector<TemplateProblem> problems;
  CommandTemplate command = CommandTemplate::parse(text, scope, problems);
  bool usable = true;
  for (const TemplateProblem& problem : problems) {
    tell(reader, *member, problem);
    usable = usable && problem.warning;
  }
  if (usable && command.script().size() > kMostScriptBytes) {
    reader.error(name, fmt::format("has {} bytes, a command may have {}; put it into a file",
                                   command.script().size(), kMostScriptBytes));
    usable = false;
  }
  if (!usable) return std::nullopt;
  return command;
}

}  // namespace reprise::runbook
