#include "spool/what_fits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace reprise::spool {
namespace {

// An outbox that takes whole groups as long as `room` lasts.
class FakeOutbox {
 public:
  Result<Added> add(const std::vector<NewFile>& events) {
    ++calls;
    if (broken) return Error{Errc::io, "No space left on device"};
    if (events.size() > room) return Error{Errc::spool_full, "full"};
    room -= events.size();
    for (const auto& event : events) names.push_back(event.name);
    return Added{.already_there = {}, .dropped = 1};
  }
  AddEvents function() {
    return [this](const auto& events) { return add(events); };
  }

  std::size_t room = 1000;
  bool broken = false;
  int calls = 0;
  std::vector<std::string> names;
};

std::vector<NewFile> events(std::size_t count) {
  std::vector<NewFile> made;
  for (std::size_t i = 0; i < count; ++i) made.push_back({std::to_string(i), "{}"});
  return made;
}

TEST(AddWhatFits, AGroupIsOneCall) {
  FakeOutbox outbox;
  const auto stored = add_what_fits(outbox.function(), events(100));
  EXPECT_EQ(stored.count, 100U);
  EXPECT_EQ(stored.added.dropped, 1U);
  EXPECT_FALSE(stored.error);
  EXPECT_EQ(outbox.calls, 1);
}

TEST(AddWhatFits, WhatFitsIsStoredInItsOrder) {
  for (std::size_t room = 0; room <= 12; ++room) {
    FakeOutbox outbox;
    outbox.room = room;
    const auto stored = add_what_fits(outbox.function(), events(11));
    const std::size_t expected = std::min<std::size_t>(room, 11);
    EXPECT_EQ(stored.count, expected);
    EXPECT_EQ(stored.error.has_value(), room < 11);
    ASSERT_EQ(outbox.names.size(), expected);
    for (std::size_t i = 0; i < expected; ++i) EXPECT_EQ(outbox.names[i], std::to_string(i));
  }
}

TEST(AddWhatFits, ADiskThatFailsIsNotAskedAgain) {
  FakeOutbox outbox;
  outbox.broken = true;
  const auto stored = add_what_fits(outbox.function(), events(20));
  EXPECT_EQ(stored.count, 0U);
  EXPECT_EQ(stored.error->code, Errc::io);
  EXPECT_EQ(outbox.calls, 1);
}

TEST(AddWhatFits, WhatWasThereAlreadyIsCountedAndNamed) {
  std::size_t calls = 0;
  const auto stored = add_what_fits(
      [&](const std::vector<NewFile>& events) -> Result<Added> {
        ++calls;
        if (events.size() > 2) return Error{Errc::spool_full, "full"};
        return Added{.already_there = {events.front().name}, .dropped = 2};
      },
      events(4));
  EXPECT_EQ(calls, 3U);
  EXPECT_EQ(stored.count, 4U);
  EXPECT_EQ(stored.added.already_there, (std::vector<std::string>{"0", "2"}));
  EXPECT_EQ(stored.added.dropped, 4U);
}

}  // namespace
}  // namespace reprise::spool
