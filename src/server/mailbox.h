// Mailbox: how other threads hand work to an io thread.
// Letters that arrive together are run together: only the first one into an empty box wakes the
// thread, so a commit that answers a hundred requests costs one wake-up.
//
// Once closed, its thread is gone, and post() runs the letter on the caller's thread: a broker that
// answers late must still be able to give back what nobody can receive any more.
// Threads: post() from any; drain() and close() from the owner.
#pragma once

#include <absl/functional/any_invocable.h>

#include <functional>
#include <mutex>
#include <vector>

namespace reprise::server {

class Mailbox {
 public:
  using Letter = absl::AnyInvocable<void()>;

  // `wake` makes the owner call drain() soon. It is called from posting threads, never after
  // close().
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void post(Letter letter);
  void drain();
  // Runs what is left, and from then on nothing waits.
  void close();

 private:
  const std::function<void()> wake_;
  std::mutex mutex_;
  // Protected by mutex_.
  std::vector<Letter> letters_;
  bool closed_ = false;
  // The owner's: keeps its memory from one drain() to the next.
  std::vector<Letter> running_;
};

}  // namespace reprise::server
