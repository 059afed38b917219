// The scheduling attributes that a start would hear of, by job.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "storage/live_jobs.h"

namespace reprise::test {

class LiveAttributes final : public storage::LiveJobVisitor {
 public:
  Status fresh(QueueNumber queue, Priority, const Scheduling& scheduling,
               std::span<const Seq> seqs) override {
    EXPECT_TRUE(std::ranges::is_sorted(seqs));
    for (const Seq seq : seqs) note({queue, seq}, scheduling);
    return ok();
  }
  Status other(const storage::LiveJob& job) override {
    note(job.key, job.scheduling);
    return ok();
  }
  std::map<JobKey, Scheduling> jobs;

 private:
  void note(JobKey job, const Scheduling& scheduling) {
    EXPECT_TRUE(jobs.emplace(job, scheduling).second) << "twice: " << job.seq;
  }
};

inline std::map<JobKey, Scheduling> live_attributes(const storage::Storage& storage) {
  LiveAttributes heard;
  const Status visited = storage.visit_live_jobs(heard);
  EXPECT_TRUE(visited) << visited.error().detail;
  return heard.jobs;
}

// As many and as long ones as a job may have.
inline Scheduling heaviest_attributes() {
  return {.fairness_key = std::string(200, 'f'),
          .weight = 1000,
          .throttle_keys = std::vector(16, std::string(200, 't'))};
}

}  // namespace reprise::test
