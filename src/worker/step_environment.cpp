#include "worker/step_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace reprise::worker {
namespace {

constexpr std::string_view kOwnPrefix = "REPRISE_";

std::optional<std::string> server_variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> inherited_environment() {
  std::vector<std::string> variables;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable(*at);
    if (!variable.starts_with(kOwnPrefix)) variables.emplace_back(variable);
  }
  return variables;
}

Result<StepSpec> make_spec(const runbook::CommandTemplate& command, const CommandSubject& subject,
                           const std::vector<std::string>& inherited) {
  const runbook::TemplateInput input{.item = subject.item,
                                     .job_id = subject.job_id,
                                     .attempts = subject.attempts.value_or(0),
                                     .failures = subject.failures.value_or(0),
                                     .headers = subject.headers,
                                     .queue = subject.queue,
                                     .worker = subject.worker,
                                     .run_id = subject.run_id,
                                     .project_root = subject.root,
                                     .environment = server_variable};
  const auto variables = runbook::expand(command, input);
  if (!variables) return variables.error();
  StepSpec spec{
      .script = command.script(), .directory = subject.root, .environment = inherited, .input = {}};
  const auto set = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) spec.environment.push_back(fmt::format("{}={}", name, value));
  };
  set("REPRISE_NAMESPACE", subject.ns);
  set("REPRISE_PROJECT", subject.ns);
  set("REPRISE_PROJECT_ROOT", subject.root);
  set("REPRISE_URL", subject.server_url);
  set("REPRISE_PIPELINE", subject.pipeline);
  set("REPRISE_STEP", subject.step);
  set("REPRISE_RUN_ID", subject.run_id);
  set("REPRISE_WORKER", subject.worker);
  set("REPRISE_QUEUE", subject.queue);
  set("REPRISE_JOB_ID", subject.job_id);
  if (subject.attempts) set("REPRISE_ATTEMPTS", std::to_string(*subject.attempts));
  if (subject.failures) set("REPRISE_FAILURES", std::to_string(*subject.failures));
  if (subject.error) set("REPRISE_ERROR", *subject.error);
  for (const auto& [name, value] : *variables) {
    spec.environment.push_back(fmt::format("{}={}", name, value));
  }
  return spec;
}

}  // namespace reprise::worker
