// Many lives of one journal, each of which ends with a power cut: what was synced stays, nothing
// that was lost comes back, and it always opens by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "support/journal_disk.h"
#include "support/seeds.h"

namespace reprise::storage::journal {
namespace {

using test::JournalDisk;
using test::Loss;

class JournalLives {
 public:
  JournalLives(Loss loss, std::uint64_t seed)
      : loss_(loss), random_(seed), disk_(seed % 2 == 0 ? kSmallSegments : kSegmentsOfBlocks) {}

  void run() {
    for (life_ = 0; life_ < 8; ++life_) {
      ASSERT_NO_FATAL_FAILURE(open());
      const bool killed = random_.below(6) == 0;  // the process, not the machine
      // The power may go in the midst of any change.
      if (!killed && random_.below(2) == 0) disk_.files().crash_at(1 + random_.below(60));
      for (std::uint64_t i = random_.below(30); i > 0; --i) {
        if (!step()) break;
      }
      if (killed) {
        disk_.close();
        synced_ = batches_.size();  // by the next start
      } else {
        disk_.cut_power(loss_, random_.next_u64());
        ++cuts_;
      }
    }
    ASSERT_NO_FATAL_FAILURE(open());
  }

  std::uint64_t cuts() const { return cuts_; }
  std::size_t most_under_way() const { return most_under_way_; }

 private:
  // Some lengths come again and again, so that new frames end where old ones did.
  std::string next_body() {
    const std::size_t bytes =
        random_.below(20) == 0 ? random_.below(9000) : 8 + 40 * random_.below(3);
    std::string body = std::to_string(life_) + "." + std::to_string(batches_.size() + 1) + " ";
    body.resize(std::max(body.size(), bytes), static_cast<char>('a' + random_.below(26)));
    return body;
  }

  // False once the power is gone.
  bool step() {
    switch (random_.below(12)) {
      case 0:
        return disk_.journal().rotate().has_value();
      case 1:
        release();
        return true;
      case 2:
      case 3:
      case 4:
        if (!disk_.journal().sync()) return false;
        synced_ = batches_.size();
        return true;
      case 10:
      case 11:
        return commit_side_by_side();
      default: {
        const std::string body = next_body();
        batches_.push_back(body);  // it may be there even if the call fails
        return disk_.append(body, 1, false).has_value();
      }
    }
  }

  // Two or three batches under way, of which a later one may be written first.
  bool commit_side_by_side() {
    struct UnderWay {
      std::string body;
      Journal::Place place;
      Status written = Error{Errc::io, "was not written"};
    };
    std::vector<UnderWay> under_way;
    for (std::uint64_t i = 2 + random_.below(2); i > 0; --i) {
      std::string body = next_body();
      if (!disk_.journal().has_place_for(body.size(), true)) break;
      auto place = disk_.journal().place(body, 1, true);
      batches_.push_back(body);
      if (!place) return false;
      under_way.push_back({.body = std::move(body), .place = *std::move(place)});
    }
    most_under_way_ = std::max(most_under_way_, under_way.size());
    std::vector<UnderWay*> order;
    for (UnderWay& batch : under_way) {
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(random_.below(order.size() + 1)),
                   &batch);
    }
    for (UnderWay* batch : order) {
      batch->written = disk_.journal().write(batch->place, batch->body, 1);
    }
    for (const UnderWay& batch : under_way) {
      if (!disk_.journal().end(batch.place, batch.written)) return false;
      synced_ = batch.place.batch;
    }
    return true;
  }

  // As after a checkpoint, which the base has durably.
  void release() {
    covered_ += random_.below(synced_ - covered_ + 1);
    disk_.journal().release(covered_);
  }

  void open() {
    const auto opened = disk_.open(covered_);
    ASSERT_TRUE(opened) << opened.error().detail;
    const std::uint64_t found = covered_ + disk_.bodies().size();
    ASSERT_GE(found, synced_);
    ASSERT_LE(found, batches_.size());
    ASSERT_TRUE(std::equal(disk_.bodies().begin(), disk_.bodies().end(),
                           batches_.begin() + static_cast<std::ptrdiff_t>(covered_)));
    ASSERT_EQ(disk_.journal().last_batch(), found);
    batches_.resize(found);  // the others are lost, and must stay so
    synced_ = found;
  }

  static constexpr JournalDisk::Options kSmallSegments{.segment_bytes_min = 1024,
                                                       .segment_bytes_max = 4096};
  // Batches that are written side by side do not share one.
  static constexpr JournalDisk::Options kSegmentsOfBlocks{.segment_bytes_min = 5 * kBlockBytes,
                                                          .segment_bytes_max = 8 * kBlockBytes};

  const Loss loss_;
  SeededRandom random_;
  JournalDisk disk_;
  int life_ = 0;
  std::uint64_t cuts_ = 0;
  std::size_t most_under_way_ = 0;
  std::vector<std::string> batches_;
  std::uint64_t synced_ = 0;   // what was promised
  std::uint64_t covered_ = 0;  // what the base has
};

class JournalPowerCut : public testing::TestWithParam<Loss> {};

TEST_P(JournalPowerCut, KeepsWhatWasSyncedAndBringsNothingBack) {
  const auto base_seed = static_cast<std::uint64_t>(GetParam()) * 1'000'000;
  const std::uint64_t seeds = test::seed_count(1500);
  std::uint64_t cuts = 0;
  std::size_t most_under_way = 0;
  for (std::uint64_t seed = base_seed; seed < base_seed + seeds; ++seed) {
    SCOPED_TRACE(seed);
    JournalLives lives(GetParam(), seed);
    ASSERT_NO_FATAL_FAILURE(lives.run());
    cuts += lives.cuts();
    most_under_way = std::max(most_under_way, lives.most_under_way());
  }
  EXPECT_EQ(most_under_way, 3U);
  EXPECT_GE(cuts, 6 * seeds);
  RecordProperty("power_cuts", std::to_string(cuts));
}

INSTANTIATE_TEST_SUITE_P(Losses, JournalPowerCut,
                         testing::Values(Loss::all, Loss::tail, Loss::pages),
                         [](const auto& loss) { return test::loss_name(loss.param); });

}  // namespace
}  // namespace reprise::storage::journal
