// PipelineCourse: the way of one run through its pipeline: which step comes next, and how it has
// ended when none does (docs/runbooks.md, "[pipeline.NAME]").
// No I/O and no clock. Threads: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runbook/runbook.h"

namespace reprise::worker {

struct StepError {
  std::string text;
  std::string type;  // "exit_3", "timeout", …
};

class PipelineCourse {
 public:
  enum class Outcome : std::uint8_t { succeeded, failed, cancelled };
  using Next = std::optional<runbook::StepIndex>;  // nothing: the run has ended

  // The pipeline must outlive it.
  explicit PipelineCourse(const runbook::Pipeline& pipeline);

  // The first step; counts as its first visit, as what the others return does.
  runbook::StepIndex begin();
  // What became of the step that ran.
  Next succeeded(runbook::StepIndex step);
  Next failed(runbook::StepIndex step, StepError error);
  // The run was cancelled while it ran. A step that follows is there to clean up.
  Next cancelled(runbook::StepIndex step);

  std::uint32_t visits(runbook::StepIndex step) const { return visits_[step]; }
  // Of the whole, once nothing follows.
  Outcome outcome() const;
  // The first that no later visit has mended; nothing: all is well so far.
  std::optional<StepError> error() const;

 private:
  struct Failure {
    runbook::StepIndex step{};
    StepError error;
  };
  Next enter(Next next);

  const runbook::Pipeline& pipeline_;
  std::vector<std::uint32_t> visits_;
  std::vector<Failure> failures_;  // in the order they came
  std::optional<StepError> too_often_;
  bool cancelled_ = false;
};

}  // namespace reprise::worker
