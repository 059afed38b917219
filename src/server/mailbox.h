// Mailbox: how other threads hand work to an io thread.
// Letters that arrive together are run together: only the first one into an empty box wakes the
// thread, so a commit that answers a hundred requests costs one wake-up.
//
// Once closed, its thread is gone, and post() runs the letter on the caller's thread: a broker that
// answers late must still be able to give back what nobody can receive any more.
// Threads: drain() and close() from the owner; the rest from any.
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
  // The same without a wake-up: for whoever sees to it that the box is emptied.
  void leave(Letter letter);
  // Wakes the owner if there are letters.
  void wake();
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
