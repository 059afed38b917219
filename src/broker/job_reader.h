// JobReader: answers people's questions about jobs from one consistent view of committed storage.
// Costs are bounded: a browse call looks at a limited number of jobs, a prefix at a limited number
// of candidates.
// Threads: stateless; any.
#pragma once

#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "broker/browse.h"
#include "storage/storage.h"

namespace reprise {

class JobReader {
 public:
  JobReader(const storage::Storage& storage, QueueNumber queue)
      : storage_(storage), queue_(queue) {}

  // `id` is whole, or a prefix of at least kIdPrefixMin characters. Errc::job_not_found,
  // Errc::ambiguous_id (with the matches), Errc::invalid_field when it is no id at all.
  // All jobs there are have seqs below `seq_end`.
  Result<Seq> resolve(std::string_view id, Seq seq_end) const;
  Result<JobView> show(Seq seq, Timestamp now) const;
  Result<BrowsePage> browse(const BrowseQuery& query, Timestamp now) const;

 private:
  Result<BrowsePage> browse_pushed(const BrowseQuery& query, Timestamp now) const;
  Result<BrowsePage> browse_newest(const BrowseQuery& query, Timestamp now) const;

  const storage::Storage& storage_;
  const QueueNumber queue_;
};

inline constexpr std::size_t kIdPrefixMin = 4;

}  // namespace reprise
