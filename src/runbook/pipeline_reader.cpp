#include "runbook/pipeline_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/limits.h"
#include "runbook/command_reader.h"
#include "runbook/name_list.h"
#include "runbook/table_reader.h"

namespace reprise::runbook {
namespace {

// Where a step says to go on, before it is known which step that is.
struct Target {
  std::string name;  // empty: it does not say
  Subject subject;
};

struct StepDraft {
  Step step;
  Subject subject;
  Subject name_subject;
  Target on_done;
  Target on_fail;
  Target on_cancel;
};

Target read_target(TableReader& reader, std::string_view field) {
  Target target;
  reader.read(field, target.name);
  target.subject = reader.subject_of(field);
  return target;
}

class PipelineReader {
 public:
  PipelineReader(const std::string& name, const Subject& subject, Findings& findings)
      : subject_(subject), findings_(findings) {
    pipeline_.name = name;
    pipeline_.place = subject.place();
  }

  std::optional<Pipeline> read(const Node& table);

 private:
  void read_steps(TableReader& reader);
  void read_step(const Node& node, std::size_t index);
  void check_step_names();
  bool resolve();
  std::optional<StepIndex> find(const Target& target);
  void mark_handlers();
  void link();
  void check_reachable();

  Subject subject_;
  Findings& findings_;
  Pipeline pipeline_;
  Target on_fail_;
  Target on_cancel_;
  std::vector<StepDraft> drafts_;
  std::vector<std::string> names_;
  bool lost_ = false;  // a step is missing, or a name leads nowhere
};

std::optional<Pipeline> PipelineReader::read(const Node& table) {
  TableReader reader(table, subject_, findings_);
  reader.read("timeout", pipeline_.timeout);
  on_fail_ = read_target(reader, "on_fail");
  on_cancel_ = read_target(reader, "on_cancel");
  read_steps(reader);
  reader.finish();
  check_step_names();
  if (drafts_.empty() || !resolve()) return std::nullopt;
  check_reachable();
  for (StepDraft& draft : drafts_) pipeline_.steps.push_back(std::move(draft.step));
  return std::move(pipeline_);
}

void PipelineReader::read_steps(TableReader& reader) {
  const Member* steps = reader.take("step");
  if (steps != nullptr && !steps->value.is(Node::Kind::list)) {
    reader.error("step", fmt::format("expected a list of steps, got {}; in TOML write [[{}.step]]",
                                     steps->value.kind_name(), subject_.path));
    return;
  }
  if (steps == nullptr || steps->value.items.empty()) {
    reader.error("step", "pipeline has no steps: it requires 'step', a list");
    return;
  }
  if (steps->value.items.size() > kMostSteps) {
    reader.error("step", fmt::format("pipeline has {} steps; at most {} are taken",
                                     steps->value.items.size(), kMostSteps));
    return;
  }
  for (std::size_t index = 0; index < steps->value.items.size(); ++index) {
    read_step(steps->value.items[index], index);
  }
}

void PipelineReader::read_step(const Node& node, std::size_t index) {
  const Subject subject = subject_.at(fmt::format("step.{}", index), node.position);
  if (!node.is(Node::Kind::table)) {
    findings_.error(subject, fmt::format("expected a table, got {}", node.kind_name()));
    lost_ = true;
    return;
  }
  StepDraft draft{.subject = subject};
  TableReader reader(node, subject, findings_);
  draft.step.place = subject.place();
  for (const std::string_view name : {"name", "run"}) {
    if (reader.take(name) == nullptr) {
      reader.error(name, fmt::format("step requires '{}' field", name));
    }
  }
  draft.name_subject = reader.subject_of("name");
  if (reader.read("name", draft.step.name)) {
    if (const Status fine = check_name("step", draft.step.name); !fine) {
      reader.error("name", fine.error().detail);
    }
  } else {
    lost_ = true;
  }
  if (auto command = read_command(reader, "run", TemplateScope::item)) draft.step.run = *command;
  Duration timeout{};
  if (reader.read("timeout", timeout)) draft.step.timeout = timeout;
  draft.on_done = read_target(reader, "on_done");
  draft.on_fail = read_target(reader, "on_fail");
  draft.on_cancel = read_target(reader, "on_cancel");
  reader.finish();
  drafts_.push_back(std::move(draft));
}

void PipelineReader::check_step_names() {
  for (const StepDraft& draft : drafts_) {
    const std::string& name = draft.step.name;
    if (name.empty()) continue;
    const auto first = std::ranges::find(names_, name);
    if (first == names_.end()) {
      names_.push_back(name);
      continue;
    }
    const auto other = std::ranges::find(
        drafts_, name, [](const StepDraft& one) -> const std::string& { return one.step.name; });
    findings_.error(draft.name_subject, fmt::format("step '{}' is defined twice, first at line {}",
                                                    name, other->name_subject.position.line));
    lost_ = true;
  }
}

std::optional<StepIndex> PipelineReader::find(const Target& target) {
  if (target.name.empty()) return std::nullopt;
  for (StepIndex index = 0; index < drafts_.size(); ++index) {
    if (drafts_[index].step.name == target.name) return index;
  }
  lost_ = true;
  findings_.error(target.subject, unknown_name("step", target.name, names_, findings_));
  return std::nullopt;
}

// False: some names lead nowhere, so that there is no telling which steps can be reached.
bool PipelineReader::resolve() {
  for (StepDraft& draft : drafts_) {
    draft.step.on_done = find(draft.on_done);
    draft.step.on_fail = find(draft.on_fail);
    draft.step.on_cancel = find(draft.on_cancel);
  }
  mark_handlers();
  link();
  return !lost_;
}

// A step that one before it, or the pipeline itself, names for failures. The first is none: every
// run begins with it.
void PipelineReader::mark_handlers() {
  const auto mark = [&](StepIndex from, std::optional<StepIndex> to) {
    if (to && *to > from) drafts_[*to].step.handler = true;
  };
  for (StepIndex index = 0; index < drafts_.size(); ++index) {
    mark(index, drafts_[index].step.on_fail);
    mark(index, drafts_[index].step.on_cancel);
  }
}

// The defaults: the pipeline's handlers, and the order of the steps.
void PipelineReader::link() {
  const auto on_fail = find(on_fail_);
  const auto on_cancel = find(on_cancel_);
  for (const auto target : {on_fail, on_cancel}) {
    if (target && *target > 0) drafts_[*target].step.handler = true;
  }
  std::optional<StepIndex> next;
  for (StepIndex index = drafts_.size(); index-- > 0;) {
    Step& step = drafts_[index].step;
    if (step.handler) continue;
    if (!step.on_done && drafts_[index].on_done.name.empty()) step.on_done = next;
    if (drafts_[index].on_fail.name.empty() && on_fail != index) step.on_fail = on_fail;
    if (drafts_[index].on_cancel.name.empty() && on_cancel != index) step.on_cancel = on_cancel;
    next = index;
  }
}

void PipelineReader::check_reachable() {
  std::vector<bool> reached(drafts_.size());
  std::vector<StepIndex> waiting{0};
  reached[0] = true;
  while (!waiting.empty()) {
    const Step& step = drafts_[waiting.back()].step;
    waiting.pop_back();
    for (const auto target : {step.on_done, step.on_fail, step.on_cancel}) {
      if (!target || reached[*target]) continue;
      reached[*target] = true;
      waiting.push_back(*target);
    }
  }
  for (StepIndex index = 0; index < drafts_.size(); ++index) {
    if (reached[index]) continue;
    findings_.error(
        drafts_[index].subject,
        fmt::format("step '{}' is unreachable: no step leads to it", drafts_[index].step.name));
  }
}

}  // namespace

std::optional<Pipeline> read_pipeline(const std::string& name, const Node& table,
                                      const Subject& subject, Findings& findings) {
  return PipelineReader(name, subject, findings).read(table);
}

}  // namespace reprise::runbook
