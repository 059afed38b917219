// JobLine: fresh jobs by priority, then push order. Takes 16 bytes and no more for one job, as most
// keys have when there are many; a sorted array for some; and a FreshLane for a backlog.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "model/job.h"

namespace reprise {

class FreshLane;

class JobLine {
 public:
  JobLine() = default;
  ~JobLine();
  JobLine(const JobLine&) = delete;
  JobLine& operator=(const JobLine&) = delete;

  // False: it was there already.
  bool insert(Priority priority, Seq seq);
  // In ascending order. How many were new.
  std::uint64_t insert_all(Priority priority, std::span<const Seq> seqs);
  // False: it was not there.
  bool erase(Priority priority, Seq seq);
  // Where its priority is not known: looks through all of them.
  bool erase(Seq seq);

  bool empty() const { return form_ == Form::none; }
  std::uint64_t size() const;
  // The next job. Must not be empty.
  std::pair<Priority, Seq> front() const;
  // The job pushed longest ago, whatever its priority. Must not be empty.
  Seq oldest() const;
  // Jobs that are more urgent than this.
  std::uint64_t count_below(Priority priority) const;

 private:
  using Job = std::pair<Priority, Seq>;
  using Some = std::vector<Job>;  // the next job last
  enum class Form : std::uint8_t { none, one, some, many };
  static constexpr std::size_t kSomeMax = 64;
  // Turning back this late, a line cannot be made to change its form again and again.
  static constexpr std::size_t kManyMin = 16;

  void become_some();  // from one
  void become_many();  // from anything
  void shrink();

  union {
    Seq only_;
    Some* some_;
    FreshLane* many_;
  };
  Priority only_priority_ = 0;
  Form form_ = Form::none;
};
static_assert(sizeof(JobLine) == 16);

}  // namespace reprise
