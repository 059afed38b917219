#include "webhook/finish_list.h"

#include <algorithm>
#include <utility>

namespace reprise::webhook {
namespace {

constexpr Duration kAfterRefusal = std::chrono::seconds(1);

}  // namespace

void FinishList::add(const WebhookKey& key) {
  if (known_.insert(key).second) waiting_.push_back(key);
}

std::vector<WebhookKey> FinishList::take(Timestamp now) {
  if (under_way_ || waiting_.empty() || now < not_before_) return {};
  const auto end =
      waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kAtOnce));
  std::vector<WebhookKey> batch(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  under_way_ = true;
  return batch;
}

Timestamp FinishList::next_time() const {
  return under_way_ || waiting_.empty() ? kNever : not_before_;
}

void FinishList::finished(const std::vector<WebhookKey>& keys, bool page_under_way) {
  under_way_ = false;
  if (page_under_way) {
    out_during_page_.insert(out_during_page_.end(), keys.begin(), keys.end());
    return;
  }
  for (const WebhookKey& key : keys) known_.erase(key);
}

void FinishList::refused(const std::vector<WebhookKey>& keys, Timestamp now) {
  under_way_ = false;
  not_before_ = now + kAfterRefusal;
  waiting_.insert(waiting_.end(), keys.begin(), keys.end());
}

void FinishList::page_arrived() {
  for (const WebhookKey& key : out_during_page_) known_.erase(key);
  out_during_page_.clear();
}

std::vector<WebhookKey> FinishList::take_rest() { return std::exchange(waiting_, {}); }

}  // namespace reprise::webhook
