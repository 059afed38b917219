// The environment of commands: the server's own, without its settings and secrets, and what
// docs/runbooks.md promises ("Commands and templates").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runbook/command_template.h"
#include "worker/step_runner.h"

namespace reprise::worker {

// "NAME=value" of this process, but for REPRISE_*.
std::vector<std::string> inherited_environment();

// What a command is run for; empty: not known.
struct CommandSubject {
  std::string ns;
  std::string root;
  std::string server_url;
  std::string pipeline;
  std::string step;
  std::string run_id;
  std::string worker;
  std::string queue;
  std::string job_id;
  std::string_view item;  // JSON
  std::optional<std::uint32_t> attempts;
  std::optional<std::uint32_t> failures;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<std::string> error;
};

// Ready to be started but for its input. Errc::missing_field: a template stands for nothing.
Result<StepSpec> make_spec(const runbook::CommandTemplate& command, const CommandSubject& subject,
                           const std::vector<std::string>& inherited);

}  // namespace reprise::worker
