// AttemptHistory: the leases of a job that have ended, the first and the last nine of them.
// Kept as the bytes that its state record has of them, since a job that fails again and again is
// stored each time: the history is copied then, and nobody looks into it but people. It is read
// attempt by attempt, and each is put together when it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"

namespace reprise {

enum class AttemptOutcome : std::uint8_t {
  failed = 0,
  lease_expired = 1,
  released = 2,
  worker_lost = 3,  // somebody else saw the worker end
  completed = 4,    // only of jobs that are kept after it
  buried = 5,       // put aside by who had it
};
std::string_view outcome_name(AttemptOutcome outcome);

// One lease that has ended. `Text` is a view of what somebody else keeps, or a copy.
template <class Text>
struct BasicAttempt {
  std::uint32_t number{};        // 1 for the job's first lease
  std::uint32_t generation = 1;  // of the job at that time
  Timestamp started_at;
  Timestamp ended_at;
  AttemptOutcome outcome{};
  Text worker;
  Text error;
  Text error_type;
  friend bool operator==(const BasicAttempt&, const BasicAttempt&) = default;
};
using Attempt = BasicAttempt<std::string>;
using AttemptView = BasicAttempt<std::string_view>;

// How it began and how it goes.
inline constexpr std::size_t kHistoryKept = 10;

class AttemptHistory {
 public:
  AttemptHistory() = default;
  AttemptHistory(std::initializer_list<Attempt> attempts)
      : AttemptHistory(std::span(attempts.begin(), attempts.size())) {}
  explicit AttemptHistory(std::span<const Attempt> attempts);
  // Of so many attempts, as encoded() has them, at the front of `in`. nullopt: they are damaged.
  static std::optional<AttemptHistory> read(ByteReader& in, std::size_t count);

  // One more; with more than kHistoryKept the second goes.
  void add(const AttemptView& attempt);
  void push_back(const Attempt& attempt);

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Attempt at(std::size_t place) const;
  Attempt operator[](std::size_t place) const { return at(place); }
  // Must not be empty.
  Attempt back() const { return at(count_ - 1); }

  class Iterator {
   public:
    using value_type = Attempt;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using pointer = const Attempt*;
    using reference = Attempt;

    Iterator() = default;
    Attempt operator*() const;
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& a, const Iterator& b) {
      return a.rest_.size() == b.rest_.size();
    }

   private:
    friend class AttemptHistory;
    explicit Iterator(std::string_view rest) : rest_(rest) {}
    std::string_view rest_;
  };
  // Valid until the history is changed.
  Iterator begin() const { return Iterator(bytes_); }
  Iterator end() const { return {}; }

  // docs/format.md, «state».
  std::string_view encoded() const { return bytes_; }

  friend bool operator==(const AttemptHistory&, const AttemptHistory&) = default;

 private:
  std::string bytes_;
  std::size_t count_ = 0;
};

}  // namespace reprise
