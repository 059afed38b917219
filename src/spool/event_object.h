// EventObject: the JSON object that an event is, member by member, without rewriting it.
// It borrows: the text must outlive it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_view.h"
#include "base/result.h"

namespace reprise::spool {

inline constexpr std::string_view kAttemptsField = "_attempts";
inline constexpr std::string_view kFirstAttemptField = "_firstAttemptAt";
inline constexpr std::string_view kLastErrorField = "_lastError";

class EventObject {
 public:
  // Strict JSON, numbers of any size. Errc::corrupt: not that, or no object.
  static Result<EventObject> parse(std::string_view bytes);

  // The last member of this name; absent when there is none.
  JsonView operator[](std::string_view name) const;
  // A valid `id`, or what is wrong with it.
  Result<std::string> id() const;
  // The object's text; each bookkeeping member is cut out with its comma.
  std::string without_bookkeeping() const;

 private:
  std::string_view text_;
  std::vector<std::pair<std::string, JsonView>> members_;
};

}  // namespace reprise::spool
