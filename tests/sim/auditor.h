// Auditor: the promises of docs/api.md as a client can check them, from what it was told and
// nothing else. Beside the model it is a second opinion: a mistake that model and engine share does
// not get past it.
//   - an acknowledged push is never lost, whichever queue the job has come to since;
//   - no job is in two places;
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

  void told_pushed(JobKey job) { pushed_.insert(job.seq); }
  // Of a lease until then, unless its job has been touched since `touches` were counted.
  void told_leased(JobKey job, Timestamp until, std::uint64_t touches);
  void told_acked(JobKey job) { acked_.insert(job.seq); }

  std::uint64_t touches(JobKey job) const;

  // Every job that a client knows of is there, unless somebody asked for its end.
  void check_nothing_is_lost(const Image& image) const;

 private:
  // A job keeps its seq wherever it goes.
  std::set<std::uint64_t> secrets_;
  std::map<Seq, std::uint64_t> touches_;
  std::map<Seq, Timestamp> leased_until_;
  std::set<Seq> pushed_;
  std::set<Seq> acked_;
  std::set<Seq> end_asked_;
};

}  // namespace reprise::sim
