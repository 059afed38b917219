// CommandTemplate: a shell command with ${item.field} and the like in it. What it stands for never
// becomes part of the script: each template is turned into a reference to an environment variable,
// quoted as its place in the command asks for (docs/runbooks.md, "Commands and templates").
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace reprise::runbook {

enum class TemplateRoot : std::uint8_t { item, job, queue, worker, run, project, env };

// One distinct template of a command.
struct TemplateReference {
  std::string variable;  // "REPRISE_ITEM_id"
  TemplateRoot root{};
  std::vector<std::string> path;        // of item.a.b: {"a", "b"}; of env.HOME: {"HOME"}
  std::optional<std::string> fallback;  // the text after :-
};

// What is wrong with a command, or doubtful about it.
struct TemplateProblem {
  bool warning = false;
  std::size_t line = 1;  // within the command
  std::string message;
};

// Which templates a command may use: `list` knows no item yet.
enum class TemplateScope : std::uint8_t { list, item };

class CommandTemplate {
 public:
  CommandTemplate() = default;
  // With errors among `problems` the result is not to be used.
  static CommandTemplate parse(std::string_view text, TemplateScope scope,
                               std::vector<TemplateProblem>& problems);

  const std::string& source() const { return source_; }  // as it was written
  const std::string& script() const { return script_; }  // for bash, with references
  std::span<const TemplateReference> references() const { return references_; }

 private:
  std::string source_;
  std::string script_;
  std::vector<TemplateReference> references_;
};

// What templates can stand for, for one job.
struct TemplateInput {
  std::string_view item;  // JSON text; empty: there is none
  std::string job_id;
  std::uint32_t attempts = 0;
  std::uint32_t failures = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string queue;
  std::string worker;
  std::string run_id;
  std::string project_root;
  // Of the server; nothing: not set.
  std::function<std::optional<std::string>(std::string_view name)> environment;
};

using EnvironmentList = std::vector<std::pair<std::string, std::string>>;

// The longest value that a variable can hold, with its name and the sign between.
inline constexpr std::size_t kMostVariableBytes = 128 * 1024 - 1;

// The variables that the command's references name. Errc::missing_field: one that is not there and
// has no fallback, or cannot be a variable's value; the message names the template.
Result<EnvironmentList> expand(const CommandTemplate& command, const TemplateInput& input);

}  // namespace reprise::runbook
