#include "hooks/host/host_server.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "hooks/host/budget.h"

namespace reprise::hooks {
namespace {

// A host as the nursery would make one.
class Host {
 public:
  Host() {
    void* page = mmap(nullptr, sizeof(HostProgress), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(page, MAP_FAILED);
    progress_ = new (page) HostProgress;
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = ends[0];
    pid_ = fork();
    if (pid_ == 0) {
      alarm(60);
      run_host(ends[1], *progress_);
    }
    close(ends[1]);
  }
  ~Host() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      end();
    }
    close(socket_);
    munmap(progress_, sizeof(HostProgress));
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  HostProgress& progress() { return *progress_; }
  pid_t pid() const { return pid_; }

  void send_bytes(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = write(socket_, bytes.data(), bytes.size());
      ASSERT_GT(sent, 0);
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  template <class Message>
  void send(const Message& message) {
    std::string bytes;
    append_frame(bytes, message);
    send_bytes(bytes);
  }
  // The next message; nothing when the host has gone.
  std::optional<FromHost> receive() {
    while (true) {
      std::string_view in = input_;
      auto frame = take_frame(in, kMaxFrameFromHostBytes);
      EXPECT_TRUE(frame);
      if (frame && *frame) {
        auto message = decode_from_host(**frame);
        EXPECT_TRUE(message);
        input_.erase(0, input_.size() - in.size());
        if (!message) return std::nullopt;
        return std::move(*message);
      }
      char bytes[4096];
      const ssize_t got = read(socket_, bytes, sizeof bytes);
      if (got <= 0) return std::nullopt;
      input_.append(bytes, static_cast<std::size_t>(got));
    }
  }
  // With time for machines that are busy.
  SetUpDone set_up(std::string on_enqueue, std::string on_failure,
                   HookLimits limits = {.timeout = std::chrono::seconds(1)}) {
    hooks::SetUp message{.queue = "orders", .limits = limits, .random_seed = 1};
    message.sources = {std::move(on_enqueue), std::move(on_failure)};
    send(message);
    auto done = receive();
    EXPECT_TRUE(done && std::holds_alternative<SetUpDone>(*done));
    return done ? std::get<SetUpDone>(*done) : SetUpDone{};
  }
  // All results of a batch, in order.
  std::vector<CallResult> run(const RunBatch& batch) {
    send(batch);
    std::vector<CallResult> all;
    while (all.size() < batch.messages.size()) {
      auto message = receive();
      if (!message) break;
      auto& results = std::get<Results>(*message);
      EXPECT_EQ(results.batch, batch.batch);
      EXPECT_EQ(results.first, all.size());
      EXPECT_LE(results.results.size(), 128U);
      for (CallResult& result : results.results) all.push_back(std::move(result));
    }
    return all;
  }
  void close_socket() { shutdown(socket_, SHUT_WR); }
  int end() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return status;
  }

 private:
  HostProgress* progress_ = nullptr;
  int socket_ = -1;
  pid_t pid_ = -1;
  std::string input_;
};

RunBatch pushes(std::size_t count, std::uint32_t batch = 1) {
  RunBatch all{.batch = batch, .hook = HookKind::on_enqueue};
  for (std::size_t i = 0; i < count; ++i) {
    JobRecord job;
    job.headers = {{"tenant", "t" + std::to_string(i)}};
    job.payload = std::string(i, 'p');
    all.messages.push_back({.job = std::make_shared<JobRecord>(std::move(job))});
  }
  return all;
}

const char* const kByTenant =
    "function on_enqueue(msg) return {fairness_key = msg.headers.tenant} end";

TEST(HostServer, AnswersBatchesInOrderAndEndsWithItsSocket) {
  Host host;
  EXPECT_EQ(host.set_up(kByTenant, "").problems, (SetUpDone{}.problems));
  for (std::uint32_t batch = 1; batch <= 3; ++batch) {
    const auto results = host.run(pushes(100, batch));
    ASSERT_EQ(results.size(), 100U);
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(std::get<EnqueueVerdict>(results[i].outcome).fairness_key, "t" + std::to_string(i));
    }
    EXPECT_EQ(host.progress().position.load(), std::uint64_t{batch} << 32 | 99);
    EXPECT_EQ(host.progress().call_started.load(), 0);
  }
  EXPECT_TRUE(host.run(pushes(0)).empty());
  host.close_socket();
  const int status = host.end();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kHostDone) << status;
}

TEST(HostServer, TellsProblemsOfEachScript) {
  Host host;
  const auto done = host.set_up("function on_enqueue(msg)\nreturn }", "x = 1");
  EXPECT_EQ(done.problems[0], "line 2: unexpected symbol near '}'");
  EXPECT_EQ(done.problems[1], "it does not define on_failure");
}

TEST(HostServer, ConfigChangesAreSeenByTheNextBatch) {
  Host host;
  host.send(ConfigChange{.ns = "default", .key = "reject", .value = "early"});
  host.set_up("function on_enqueue(msg) return {reject = config.get('reject') or 'none'} end", "");
  const auto reject = [&] {
    return std::get<EnqueueVerdict>(host.run(pushes(1)).at(0).outcome).reject;
  };
  EXPECT_EQ(reject(), "early");
  host.send(ConfigChange{.ns = "default", .key = "reject", .value = "late"});
  EXPECT_EQ(reject(), "late");
  host.send(ConfigChange{.ns = "default", .key = "reject"});
  EXPECT_EQ(reject(), "none");
}

TEST(HostServer, PayloadsComeWhenTheyAreAskedFor) {
  Host host;
  host.set_up("function on_enqueue(msg) return {reject = 'p' .. #msg.payload} end", "",
              {.memory_bytes = 8U << 20});
  RunBatch batch = pushes(3);
  for (const CallResult& result : host.run(batch)) {
    EXPECT_TRUE(std::holds_alternative<NeedsPayload>(result.outcome));
  }
  batch.with_payloads = true;
  JobRecord large;
  large.payload = std::string(3U << 20, 'x');
  batch.messages.push_back({.job = std::make_shared<JobRecord>(std::move(large))});
  const auto results = host.run(batch);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(std::get<EnqueueVerdict>(results[2].outcome).reject, "p2");
  EXPECT_EQ(std::get<EnqueueVerdict>(results[3].outcome).reject, "p3145728");
}

TEST(HostServer, BothHooksHaveAStateOfTheirOwn) {
  Host host;
  host.set_up("shared = 1 function on_enqueue(msg) return {reject = tostring(shared)} end",
              "function on_failure(msg) return {action = 'dlq', reason = tostring(shared)} end");
  EXPECT_EQ(std::get<EnqueueVerdict>(host.run(pushes(1)).at(0).outcome).reject, "1");
  RunBatch failures = pushes(1);
  failures.hook = HookKind::on_failure;
  EXPECT_EQ(std::get<FailureVerdict>(host.run(failures).at(0).outcome).reason, "nil");
}

TEST(HostServer, WhatWasAnsweredLeavesBeforeACallThatHangs) {
  Host host;
  host.set_up(
      "function on_enqueue(msg) if msg.headers.tenant == 't140' then local s = ('x'):rep(30000) "
      "s:find(('.-'):rep(20) .. 'y') end return {} end",
      "", {.timeout = std::chrono::seconds(1)});
  host.send(pushes(200, 7));
  auto message = host.receive();
  ASSERT_TRUE(message);
  EXPECT_GT(std::get<Results>(*message).results.size(), 0U);
  // The broker sees where it hangs, and since when.
  const auto hangs = [&] {
    return host.progress().position.load() == (std::uint64_t{7} << 32 | 140) &&
           host.progress().call_started.load() != 0;
  };
  for (int i = 0; i < 30'000 && !hangs(); ++i) usleep(1000);
  ASSERT_TRUE(hangs());
  EXPECT_LE(host.progress().call_started.load(), monotonic_nanoseconds());
  kill(host.pid(), SIGKILL);
  host.end();
}

TEST(HostServer, NonsenseEndsIt) {
  const auto ends_for = [](const std::function<void(Host&)>& what) {
    Host host;
    what(host);
    const int status = host.end();
    return WIFEXITED(status) && WEXITSTATUS(status) == kHostNotUnderstood;
  };
  EXPECT_TRUE(ends_for([](Host& host) { host.send_bytes("\xFF\xFF\xFF\xFF"); }));
  EXPECT_TRUE(ends_for([](Host& host) { host.send_bytes(std::string("\x01\0\0\0\x63", 5)); }));
  EXPECT_TRUE(ends_for([](Host& host) { host.send(SetUpDone{}); }));
  EXPECT_TRUE(ends_for([](Host& host) { host.send(pushes(1)); }));
  EXPECT_TRUE(ends_for([](Host& host) {
    host.set_up(kByTenant, "");
    host.send(hooks::SetUp{.queue = "again"});
  }));
}

TEST(HostServer, AMessageMayComeInPieces) {
  Host host;
  std::string bytes;
  hooks::SetUp set_up{.queue = "orders", .sources = {kByTenant, ""}};
  append_frame(bytes, set_up);
  append_frame(bytes, pushes(2));
  for (const char byte : bytes) host.send_bytes({&byte, 1});
  ASSERT_TRUE(host.receive());
  auto results = host.receive();
  ASSERT_TRUE(results);
  EXPECT_EQ(std::get<Results>(*results).results.size(), 2U);
}

}  // namespace
}  // namespace reprise::hooks
