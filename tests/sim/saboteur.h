// Saboteur: bugs on purpose, of the kind that has cost other queues their jobs, to prove that the
// simulation would notice.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/random.h"
#include "broker/change_set.h"
#include "sim/dice.h"
#include "storage/storage.h"

namespace reprise::sim {

enum class Sabotage : std::uint8_t {
  none,
  forget_erase,    // a finished job is left in storage
  forget_state,    // a lease, failure or release is not stored
  forget_key,      // an idempotency key is not stored
  forget_server,   // the next id is not stored
  forget_totals,   // a queue's counts and bytes are not stored
  lose_batch,      // a batch is acknowledged and not stored
  ignore_sync,     // a batch is acknowledged before it is durable
  tear_batch,      // half a batch is stored when the server dies
  settle_early,    // the cache gives up changes that storage does not have yet
  repeat_secrets,  // lease tokens are not unique
  keep_failures,   // a retry by hand leaves a job's failures as they are
  leave_letter,    // a job that goes to another queue stays in its own as well
  forget_ending,   // a dead job that is deleted stays in the list of endings
  forget_kept,     // a completed job is not kept
  forget_webhook,  // a death is not noted to be told
  forget_step,     // an operation's progress is not stored
  forget_audit,    // nor what somebody did
  lose_credit,     // the retry lane's credit is not carried on
};
std::string_view sabotage_name(Sabotage sabotage);

class Saboteur {
 public:
  Saboteur(Sabotage sabotage, std::uint64_t seed) : sabotage_(sabotage), dice_(seed) {}

  std::unique_ptr<Random> make_random(std::uint64_t seed) const;
  bool settles_early() const { return sabotage_ == Sabotage::settle_early; }
  // Before a commit.
  void tamper(ChangeSet& changes, storage::Durability& durability);
  // Of the batch that was next when the server died. Empty: as it should be, nothing.
  ChangeSet torn_half(const ChangeSet& changes) const;

 private:
  static void keep_failures(ChangeSet& changes);
  static void leave_letter(ChangeSet& changes);
  template <class Kind>
  void forget_one(ChangeSet& changes);

  const Sabotage sabotage_;
  Dice dice_;
};

}  // namespace reprise::sim
