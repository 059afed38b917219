// Work on a spool that crashes at each of its steps in turn.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "spool/spool_files.h"
#include "support/crashing.h"
#include "support/temp_directory.h"

namespace reprise::test {

inline std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// prepare(directory) fills a new spool; work(files) runs in a child that is killed at its first,
// second, … step until it ends by itself; each time temporaries are swept, and check(files, end)
// looks at what is left.
template <class Prepare, class Work, class Check>
void crash_at_every_step(Prepare prepare, Work work, Check check) {
  constexpr int kMostSteps = 1000;
  for (int step = 1; step < kMostSteps; ++step) {
    SCOPED_TRACE("crash at step " + std::to_string(step));
    const TempDirectory directory;
    auto files = std::move(*spool::SpoolFiles::create(directory.path()));
    prepare(std::filesystem::path(directory.path()));
    const auto end = run_in_child([&] {
      files.set_step_observer(CrashAt(step));
      return work(files);
    });
    ASSERT_NE(end, ChildEnd::failed);
    {
      const auto alone = files.try_write_alone();
      ASSERT_TRUE(alone && *alone) << "a dead process still holds its lock";
      ASSERT_TRUE(files.sweep(**alone));
    }
    check(files, end);
    if (testing::Test::HasFatalFailure()) return;
    if (end == ChildEnd::succeeded) {
      EXPECT_GT(step, 3) << "there were hardly any steps";
      return;
    }
  }
  FAIL() << "it never ended";
}

}  // namespace reprise::test
