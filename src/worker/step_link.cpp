#include "worker/step_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace reprise::worker {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;

bool make_pair(UniqueFd& ours, UniqueFd& theirs) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) return false;
  ours.reset(pair[0]);
  theirs.reset(pair[1]);
  return fcntl(ours.get(), F_SETFL, O_NONBLOCK) == 0;
}

// Only our end does not block: a step expects pipes as any shell makes them.
bool make_pipe(UniqueFd& read_end, UniqueFd& write_end, UniqueFd& ours) {
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return false;
  read_end.reset(pipe[0]);
  write_end.reset(pipe[1]);
  return fcntl(ours.get(), F_SETFL, O_NONBLOCK) == 0;
}

}  // namespace

Result<StepLink> StepLink::make(const StepSpec& spec, StepFds& theirs) {
  auto written = write_spec(spec);
  if (!written) return written.error();
  theirs.spec = std::move(*written);
  StepLink link;
  if (!make_pair(link.control_, theirs.control) || !make_pipe(theirs.in, link.in_, link.in_) ||
      !make_pipe(link.out_, theirs.out, link.out_) ||
      !make_pipe(link.err_, theirs.err, link.err_)) {
    return Error{Errc::io, fmt::format("no pipes for the command: {}", std::strerror(errno))};
  }
  return link;
}

void StepLink::set_input(std::string input) {
  input_ = std::move(input);
  feed();
}

void StepLink::feed() {
  while (in_ && fed_ < input_.size()) {
    const ssize_t written = write(in_.get(), input_.data() + fed_, input_.size() - fed_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) break;  // nobody reads it, which is the step's own business
    fed_ += static_cast<std::size_t>(written);
  }
  in_.reset();
  input_ = {};
}

std::size_t StepLink::read_some(StepStream stream, std::size_t limit, const Sink& sink) {
  std::array<char, kBufferBytes> buffer;
  UniqueFd& pipe = output(stream);
  const ssize_t got = read(pipe.get(), buffer.data(), std::min(limit, buffer.size()));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got <= 0) {
    pipe.reset();
    return 0;
  }
  const auto bytes = static_cast<std::size_t>(got);
  sink(stream, {buffer.data(), bytes});
  return bytes;
}

void StepLink::read_output(StepStream stream, const Sink& sink) {
  if (output(stream)) read_some(stream, kBufferBytes, sink);
}

void StepLink::drain(const Sink& sink) {
  for (const StepStream stream : {StepStream::out, StepStream::err}) {
    int available = 0;
    if (!output(stream) || ioctl(output(stream).get(), FIONREAD, &available) != 0) continue;
    for (auto left = static_cast<std::size_t>(available); left > 0;) {
      const std::size_t got = read_some(stream, left, sink);
      if (got == 0) break;
      left -= got;
    }
  }
}

void StepLink::order(StepOrder order) {
  const char letter = static_cast<char>(order);
  // Should it be gone already, it needs no order.
  if (control_) (void)send_message(control_.get(), {&letter, 1});
}

std::optional<StepEnd> StepLink::take_report() {
  if (!control_) return std::nullopt;
  std::array<char, kMaxReportBytes> message;
  const auto got = receive_message(control_.get(), message);
  if (!got && errno == EAGAIN) return std::nullopt;
  StepReport report;
  if (!got || *got < sizeof(report)) {
    control_.reset();
    return std::nullopt;
  }
  std::memcpy(&report, message.data(), sizeof(report));
  return StepEnd{.kind = report.kind,
                 .code = report.code,
                 .detail = std::string(message.data() + sizeof(report), *got - sizeof(report))};
}

}  // namespace reprise::worker
