#include "support/scripted_host.h"

#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

namespace reprise::test {
namespace {

using namespace hooks;

constexpr std::string_view kUnknownFrame("\1\0\0\0x", 5);

[[noreturn]] void hang() {
  while (true) pause();
}
[[noreturn]] void loop() {
  for (volatile std::uint64_t turns = 0;;) turns = turns + 1;
}

void write_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written <= 0) _exit(0);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::uint32_t number_after(std::string_view text, std::string_view word) {
  std::uint32_t number = 0;
  text.remove_prefix(word.size());
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

FailureVerdict dead(std::string reason) { return {.retry = false, .reason = std::move(reason)}; }

class ScriptedHost {
 public:
  ScriptedHost(int socket, HostProgress& progress) : socket_(socket), progress_(progress) {}

  void take(const SetUp& set_up) {
    SetUpDone done;
    for (std::size_t i = 0; i < kHookKindCount; ++i) {
      sources_[i] = set_up.sources[i];
      const std::string_view source = sources_[i];
      if (source.find("loop at load") != source.npos) loop();
      if (source.find("exit at load") != source.npos) _exit(9);
      if (source.find("nonsense at load") != source.npos) write_all(socket_, kUnknownFrame);
      if (source.find("problem at load") != source.npos) done.problems[i] = "line 3: a problem";
    }
    send_frame(done);
  }
  void take(const ConfigChange& change) {
    if (change.value) {
      config_[change.key] = *change.value;
    } else {
      config_.erase(change.key);
    }
  }
  void take(const BatchView& batch) {
    Results results{.batch = batch.batch};
    for (std::size_t i = 0; i < batch.messages.size(); ++i) {
      progress_.position = std::uint64_t{batch.batch} << 32 | i;
      progress_.call_started = now_ns();
      results.results.push_back(call(batch, batch.messages[i], results));
      progress_.call_started = 0;
    }
    send_frame(results);
  }

 private:
  template <class Message>
  void send_frame(const Message& message) {
    std::string bytes;
    append_frame(bytes, message);
    write_all(socket_, bytes);
  }

  CallResult call(const BatchView& batch, const MessageView& message, Results& results) {
    if (batch.hook == HookKind::on_enqueue) return {EnqueueVerdict{.weight = 7}, {}};
    const std::string_view order = message.error;
    misbehave(order, batch, results);
    const FailureVerdict retry{.delay = std::chrono::milliseconds(message.failures)};
    if (order == "script") return {dead(sources_[1]), {}};
    if (order.starts_with("config ")) {
      const auto found = config_.find(std::string(order.substr(7)));
      return {dead(found == config_.end() ? "nil" : found->second), {}};
    }
    if (order == "payload") {
      if (!batch.with_payloads) return {NeedsPayload{}, {}};
      return {dead(std::string(message.payload)), {}};
    }
    if (order == "pid") return {dead(std::to_string(getpid())), {}};
    if (order.starts_with("log ")) {
      std::vector<std::string> lines;
      for (std::uint32_t i = 0; i < number_after(order, "log "); ++i) {
        lines.push_back("line " + std::to_string(i));
      }
      return {retry, std::move(lines)};
    }
    if (order == "fail") return {HookFailure{HookFault::error, "line 1: as ordered"}, {}};
    if (order == "wrong type") return {EnqueueVerdict{}, {}};
    return {retry, {}};
  }

  void misbehave(std::string_view order, const BatchView& batch, Results& results) {
    if (order == "loop") loop();
    if (order.starts_with("sleep ")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(number_after(order, "sleep ")));
    }
    if (order == "exit") _exit(7);
    if (order == "abort") abort();
    if (order == "garbage") write_all(socket_, std::string(100, '\xEE'));
    if (order == "wrong batch") results.batch = batch.batch + 100;
    if (order == "wrong place") results.first = 1;
    if (order == "too many") results.results.push_back({FailureVerdict{}, {}});
    if (order == "silent exit") {
      progress_.call_started = 0;
      _exit(0);
    }
    if (order == "false page") {
      progress_.position = std::uint64_t{batch.batch} << 32 | 5000;
      hang();
    }
    if (order == "hidden hang") {
      progress_.call_started = 0;
      hang();
    }
  }

  const int socket_;
  HostProgress& progress_;
  std::array<std::string, kHookKindCount> sources_;
  std::map<std::string, std::string> config_;
};

}  // namespace

void run_scripted_host(int socket, HostProgress& progress) {
  ScriptedHost host(socket, progress);
  std::string received;
  std::array<char, 65536> chunk;
  while (true) {
    std::string_view rest = received;
    while (true) {
      const auto frame = take_frame(rest);
      if (!frame) _exit(2);
      if (!*frame) break;
      const auto message = decode_to_host(**frame);
      if (!message) _exit(3);
      std::visit([&](const auto& what) { host.take(what); }, *message);
    }
    received.erase(0, received.size() - rest.size());
    const ssize_t got = recv(socket, chunk.data(), chunk.size(), 0);
    if (got <= 0) return;
    received.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace reprise::test
