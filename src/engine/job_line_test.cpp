#include "engine/job_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/random.h"
#include "support/seeds.h"

namespace reprise {
namespace {

// A line, and what it must be like.
class CheckedLine {
 public:
  void insert(Priority priority, Seq seq) {
    EXPECT_EQ(line_.insert(priority, seq), model_.emplace(priority, seq).second);
    check();
  }
  void insert_all(Priority priority, const std::vector<Seq>& seqs) {
    std::uint64_t added = 0;
    for (const Seq seq : seqs) added += model_.emplace(priority, seq).second ? 1 : 0;
    EXPECT_EQ(line_.insert_all(priority, seqs), added);
    check();
  }
  void erase(Priority priority, Seq seq) {
    EXPECT_EQ(line_.erase(priority, seq), model_.erase({priority, seq}) == 1);
    check();
  }
  void erase(Seq seq) {
    const auto found =
        std::ranges::find_if(model_, [&](const auto& job) { return job.second == seq; });
    EXPECT_EQ(line_.erase(seq), found != model_.end());
    if (found != model_.end()) model_.erase(found);
    check();
  }
  void erase_front() { erase(model_.begin()->first, model_.begin()->second); }
  // One of those that are there.
  std::pair<Priority, Seq> any(SeededRandom& dice) const {
    return *std::next(model_.begin(), static_cast<std::ptrdiff_t>(dice.below(model_.size())));
  }
  std::size_t size() const { return model_.size(); }
  bool has(Seq seq) const {
    return std::ranges::any_of(model_, [&](const auto& job) { return job.second == seq; });
  }

 private:
  void check() const {
    ASSERT_EQ(line_.size(), model_.size());
    ASSERT_EQ(line_.empty(), model_.empty());
    if (model_.empty()) return;
    ASSERT_EQ(line_.front(), *model_.begin());
    const auto oldest =
        std::ranges::min_element(model_, {}, [](const auto& job) { return job.second; });
    ASSERT_EQ(line_.oldest(), oldest->second);
  }

  JobLine line_;
  std::set<std::pair<Priority, Seq>> model_;
};

TEST(JobLine, TakesSixteenBytes) { EXPECT_EQ(sizeof(JobLine), 16U); }

TEST(JobLine, EmptyHasNothingToErase) {
  CheckedLine line;
  line.erase(5, 1);
  line.erase(Seq{1});
  line.insert_all(5, {});
}

// From nothing to a backlog and back, past each number at which it changes its form, both ways.
TEST(JobLine, GrowsAndShrinks) {
  for (const std::size_t most : {1U, 2U, 16U, 17U, 63U, 64U, 65U, 66U, 300U}) {
    CheckedLine line;
    for (std::size_t i = 0; i < most; ++i) line.insert(static_cast<Priority>(i % 3), 1000 - i);
    while (line.size() > 0) line.erase_front();
    line.insert(1, 1);
    line.insert(1, 1);
  }
}

TEST(JobLine, ManyAtOnce) {
  for (const std::size_t before : {0U, 1U, 2U, 40U, 64U, 100U}) {
    for (const std::size_t more : {1U, 24U, 25U, 63U, 64U, 65U, 500U}) {
      CheckedLine line;
      for (std::size_t i = 0; i < before; ++i) line.insert(7, 2 * i);
      std::vector<Seq> seqs(more);  // some of which are there
      for (std::size_t i = 0; i < more; ++i) seqs[i] = i;
      line.insert_all(7, seqs);
      line.insert_all(3, seqs);
      while (line.size() > 0) line.erase_front();
    }
  }
}

TEST(JobLine, IsWhatASetIs) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(40); ++seed) {
    SeededRandom dice(seed);
    CheckedLine line;
    Seq next = 1;
    std::uint64_t growing = 0;  // of ten steps
    for (int step = 0; step < 2'000; ++step) {
      if (step % 150 == 0) growing = dice.below(11);
      const auto priority = static_cast<Priority>(dice.below(4));
      if (dice.below(10) < growing) {
        if (dice.below(20) == 0) {
          std::vector<Seq> seqs(dice.below(90));
          for (Seq& seq : seqs) seq = next++;
          line.insert_all(priority, seqs);
        } else if (dice.below(10) == 0 && line.size() > 0) {
          const auto [known_priority, known] = line.any(dice);
          line.insert(known_priority, known);
        } else {
          // A job that comes back is older than others.
          const Seq seq = dice.below(3) == 0 ? 1 + dice.below(next) : next;
          next = std::max(next, seq + 1);
          if (!line.has(seq)) line.insert(priority, seq);
        }
      } else if (line.size() > 0) {
        const auto [known_priority, known] = line.any(dice);
        const std::uint64_t how = dice.below(8);
        if (how == 0) {
          line.erase(known);
        } else if (how == 1) {
          line.erase(known_priority + 1, known);
        } else if (how == 2) {
          line.erase(next + 1);
        } else if (how == 3) {
          line.erase(known_priority, known);
        } else {
          line.erase_front();
        }
      }
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace reprise
