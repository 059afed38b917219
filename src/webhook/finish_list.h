// FinishList: deaths that are done with and perhaps still in the outbox, which must not be sent
// again. They go out of it in batches, one batch at a time.
// A page of the outbox that was asked for before they were out may still show them: so they are
// remembered until it has come.
// Threads: one owner, no locks. Time: passed in, never read.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "base/time.h"
#include "model/webhook.h"

namespace reprise::webhook {

class FinishList {
 public:
  static constexpr std::size_t kAtOnce = 256;
  // Beyond, nothing more is to be read from the outbox.
  static constexpr std::size_t kFull = 1024;

  void add(const WebhookKey& key);
  bool contains(const WebhookKey& key) const { return known_.contains(key); }
  bool full() const { return known_.size() >= kFull; }

  // The next batch; empty: nothing now. It is under way until one of the two below.
  std::vector<WebhookKey> take(Timestamp now);
  // When to ask again, when nothing else happens before.
  Timestamp next_time() const;
  void finished(const std::vector<WebhookKey>& keys, bool page_under_way);
  void refused(const std::vector<WebhookKey>& keys, Timestamp now);

  void page_arrived();
  // At the end: what no batch has taken yet.
  std::vector<WebhookKey> take_rest();

 private:
  std::set<WebhookKey> known_;
  std::vector<WebhookKey> waiting_;
  std::vector<WebhookKey> out_during_page_;
  bool under_way_ = false;
  Timestamp not_before_ = Timestamp::min();
};

}  // namespace reprise::webhook
