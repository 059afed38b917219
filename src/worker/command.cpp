#include "worker/command.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "base/duration.h"
#include "base/text.h"
#include "base/utf8.h"
#include "worker/output_tail.h"

namespace reprise::worker {
namespace {

class RunningCommand final : public StepObserver,
                             public std::enable_shared_from_this<RunningCommand> {
 public:
  RunningCommand(Loop& loop, StepRunner& steps, CommandOrder order, CommandDone done)
      : loop_(loop),
        steps_(steps),
        timer_(fmt::format("command:{}:{}", order.name, next_number())),
        timeout_(order.timeout),
        output_max_(order.output_max),
        done_(std::move(done)) {}

  void start(StepSpec spec) {
    const StepId id = steps_.start(std::move(spec), shared_from_this());
    id_ = id;
    loop_.after(timer_, timeout_, [command = shared_from_this(), id] {
      command->timed_out_ = true;
      command->steps_.stop(id, StopManner::gently);
    });
  }

  void stop() { steps_.stop(id_, StopManner::at_once); }

  // On the runner's thread.
  void on_output(StepStream stream, std::string_view bytes) override {
    if (stream == StepStream::err) return errors_.append(bytes);
    if (output_.size() + bytes.size() > output_max_) {
      if (!std::exchange(too_much_, true)) stop_soon();
      return;
    }
    if (!too_much_) output_ += bytes;
  }

  void on_end(const StepEnd& end) override {
    loop_.post([command = shared_from_this(), end] { command->finish(end); });
  }

 private:
  // Two of one name may run, of a worker that is gone and of the one that took its place.
  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> number{0};
    return ++number;
  }

  // The id is the loop's to know: the first output may come before start() has it.
  void stop_soon() {
    loop_.post([command = shared_from_this()] {
      command->steps_.stop(command->id_, StopManner::at_once);
    });
  }

  void finish(const StepEnd& end) {
    loop_.cancel_timer(timer_);
    std::string problem = problem_of(end);
    if (problem.empty()) return done_(std::move(output_));
    if (const std::string tail = valid_utf8(errors_.text()); !tail.empty()) problem += ": " + tail;
    done_(Error{Errc::invalid_field, std::move(problem)});
  }

  std::string problem_of(const StepEnd& end) const {
    if (too_much_) return fmt::format("printed more than {}", format_bytes(output_max_));
    if (timed_out_) return fmt::format("timed out after {}", format_duration(timeout_));
    switch (end.kind) {
      case StepEnd::Kind::exited:
        return end.code == 0 ? std::string() : fmt::format("exit code {}", end.code);
      case StepEnd::Kind::signalled:
        return fmt::format("killed by signal {} ({})", end.code, strsignal(end.code));
      case StepEnd::Kind::not_started:
        return fmt::format("cannot be started: {}", end.detail);
      case StepEnd::Kind::lost:
        return end.detail;
    }
    return "unknown";
  }

  Loop& loop_;
  StepRunner& steps_;
  const std::string timer_;
  const Duration timeout_;
  const std::uint64_t output_max_;
  CommandDone done_;
  StepId id_ = 0;           // the loop's
  bool timed_out_ = false;  // the loop's
  // The runner's until the end was told.
  std::string output_;
  OutputTail errors_;
  bool too_much_ = false;
};

}  // namespace

std::function<void()> run_command(Loop& loop, StepRunner& steps, CommandOrder order,
                                  CommandDone done) {
  StepSpec spec = std::move(order.spec);
  auto command = std::make_shared<RunningCommand>(loop, steps, std::move(order), std::move(done));
  command->start(std::move(spec));
  return [command = std::weak_ptr(command)] {
    if (const auto running = command.lock()) running->stop();
  };
}

}  // namespace reprise::worker
