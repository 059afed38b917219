// Auditor: the promises of docs/api.md as a client can check them, from what it was told and
// nothing else. Beside the model it is a second opinion: a mistake that model and engine share does
// not get past it.
//   - an acknowledged push is never lost, whichever queue the job has come to since;
//   - no job is in two places;
//   - an acknowledged ack is final;
//   - no job has two live leases;
//   - no lease has the secret of another;
//   - since a throttle was set, no more jobs were started than it had tokens then and since.
// "Told" means that the reply left after its batch was synced; the other calls come when a command
// is applied, whatever becomes of its batch.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "engine/commands.h"
#include "model/throttle.h"
#include "sim/image.h"

namespace reprise::sim {

class Auditor {
 public:
  void granted(const ClaimReply& reply, Timestamp now);
  // Somebody used a token of the job: what was known of its lease is known no more.
  void token_used(JobKey job);
  // Somebody asked for its end: it may be gone.
  void end_asked(JobKey job);

  // Somebody set or unset a throttle: it may be another. Counts these.
  std::uint64_t throttle_changed(const Throttle& throttle);

  void told_pushed(JobKey job) { pushed_.insert(job.seq); }
  // Of a lease until then, unless its job has been touched since `touches` were counted.
  void told_leased(JobKey job, Timestamp until, std::uint64_t touches);
  // Of a throttle that was set then, unless somebody changed it since `changes` were counted.
  void told_throttle(const Throttle& throttle, Timestamp at, std::uint64_t changes);
  void told_started(const std::string& ns, const JobRecord& record, Timestamp at);
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
  struct Spending {
    Throttle throttle;
    Timestamp since;
    std::uint64_t started = 0;
  };
  // By namespace and key.
  std::map<std::pair<std::string, std::string>, Spending> spending_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> changes_;
};

}  // namespace reprise::sim
