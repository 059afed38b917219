// TimerTable: what is to be done when, by name. Time comes in as an argument.
// Invariant: by_name_ and by_due_ hold the same timers.
// Threads: one owner.
#pragma once

#include <absl/functional/any_invocable.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace reprise::worker {

class TimerTable {
 public:
  struct Entry {
    std::string name;
    Timestamp due{};
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  // A timer that is there already is moved, and does the new thing.
  void set(std::string name, Timestamp due, absl::AnyInvocable<void()> task);
  // False: there was none, which is no error.
  bool cancel(std::string_view name);

  std::optional<Timestamp> next_due() const;
  // The first that is due, taken out; nothing: none is.
  std::optional<absl::AnyInvocable<void()>> take_due(Timestamp now);
  // Those whose names begin so, by name.
  std::vector<Entry> list(std::string_view prefix) const;
  std::size_t size() const { return by_name_.size(); }
  void clear();

 private:
  struct Timer {
    Timestamp due{};
    absl::AnyInvocable<void()> task;
  };
  std::map<std::string, Timer, std::less<>> by_name_;
  std::set<std::pair<Timestamp, std::string>> by_due_;
};

}  // namespace reprise::worker
