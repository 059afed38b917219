#include "storage/rocksdb/pace.h"

#include <gtest/gtest.h>

namespace reprise::storage {
namespace {

TEST(Pace, HurriesOnlyForThoseWhoWait) {
  Pace pace;
  EXPECT_FALSE(pace.hurries());
  pace.set_awaited(true);
  EXPECT_TRUE(pace.hurries());
  pace.set_awaited(false);
  EXPECT_FALSE(pace.hurries());
  EXPECT_TRUE(kFullSpeed.hurries());
}

TEST(Pace, HurriesWhenTheNextOverlayIsFurtherThanTheCheckpoint) {
  Pace pace;
  pace.begin(1000);
  EXPECT_FALSE(pace.hurries()) << "nothing has gathered yet";
  pace.set_gathered(0.1);
  EXPECT_TRUE(pace.hurries());
  pace.advance(99);
  EXPECT_TRUE(pace.hurries());
  pace.advance(1);
  EXPECT_FALSE(pace.hurries());
  pace.set_gathered(0.5);
  EXPECT_TRUE(pace.hurries());
  pace.advance(900);
  EXPECT_FALSE(pace.hurries()) << "it is done";
  pace.set_gathered(2.5);
  EXPECT_TRUE(pace.hurries()) << "and still holds commits up";
}

TEST(Pace, BeginsAnewWithEachCheckpoint) {
  Pace pace;
  pace.begin(1000);
  pace.set_gathered(0.9);
  pace.advance(100);
  pace.begin(2000);
  EXPECT_FALSE(pace.hurries());
  pace.set_gathered(0.1);
  EXPECT_TRUE(pace.hurries());
  pace.advance(200);
  EXPECT_FALSE(pace.hurries());
}

TEST(Pace, OfAnEmptyCheckpointIsNoDivisionByZero) {
  Pace pace;
  pace.begin(0);
  EXPECT_FALSE(pace.hurries());
  pace.set_gathered(0.5);
  EXPECT_TRUE(pace.hurries());
}

}  // namespace
}  // namespace reprise::storage
