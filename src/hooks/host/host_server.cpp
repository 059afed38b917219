#include "hooks/host/host_server.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "hooks/host/sandbox.h"
#include "hooks/host/script.h"

namespace reprise::hooks {
namespace {

// Results leave after so many, or after so long: what has been answered is not asked again if a
// later call ends the process.
constexpr std::size_t kResultsAtOnce = 128;
constexpr std::int64_t kFlushNanoseconds = 1'000'000;
constexpr std::size_t kReadBytes = 64U << 10;
constexpr std::size_t kBufferKeptBytes = 1U << 20;

class HostServer {
 public:
  HostServer(int socket, HostProgress& progress) : socket_(socket), progress_(progress) {}

  [[noreturn]] void serve() {
    while (true) {
      std::string_view unread(input_.data(), filled_);
      while (true) {
        const auto frame = take_frame(unread);
        if (!frame) _exit(kHostNotUnderstood);
        if (!frame->has_value()) break;
        handle(**frame);
      }
      keep(unread);
      read_more();
    }
  }

 private:
  // Moves what is left of the input to its start.
  void keep(std::string_view rest) {
    std::memmove(input_.data(), rest.data(), rest.size());
    filled_ = rest.size();
    if (filled_ < kReadBytes && input_.size() > kBufferKeptBytes) {
      input_.resize(kReadBytes);
      input_.shrink_to_fit();
    }
  }

  void read_more() {
    // Room for all of a frame that has begun, so that a large one is not copied as it grows.
    std::size_t wanted = filled_ + kReadBytes;
    if (filled_ >= kFrameHeaderBytes) {
      std::uint32_t size = 0;
      std::memcpy(&size, input_.data(), sizeof size);
      wanted = std::max(wanted, kFrameHeaderBytes + std::size_t{size});
    }
    if (input_.size() < wanted) input_.resize(wanted);
    ssize_t got = 0;
    do {
      got = read(socket_, input_.data() + filled_, input_.size() - filled_);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) _exit(kHostDone);
    filled_ += static_cast<std::size_t>(got);
  }

  void send() {
    std::string_view rest = output_;
    while (!rest.empty()) {
      const ssize_t sent = write(socket_, rest.data(), rest.size());
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) _exit(kHostDone);
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    output_.clear();
  }

  void handle(std::string_view frame) {
    auto message = decode_to_host(frame);
    if (!message) _exit(kHostNotUnderstood);
    std::visit([this](auto& each) { handle(each); }, *message);
  }

  void handle(SetUp& message) {
    if (set_up_) _exit(kHostNotUnderstood);
    set_up_ = true;
    SetUpDone done;
    for (std::size_t i = 0; i < kHookKindCount; ++i) {
      if (message.sources[i].empty()) continue;
      auto script = Script::load({.hook = static_cast<HookKind>(i),
                                  .queue = message.queue,
                                  .limits = message.limits,
                                  .random_seed = message.random_seed + i},
                                 message.sources[i], config_);
      if (script) {
        scripts_[i] = std::move(*script);
      } else {
        done.problems[i] = script.error().detail;
      }
    }
    append_frame(output_, done);
    send();
  }

  void handle(ConfigChange& message) {
    if (message.value) {
      config_[std::move(message.key)] = std::move(*message.value);
    } else {
      config_.erase(message.key);
    }
  }

  void handle(const BatchView& batch) {
    Script* script = scripts_[static_cast<std::size_t>(batch.hook)].get();
    if (script == nullptr) _exit(kHostNotUnderstood);
    results_.batch = batch.batch;
    results_.first = 0;
    std::int64_t last_flush = monotonic_nanoseconds();
    for (std::size_t i = 0; i < batch.messages.size(); ++i) {
      std::int64_t now = monotonic_nanoseconds();
      if (results_.results.size() >= kResultsAtOnce || now - last_flush >= kFlushNanoseconds) {
        flush();
        last_flush = now = monotonic_nanoseconds();
      }
      progress_.position.store(std::uint64_t{batch.batch} << 32 | i, std::memory_order_release);
      progress_.call_started.store(now, std::memory_order_release);
      results_.results.push_back(script->call(batch.messages[i], batch.with_payloads, now));
      progress_.call_started.store(0, std::memory_order_release);
      script->tidy();
    }
    flush();
  }

  void flush() {
    if (results_.results.empty()) return;
    append_frame(output_, results_);
    results_.first += static_cast<std::uint32_t>(results_.results.size());
    results_.results.clear();
    send();
  }

  const int socket_;
  HostProgress& progress_;

  bool set_up_ = false;
  ConfigValues config_;  // before the scripts, which look into it
  std::array<std::unique_ptr<Script>, kHookKindCount> scripts_;

  std::string input_;
  std::size_t filled_ = 0;  // of the input
  std::string output_;
  Results results_;
};

}  // namespace

void run_host(int socket, HostProgress& progress) {
  if (!enter_sandbox(socket)) _exit(kHostNotLockedIn);
  HostServer(socket, progress).serve();
}

}  // namespace reprise::hooks
