#include "server/mailbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace reprise::server {
namespace {

TEST(Mailbox, WakesOnceForLettersThatWaitTogether) {
  int wakes = 0;
  std::vector<int> read;
  Mailbox mailbox([&] { ++wakes; });
  for (int i = 0; i < 3; ++i) mailbox.post([&read, i] { read.push_back(i); });
  EXPECT_EQ(wakes, 1);
  mailbox.drain();
  EXPECT_EQ(read, (std::vector{0, 1, 2}));
  mailbox.post([] {});
  EXPECT_EQ(wakes, 2);
}

TEST(Mailbox, ALetterPostedWhileReadingWaitsForTheNextTime) {
  int wakes = 0;
  int read = 0;
  Mailbox mailbox([&] { ++wakes; });
  mailbox.post([&] {
    ++read;
    mailbox.post([&] { ++read; });
  });
  mailbox.drain();
  EXPECT_EQ(read, 1);
  EXPECT_EQ(wakes, 2);
  mailbox.drain();
  EXPECT_EQ(read, 2);
}

TEST(Mailbox, ClosingReadsWhatIsLeftAndLaterLettersAreReadAtOnce) {
  int wakes = 0;
  int read = 0;
  Mailbox mailbox([&] { ++wakes; });
  mailbox.post([&] { ++read; });
  mailbox.close();
  EXPECT_EQ(read, 1);
  mailbox.post([&] { ++read; });
  EXPECT_EQ(read, 2);
  EXPECT_EQ(wakes, 1);
}

TEST(Mailbox, ALetterThatWasLeftWakesNobodyUntilItIsAsked) {
  int wakes = 0;
  int read = 0;
  Mailbox mailbox([&] { ++wakes; });
  mailbox.wake();
  EXPECT_EQ(wakes, 0) << "there is nothing to read";
  mailbox.leave([&] { ++read; });
  mailbox.leave([&] { ++read; });
  EXPECT_EQ(wakes, 0);
  mailbox.wake();
  EXPECT_EQ(wakes, 1);
  mailbox.drain();
  EXPECT_EQ(read, 2);
  mailbox.wake();
  EXPECT_EQ(wakes, 1);
  mailbox.close();
  mailbox.leave([&] { ++read; });
  EXPECT_EQ(read, 3) << "nobody else would";
}

TEST(Mailbox, LosesNothingFromSeveralThreads) {
  constexpr int kLetters = 1000;
  std::atomic<bool> woken = false;
  int read = 0;
  Mailbox mailbox([&] { woken = true; });
  std::vector<std::thread> senders;
  for (int i = 0; i < 4; ++i) {
    senders.emplace_back([&] {
      for (int letter = 0; letter < kLetters; ++letter) mailbox.post([&] { ++read; });
    });
  }
  while (read < 4 * kLetters) {
    if (woken.exchange(false)) mailbox.drain();
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(read, 4 * kLetters);
}

}  // namespace
}  // namespace reprise::server
