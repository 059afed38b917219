// Steps with real processes: what they are given, what is heard of them, how they begin.
#include "worker/step_runner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "support/child_processes.h"
#include "support/step_recorder.h"
#include "support/temp_directory.h"

namespace reprise::worker {
namespace {

using test::StepRecorder;
using test::wait_until;
using testing::HasSubstr;

class StepRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = StepRunner::make({.lock_file = directory_ / "lock"});
    ASSERT_TRUE(made) << made.error().detail;
    runner = std::move(*made);
  }
  StepSpec spec(std::string script, std::string input = "") {
    return {.script = std::move(script),
            .directory = directory_.path(),
            .environment = {"PATH=/usr/bin:/bin", mark_},
            .input = std::move(input)};
  }
  std::shared_ptr<StepRecorder> start(StepSpec spec) {
    auto recorder = std::make_shared<StepRecorder>();
    runner->start(std::move(spec), recorder);
    return recorder;
  }
  std::shared_ptr<StepRecorder> start(std::string script, std::string input = "") {
    return start(spec(std::move(script), std::move(input)));
  }

  const test::TempDirectory directory_;
  const std::string mark_ = test::make_mark();
  std::unique_ptr<StepRunner> runner;
};

TEST_F(StepRunnerTest, TellsOutputAndExitCode) {
  const auto step = start("echo out; echo err >&2; exit 3");
  EXPECT_EQ(step->wait(), "exited 3");
  EXPECT_EQ(step->out(), "out\n");
  EXPECT_EQ(step->err(), "err\n");
  EXPECT_EQ(step->ends(), 1);
  EXPECT_EQ(start("true")->wait(), "exited 0");
}

TEST_F(StepRunnerTest, StopsAtTheFirstFailureOfALine) {
  const auto step = start("echo a; false | cat; echo b");
  EXPECT_EQ(step->wait(), "exited 1");
  EXPECT_EQ(step->out(), "a\n");
  EXPECT_EQ(start("echo $no_such_variable")->wait(), "exited 1");
}

TEST_F(StepRunnerTest, TellsTheSignal) {
  EXPECT_EQ(start("kill -SEGV $$")->wait(), "signalled 11");
}

TEST_F(StepRunnerTest, HasItsDirectoryAndNoEnvironmentButItsOwn) {
  runner = nullptr;  // it reads our environment, in a thread of its own
  setenv("STEP_TEST_SECRET", "hunter2", 1);
  SetUp();
  const auto step = start("pwd; env");
  EXPECT_EQ(step->wait(), "exited 0");
  runner = nullptr;
  unsetenv("STEP_TEST_SECRET");
  EXPECT_TRUE(step->out().starts_with(directory_.path() + "\n"));
  EXPECT_THAT(step->out(), HasSubstr(mark_));
  EXPECT_THAT(step->out(), Not(HasSubstr("hunter2")));
}

TEST_F(StepRunnerTest, HasThreeDescriptorsAndNothingElseOfOurs) {
  const UniqueFd inheritable(open("/dev/null", O_RDONLY));
  const auto step = start(
      "ls /proc/$$/fd; cat /proc/$$/oom_score_adj; "
      "read -r _ _ _ _ group session _ < /proc/$$/stat; [ $group = $$ ] && [ $session = $$ ]; "
      "exec grep -E '^Sig(Blk|Ign)' /proc/self/status");
  EXPECT_EQ(step->wait(), "exited 0") << step->err();
  EXPECT_EQ(step->out(), "0\n1\n2\n500\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(StepRunnerTest, HasTheLimitOfDescriptorsThatWeBeganWith) {
  runner = nullptr;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{.rlim_cur = 500, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  for (int i = 0; i < 2; ++i) {
    SetUp();
    const auto step = start("ulimit -n; ulimit -Hn");
    EXPECT_EQ(step->wait(), "exited 0");
    EXPECT_EQ(step->out(), "500\n" + std::to_string(before.rlim_max) + "\n");
    rlimit ours{};
    getrlimit(RLIMIT_NOFILE, &ours);
    EXPECT_GT(ours.rlim_cur, 500U);
    runner = nullptr;
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(StepRunnerTest, ReadsItsInput) {
  EXPECT_EQ(start("cat", "")->wait(), "exited 0");
  const auto little = start("cat", "hello");
  EXPECT_EQ(little->wait(), "exited 0");
  EXPECT_EQ(little->out(), "hello");
  std::string big;
  while (big.size() < 10'000'000) big += std::to_string(big.size()) + " ";
  const auto much = start("cat", big);
  EXPECT_EQ(much->wait(), "exited 0");
  EXPECT_TRUE(much->out() == big);
}

TEST_F(StepRunnerTest, NeedNotReadItsInput) {
  const std::string big(10 << 20, 'x');
  EXPECT_EQ(start("true", big)->wait(), "exited 0");
  const auto closed = start("exec <&-; head -c 100000 /dev/zero; echo done", big);
  EXPECT_EQ(closed->wait(), "exited 0");
  EXPECT_EQ(closed->out().size(), 100'005U);
}

TEST_F(StepRunnerTest, MayCloseItsOutputs) {
  const auto step = start("echo a; exec >&-; echo b >&2; exec 2>&-; exit 4");
  EXPECT_EQ(step->wait(), "exited 4");
  EXPECT_EQ(step->out(), "a\n");
  EXPECT_EQ(step->err(), "b\n");
}

TEST_F(StepRunnerTest, AllOutputComesBeforeTheEnd) {
  for (int i = 0; i < 20; ++i) {
    const auto step = start("head -c 300000 /dev/zero; head -c 50000 /dev/zero >&2");
    EXPECT_EQ(step->wait(), "exited 0");
    EXPECT_EQ(step->out().size(), 300'000U);
    EXPECT_EQ(step->err().size(), 50'000U);
  }
}

class CountingObserver : public StepRecorder {
 public:
  void on_output(StepStream, std::string_view bytes) override { bytes_ += bytes.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<std::uint64_t> bytes_ = 0;
};

std::size_t resident_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss);
}

TEST_F(StepRunnerTest, MuchOutputTakesLittleMemory) {
  const std::size_t before = resident_kilobytes();
  const auto counter = std::make_shared<CountingObserver>();
  runner->start(spec("head -c 1G /dev/zero"), counter);
  EXPECT_EQ(counter->wait(), "exited 0");
  EXPECT_EQ(counter->bytes(), 1ULL << 30);
  EXPECT_LT(resident_kilobytes() - before, 16 * 1024U);
}

TEST_F(StepRunnerTest, MayHaveALongScript) {
  for (const std::size_t size : {131'070UL, 131'071UL, 131'072UL, 2'000'000UL}) {
    std::string script = "ls /proc/$$/fd; echo '";
    const std::string text(size - script.size() - 1, 'x');
    script += text + "'";
    const auto step = start(script);
    EXPECT_EQ(step->wait(), "exited 0") << size << step->err();
    // Bash itself has the script open, for itself only.
    const std::string descriptors = size < 131'072 ? "0\n1\n2\n" : "0\n1\n2\n255\n";
    EXPECT_TRUE(step->out() == descriptors + text + "\n") << step->out().substr(0, 100);
  }
}

TEST_F(StepRunnerTest, ALongScriptLeavesNoDescriptorToWhatItStarts) {
  const auto step =
      start("ls -l /proc/self/fd | grep -c memfd || true; # " + std::string(200'000, 'x'));
  EXPECT_EQ(step->wait(), "exited 0") << step->err();
  EXPECT_EQ(step->out(), "0\n");
}

TEST_F(StepRunnerTest, TellsWhyItCouldNotStart) {
  StepSpec nowhere = spec("true");
  nowhere.directory = "/no/such/directory";
  auto step = start(nowhere);
  EXPECT_EQ(step->wait(), "not started");
  EXPECT_EQ(step->detail(),
            "the directory /no/such/directory cannot be entered: No such file or directory");

  StepSpec big = spec("true");
  big.environment.push_back("BIG=" + std::string(200'000, 'x'));
  step = start(big);
  EXPECT_EQ(step->wait(), "not started");
  EXPECT_EQ(step->detail(),
            "the variables of the command are too long for a process: Argument list too long");

  StepSpec nul = spec("true");
  nul.environment.push_back(std::string("NUL=\0", 5));
  step = start(nul);
  EXPECT_EQ(step->wait(), "not started");
  EXPECT_EQ(step->detail(), "the variable NUL holds a NUL character");
}

TEST_F(StepRunnerTest, FindsBashWithoutAPath) {
  StepSpec bare = spec("echo $0");
  bare.environment = {"PATH=/no/such/directory"};
  const auto step = start(bare);
  EXPECT_EQ(step->wait(), "exited 0");
  EXPECT_EQ(step->out(), "bash\n");
}

TEST_F(StepRunnerTest, TellsWhenThereAreNoDescriptors) {
  ASSERT_EQ(start("true")->wait(), "exited 0");
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit few{.rlim_cur = test::open_descriptors() + 2, .rlim_max = limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const auto step = start("true");
  const std::string end = step->wait();
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(end, "not started");
  EXPECT_THAT(step->detail(), HasSubstr("Too many open files"));
  EXPECT_EQ(start("true")->wait(), "exited 0");
}

TEST_F(StepRunnerTest, ManyOneAfterTheOtherLeaveNothing) {
  ASSERT_EQ(start("true")->wait(), "exited 0");
  const std::size_t descriptors = test::open_descriptors();
  const pid_t host = test::children_of(getpid()).at(0);
  for (int i = 0; i < 2000; i += 20) {
    std::vector<std::shared_ptr<StepRecorder>> steps;
    for (int j = 0; j < 20; ++j) steps.push_back(start("echo $((1 + 1))", "input"));
    for (const auto& step : steps) ASSERT_EQ(step->wait(), "exited 0");
  }
  EXPECT_EQ(test::open_descriptors(), descriptors);
  EXPECT_TRUE(wait_until([&] { return test::children_of(host).empty(); }));
  const std::filesystem::directory_iterator entries("/proc/" + std::to_string(host) + "/fd");
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 6);  // 0 to 2, server, signals, lock
}

TEST_F(StepRunnerTest, FiveHundredRunAtTheSameTime) {
  ASSERT_EQ(mkfifo((directory_ / "gate").c_str(), 0600), 0);
  std::vector<std::shared_ptr<StepRecorder>> steps;
  for (int i = 0; i < 500; ++i) steps.push_back(start("echo here; read -r line < gate || exit 7"));
  for (const auto& step : steps) ASSERT_TRUE(step->wait_for_output("here"));
  // All of them wait at the gate, which opens when it is opened for writing.
  std::atomic<bool> done = false;
  std::thread opener([&] {
    while (!done) {
      const UniqueFd gate(open((directory_ / "gate").c_str(), O_WRONLY | O_NONBLOCK));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (const auto& step : steps) EXPECT_EQ(step->wait(), "exited 7");
  done = true;
  opener.join();
}

TEST_F(StepRunnerTest, ObserversMayStartAndStop) {
  class Chain : public StepRecorder {
   public:
    Chain(StepRunner& runner, StepSpec spec, std::shared_ptr<StepRecorder> last)
        : runner_(runner), spec_(std::move(spec)), last_(std::move(last)) {}
    void on_end(const StepEnd& end) override {
      const StepId id = runner_.start(spec_, last_);
      runner_.stop(id, StopManner::at_once);
      StepRecorder::on_end(end);
    }

   private:
    StepRunner& runner_;
    StepSpec spec_;
    std::shared_ptr<StepRecorder> last_;
  };
  const auto last = std::make_shared<StepRecorder>();
  runner->start(spec("true"), std::make_shared<Chain>(*runner, spec("sleep 1000"), last));
  EXPECT_THAT(last->wait(), testing::AnyOf("not started", "signalled 9"));
}

TEST_F(StepRunnerTest, IsReadyAndSaysSo) {
  for (int i = 0; i < 2; ++i) {
    std::promise<void> ready;
    runner->when_ready([&] { ready.set_value(); });
    EXPECT_EQ(ready.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  }
}

TEST(StepRunner, NeedsItsLockFile) {
  const auto made = StepRunner::make({.lock_file = "/no/such/directory/lock"});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().detail, HasSubstr("/no/such/directory/lock"));
}

TEST(StepRunner, TellsThatThereIsNoStepHost) {
  const test::TempDirectory directory;
  auto made = StepRunner::make({.program = "/no/such/program", .lock_file = directory / "lock"});
  ASSERT_TRUE(made);
  const auto step = std::make_shared<StepRecorder>();
  (*made)->start({.script = "true", .directory = "/"}, step);
  EXPECT_EQ(step->wait(), "not started");
  EXPECT_THAT(step->detail(), HasSubstr("/no/such/program cannot be started"));
}

}  // namespace
}  // namespace reprise::worker
