#include "worker/pipeline_course.h"

#include <algorithm>
#include <utility>

namespace reprise::worker {

using runbook::Pipeline;
using runbook::StepIndex;

PipelineCourse::PipelineCourse(const Pipeline& pipeline)
    : pipeline_(pipeline), visits_(pipeline.steps.size()) {}

StepIndex PipelineCourse::begin() {
  visits_[0] = 1;
  return 0;
}

PipelineCourse::Next PipelineCourse::enter(Next next) {
  if (!next) return std::nullopt;
  if (visits_[*next] == Pipeline::kMostVisits) {
    const std::string& name = pipeline_.steps[*next].name;
    std::string text = "step " + name + " has run " + std::to_string(Pipeline::kMostVisits) +
                       " times and would run again";
    if (const auto first = error()) text += "; " + first->text;
    too_often_ = StepError{std::move(text), "visits"};
    return std::nullopt;
  }
  ++visits_[*next];
  return next;
}

PipelineCourse::Next PipelineCourse::succeeded(StepIndex step) {
  std::erase_if(failures_, [&](const Failure& failure) { return failure.step == step; });
  return enter(pipeline_.steps[step].on_done);
}

PipelineCourse::Next PipelineCourse::failed(StepIndex step, StepError error) {
  error.text = "step " + pipeline_.steps[step].name + ": " + error.text;
  const auto known = std::ranges::find(failures_, step, &Failure::step);
  if (known == failures_.end()) {
    failures_.push_back({step, std::move(error)});
  } else {
    known->error = std::move(error);  // the latest of its tries
  }
  return enter(pipeline_.steps[step].on_fail);
}

PipelineCourse::Next PipelineCourse::cancelled(StepIndex step) {
  if (std::exchange(cancelled_, true)) return std::nullopt;  // while it cleaned up
  return enter(pipeline_.steps[step].on_cancel);
}

PipelineCourse::Outcome PipelineCourse::outcome() const {
  if (cancelled_) return Outcome::cancelled;
  return error() ? Outcome::failed : Outcome::succeeded;
}

std::optional<StepError> PipelineCourse::error() const {
  if (cancelled_) return StepError{"cancelled", "cancelled"};
  if (too_often_) return too_often_;
  if (failures_.empty()) return std::nullopt;
  return failures_.front().error;
}

}  // namespace reprise::worker
