// Inbox: what other threads have for the sender's thread. Whoever holds one may post after the
// sender has gone: it is thrown away then.
// Threads: post() and close() from any thread, take() from the owner's.
#pragma once

#include <absl/functional/any_invocable.h>

#include <mutex>
#include <utility>
#include <vector>

namespace reprise::webhook {

class Inbox {
 public:
  using Item = absl::AnyInvocable<void()>;

  // `wake` is called after each post, under the inbox's lock.
  explicit Inbox(absl::AnyInvocable<void()> wake) : wake_(std::move(wake)) {}

  void post(Item item) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    items_.push_back(std::move(item));
    wake_();
  }

  std::vector<Item> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(items_, {});
  }

  // From the return on nothing is kept and nobody is woken.
  void close() {
    std::vector<Item> dropped;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(items_);
  }

 private:
  std::mutex mutex_;
  absl::AnyInvocable<void()> wake_;
  std::vector<Item> items_;
  bool closed_ = false;
};

}  // namespace reprise::webhook
