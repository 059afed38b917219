// Auditor: the promises of docs/api.md as a client can check them, from what it was told and
// nothing else. Beside the model it is a second opinion: a mistake that model and engine share does
// not get past it.
//   - an acknowledged push is never lost;
//   - an acknowledged ack is final;
//   - no job has two live leases;
//   - no lease has the secret of another.
// "Told" means that the reply left after its batch was synced; the other calls come when a command
// is applied, whatever becomes of its batch.
#pragma once

#include <map>
#include <set>

#include "engine/commands.h"
#include "sim/image.h"

namespace reprise::sim {

class Auditor {
 public:
  void granted(const ClaimReply& reply, Timestamp now);
  // Somebody used a token of the job: what was known of its lease is known no more.
  void token_used(JobKey job);
  // Somebody asked for its end: it may be gone.
  void end_asked(JobKey job);
  void queue_end_asked(QueueNumber queue) { ended_queues_.insert(queue); }

  void told_pushed(JobKey job) { pushed_.insert(job); }
  // Of a lease until then, unless its job has been touched since `touches` were counted.
  void told_leased(JobKey job, Timestamp until, std::uint64_t touches);
  void told_acked(JobKey job) { acked_.insert(job); }

  std::uint64_t touches(JobKey job) const;

  // Every job that a client knows of is there, unless somebody asked for its end.
  void check_nothing_is_lost(const Image& image) const;

 private:
  std::set<std::uint64_t> secrets_;
  std::map<JobKey, std::uint64_t> touches_;
  std::map<JobKey, Timestamp> leased_until_;
  std::set<JobKey> pushed_;
  std::set<JobKey> acked_;
  std::set<JobKey> end_asked_;
  std::set<QueueNumber> ended_queues_;
};

}  // namespace reprise::sim
