// Saboteur: bugs on purpose, of the kind that has cost other queues their jobs, to prove that the
// simulation would notice.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "broker/change_set.h"
#include "engine/engine.h"
#include "model/hook.h"
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
  swap_verdicts,   // a hook's verdict is applied to another job
  forget_words,    // what a hook said about a death is not stored
  forget_verdict,  // nor what it said about a push
  forget_config,   // nor a value that hooks look up
  hide_errors,     // an error of a hook is taken for an answer, so no breaker ever opens
  forget_level,    // a restart finds all throttles full
  lose_wake,       // a token comes and nobody who waits for it is woken
  // Planted in the model: it is the server that looks wrong then.
  spend_on_dead,          // a job that turns out to be over its ttl costs a token
  take_one_token,         // a job that names several throttles takes of one of them
  forget_undecided,       // a failure that waits for its hook does not count as leased
  ignore_weights,         // all fairness keys weigh the same
  keep_expired_leases,    // a lease that expires still counts for its key
  count_spared_failures,  // failures count while the breaker is not closed
};
std::string_view sabotage_name(Sabotage sabotage);

class Saboteur {
 public:
  Saboteur(Sabotage sabotage, std::uint64_t seed) : sabotage_(sabotage), dice_(seed) {}

  std::unique_ptr<Random> make_random(std::uint64_t seed) const;
  bool settles_early() const { return sabotage_ == Sabotage::settle_early; }
  // A tick that comes when a token has come for somebody.
  bool swallows_tick(const Engine& engine, Timestamp now) const;
  // Before a commit.
  void tamper(ChangeSet& changes, storage::Durability& durability);
  // Before the engine hears them.
  void tamper(std::vector<HookResult>& results) const;
  // Of the batch that was next when the server died. Empty: as it should be, nothing.
  ChangeSet torn_half(const ChangeSet& changes) const;

 private:
  static void keep_failures(ChangeSet& changes);
  static void leave_letter(ChangeSet& changes);
  static void forget_words(ChangeSet& changes);
  static void forget_verdict(ChangeSet& changes);
  template <class Kind>
  void forget_one(ChangeSet& changes);

  const Sabotage sabotage_;
  Dice dice_;
};

}  // namespace reprise::sim
