// A spool in a directory of its own, and a drain of it whose time and endpoint a test controls.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "spool/drain.h"
#include "spool/spool_files.h"
#include "support/fake_clock.h"
#include "support/fake_ingest.h"
#include "support/files.h"
#include "support/temp_directory.h"

namespace reprise::test {

// Waits that take no time but move a clock.
class FakePauses final : public spool::Pauses {
 public:
  explicit FakePauses(FakeClock& clock) : clock_(clock) {}

  bool wait(Duration time) override {
    if (interrupted_) return false;
    waits.push_back(time);
    if (interrupt_in_wait && waits.size() == *interrupt_in_wait) interrupted_ = true;
    if (interrupted_) return false;
    clock_.advance(time);
    return true;
  }
  bool interrupted() const override { return interrupted_; }
  void interrupt(bool now = true) { interrupted_ = now; }

  std::vector<Duration> waits;
  std::optional<std::size_t> interrupt_in_wait;  // counted from 1

 private:
  FakeClock& clock_;
  bool interrupted_ = false;
};

// The middle of all its numbers: jitter of nothing.
class MiddleRandom final : public Random {
 public:
  std::uint64_t next_u64() override { return 1 << 15; }
};

// The n-th of ids that sort as their numbers do.
inline std::string test_id(std::size_t number) {
  return fmt::format("01KA5QH3M5T6W0V8Z2Y4{:06}", number);
}

class DrainTest : public ::testing::Test {
 protected:
  DrainTest() : files(make_spool(directory.path())) {}

  static spool::SpoolFiles make_spool(const std::string& path) {
    auto made = spool::SpoolFiles::create(path);
    EXPECT_TRUE(made) << made.error().detail;
    return std::move(*made);
  }

  std::filesystem::path queue_file(const std::string& name) const {
    return std::filesystem::path(directory.path()) / "queue" / name;
  }
  std::filesystem::path dead_file(const std::string& name) const {
    return std::filesystem::path(directory.path()) / "dead-letter" / name;
  }
  void put(const std::string& name, std::string_view content) const {
    write_file(queue_file(name), content);
  }
  // `more` are further fields: `,"_attempts":3`.
  std::string put_event(std::size_t number, std::string_view more = {}) const {
    const std::string id = test_id(number);
    put(id + ".json", fmt::format(R"({{"id":"{}","type":"t","data":{}{}}})", id, number, more));
    return id;
  }
  void put_events(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) put_event(i);
  }
  static std::vector<std::string> names_in(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    for (const auto& path : files_below(folder)) names.push_back(path.filename());
    return names;
  }
  std::vector<std::string> queued() const { return names_in(queue_file("")); }
  std::vector<std::string> dead() const { return names_in(dead_file("")); }
  Json queued_json(const std::string& id) const { return json_in(queue_file(id + ".json")); }
  Json envelope(const std::string& id) const { return json_in(dead_file(id + ".json")); }
  static Json json_in(const std::filesystem::path& path) {
    auto json = Json::parse(read_file(path));
    EXPECT_TRUE(json) << path;
    return json ? std::move(*json) : Json();
  }

  spool::Drain make_drain() {
    return {
        {files, endpoint, pauses, clock, random},
        options,
        {[this](const std::string& text) { warnings.push_back(text); },
         [this](std::uint64_t done, std::uint64_t found) { progress.emplace_back(done, found); }}};
  }
  // One run; its sums must be those of the files that were there.
  spool::DrainResult run() {
    const auto found = std::ranges::count_if(
        queued(), [](const std::string& name) { return !name.starts_with('.'); });
    spool::Drain drain = make_drain();
    const auto result = drain.run();
    EXPECT_TRUE(result) << result.error().detail;
    if (!result) return {};
    EXPECT_EQ(result->accepted + result->duplicates + result->dead_lettered + result->corrupt +
                  result->remaining,
              static_cast<std::uint64_t>(found));
    EXPECT_EQ(queued().size(), result->remaining);
    EXPECT_LE(result->retried, result->remaining);
    EXPECT_EQ(result->rejected_files.size(), result->retried);
    EXPECT_EQ(result->stop_reason.empty(), !result->stopped_early());
    return *result;
  }

  TempDirectory directory;
  FakeClock clock;
  FakePauses pauses{clock};
  MiddleRandom random;
  FakeIngest endpoint;
  spool::DrainOptions options;
  std::vector<std::string> warnings;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> progress;
  spool::SpoolFiles files;
};

}  // namespace reprise::test
