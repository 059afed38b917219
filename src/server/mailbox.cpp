#include "server/mailbox.h"

#include <utility>

namespace reprise::server {

void Mailbox::post(Letter letter) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      letters_.push_back(std::move(letter));
      // Under the lock, so that close() cannot come between and take the thread away.
      if (letters_.size() == 1) wake_();
      return;
    }
  }
  letter();
}

void Mailbox::leave(Letter letter) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) return letters_.push_back(std::move(letter));
  }
  letter();
}

void Mailbox::wake() {
  const std::lock_guard lock(mutex_);
  if (!closed_ && !letters_.empty()) wake_();
}

void Mailbox::drain() {
  {
    const std::lock_guard lock(mutex_);
    running_.swap(letters_);
  }
  for (Letter& letter : running_) letter();
  running_.clear();
}

void Mailbox::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  drain();
}

}  // namespace reprise::server
