// Killed after any step, a drain loses nothing, and nothing is taken twice.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>

#include "spool/drain.h"
#include "support/drain_fixture.h"

namespace reprise::spool {
namespace {

using test::DrainTest;
using test::Ids;
using test::test_id;
using testing::ElementsAre;
using testing::IsEmpty;

// What it has taken is in a file, which outlives a killed sender.
class RememberingIngest {
 public:
  explicit RememberingIngest(std::string path) : path_(std::move(path)) {}

  IngestAnswer operator()(const Ids& ids, const std::set<std::string>& rejects) const {
    std::set<std::string> known;
    for (const std::string& id : taken()) known.insert(id);
    return test::results(ids, [&](const std::string& id) {
      if (rejects.contains(id)) return "rejected";
      if (!known.insert(id).second) return "duplicate";
      std::ofstream(path_, std::ios::app) << id << "\n" << std::flush;
      return "accepted";
    });
  }
  Ids taken() const {
    Ids ids;
    std::ifstream in(path_);
    for (std::string id; std::getline(in, id);) ids.push_back(id);
    return ids;
  }

 private:
  std::string path_;
};

class DrainCrashTest : public DrainTest {
 protected:
  // Runs a drain in a process of its own that is killed after the step of this number. False: it
  // ended before.
  bool run_killed_at(std::size_t step) {
    const pid_t child = fork();
    if (child == 0) {
      std::size_t steps = 0;
      files.set_step_observer([&](std::string_view) {
        if (++steps == step) kill(getpid(), SIGKILL);
      });
      Drain drain = make_drain();
      _exit(drain.run() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) return true;
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return false;
  }
};

TEST_F(DrainCrashTest, NothingIsLostAndNothingIsTakenTwice) {
  options.batch = 3;
  options.removal_threads = 0;  // so that steps have an order
  const std::string dies = test_id(2);
  const std::string corrupt = test_id(4);
  const std::string retried = test_id(6);
  std::size_t killed = 0;
  for (std::size_t step = 1;; ++step) {
    SCOPED_TRACE(step);
    std::filesystem::remove_all(directory.path());
    files = make_spool(directory.path());
    for (const std::size_t number : {0, 1, 3, 5, 7, 8, 9}) put_event(number);
    put_event(2, R"(,"_attempts":9)");
    put(corrupt + ".json", "{");
    put_event(6);
    const RememberingIngest remembering(directory / "taken");
    endpoint.script = [&](const Ids& ids) {
      auto answer = remembering(ids, {dies, retried});
      files.reached("taken by the endpoint");
      return answer;
    };

    const bool was_killed = run_killed_at(step);
    // At no time is an event nowhere.
    for (std::size_t number = 0; number < 10; ++number) {
      const std::string id = test_id(number);
      const Ids taken = remembering.taken();
      EXPECT_TRUE(std::filesystem::exists(queue_file(id + ".json")) ||
                  std::filesystem::exists(dead_file(id + ".json")) ||
                  std::ranges::find(taken, id) != taken.end())
          << id;
    }
    const DrainResult result = run();
    EXPECT_EQ(result.end, DrainEnd::finished);
    EXPECT_EQ(result.local_failures, 0U);
    Ids taken = remembering.taken();
    std::ranges::sort(taken);
    EXPECT_THAT(taken, ElementsAre(test_id(0), test_id(1), test_id(3), test_id(5), test_id(7),
                                   test_id(8), test_id(9)));
    EXPECT_THAT(queued(), ElementsAre(retried + ".json"));
    EXPECT_THAT(dead(), ElementsAre(dies + ".json", corrupt + ".json", corrupt + ".raw"));
    EXPECT_EQ(envelope(dies)["meta"]["attempts"].unsigned_integer(), 10U);
    if (!was_killed) break;
    ++killed;
    ASSERT_LT(step, 1000U);
  }
  // Four answers, seven removals, and the steps of what was written.
  EXPECT_GT(killed, 15U);
}

}  // namespace
}  // namespace reprise::spool
