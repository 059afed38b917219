#include "spool/queue_watch.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "support/drain_fixture.h"

namespace reprise::spool {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::test_id;

class QueueWatchTest : public test::DrainTest {
 protected:
  QueueWatchTest() : watch(started(files)) {}

  static QueueWatch started(const SpoolFiles& files) {
    auto watch = QueueWatch::start(files);
    EXPECT_TRUE(watch) << watch.error().detail;
    return std::move(*watch);
  }
  bool something_arrived() { return watch.wait(0s, pauses); }

  QueueWatch watch;
};

TEST_F(QueueWatchTest, AFileArrivesByItsRename) {
  EXPECT_FALSE(something_arrived());
  put(".x.json.tmp", "{}");
  EXPECT_FALSE(something_arrived());
  std::filesystem::rename(queue_file(".x.json.tmp"), queue_file("x.json"));
  EXPECT_TRUE(watch.wait(10s, pauses));
  EXPECT_FALSE(something_arrived());
}

TEST_F(QueueWatchTest, AFileArrivesByALinkOrDirectly) {
  put(".x.json.tmp", "{}");
  std::filesystem::create_hard_link(queue_file(".x.json.tmp"), queue_file("x.json"));
  EXPECT_TRUE(something_arrived());
  put("y.json", "{}");
  EXPECT_TRUE(something_arrived());
}

TEST_F(QueueWatchTest, OtherFilesAndRemovalsAreNoArrivals) {
  put("x.json", "{}");
  EXPECT_TRUE(something_arrived());
  std::filesystem::remove(queue_file("x.json"));
  put("note.txt", "{}");
  test::write_file(dead_file("z.json"), "{}");
  EXPECT_FALSE(something_arrived());
}

TEST_F(QueueWatchTest, ManyArrivalsAreOne) {
  for (std::size_t i = 0; i < 2000; ++i) put_event(i);
  EXPECT_TRUE(something_arrived());
  EXPECT_FALSE(something_arrived());
}

TEST_F(QueueWatchTest, AnArrivalEndsAWait) {
  std::thread writer([this] { put_event(1); });
  EXPECT_TRUE(watch.wait(60s, pauses));
  writer.join();
}

TEST_F(QueueWatchTest, TheTimeEnds) {
  const auto begin = steady_clock::now();
  EXPECT_FALSE(watch.wait(20ms, pauses));
  EXPECT_GE(steady_clock::now() - begin, 20ms);
}

class ThreadedPauses final : public Pauses {
 public:
  bool wait(Duration) override { return false; }
  bool interrupted() const override {
    asked = true;
    asked.notify_all();
    return interrupt;
  }
  std::atomic<bool> interrupt{false};
  mutable std::atomic<bool> asked{false};
};

TEST_F(QueueWatchTest, AnInterruptEndsAWait) {
  ThreadedPauses threaded;
  std::thread interrupter([&] {
    threaded.asked.wait(false);
    threaded.interrupt = true;
  });
  const auto begin = steady_clock::now();
  EXPECT_FALSE(watch.wait(60s, threaded));
  EXPECT_LT(steady_clock::now() - begin, 10s);
  interrupter.join();
}

}  // namespace
}  // namespace reprise::spool
