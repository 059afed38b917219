#include "hooks/log_window.h"

#include <gtest/gtest.h>

namespace reprise::hooks {
namespace {

using namespace std::chrono_literals;

constexpr Steady kStart{1000s};

TEST(LogWindow, AdmitsSoManyInASecond) {
  LogWindow window(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(window.admit(kStart + i * 1ms));
  EXPECT_FALSE(window.admit(kStart + 4ms));
  EXPECT_TRUE(window.has_left_out());
  EXPECT_EQ(window.ends_at(), kStart + 1s);
}

TEST(LogWindow, TheNextSecondHasRoomAgain) {
  LogWindow window(1);
  EXPECT_TRUE(window.admit(kStart));
  EXPECT_TRUE(window.admit(kStart + 1s));
  EXPECT_FALSE(window.has_left_out());
}

TEST(LogWindow, WhatWasLeftOutIsToldBeforeAnythingElse) {
  LogWindow window(2);
  for (int i = 0; i < 5; ++i) window.admit(kStart);
  EXPECT_FALSE(window.admit(kStart + 2s)) << "nobody has told yet";
  EXPECT_EQ(window.take_left_out(kStart + 2s), 4U);
  EXPECT_TRUE(window.admit(kStart + 2s)) << "the telling was one of two lines";
  EXPECT_FALSE(window.admit(kStart + 2s));
}

}  // namespace
}  // namespace reprise::hooks
