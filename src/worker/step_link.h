// StepLink: one step as the server sees it: its pipes and the socket of its supervisor.
//
// Nothing here waits, and no more than one buffer of output is kept.
// Threads: one owner, no locks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "worker/step_wire.h"

namespace reprise::worker {

class StepLink {
 public:
  using Sink = std::function<void(StepStream, std::string_view)>;

  // `theirs` gets what the supervisor needs. Errc::invalid_field, Errc::io as write_spec().
  static Result<StepLink> make(const StepSpec& spec, StepFds& theirs);

  int control_fd() const { return control_.get(); }  // -1: closed
  int input_fd() const { return in_.get(); }         // -1: all is written, or nobody reads it
  int output_fd(StepStream stream) const { return output(stream).get(); }

  void set_input(std::string input);  // once
  // Writes what the pipe takes of it.
  void feed();
  // Hands over what is there, at most one buffer of it, and closes the pipe at its end.
  void read_output(StepStream stream, const Sink& sink);
  // All that is in the pipes when nobody is left to write. Whoever may have got hold of their ends
  // from outside the step is not waited for.
  void drain(const Sink& sink);

  void order(StepOrder order);
  // What the supervisor said of the end; nothing yet, unless control_fd() is closed now: it has
  // ended without a word.
  std::optional<StepEnd> take_report();

 private:
  const UniqueFd& output(StepStream stream) const {
    return stream == StepStream::out ? out_ : err_;
  }
  UniqueFd& output(StepStream stream) { return stream == StepStream::out ? out_ : err_; }
  std::size_t read_some(StepStream stream, std::size_t limit, const Sink& sink);

  UniqueFd control_;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  std::string input_;
  std::size_t fed_ = 0;  // of input_
};

}  // namespace reprise::worker
