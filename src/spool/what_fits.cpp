#include "spool/what_fits.h"

#include <iterator>
#include <utility>

namespace reprise::spool {

Stored add_what_fits(const AddEvents& add, std::vector<NewFile> events) {
  const std::size_t count = events.size();
  auto added = add(events);
  if (added) return {.count = count, .added = *std::move(added), .error = {}};
  if (added.error().code != Errc::spool_full || count == 1) {
    return {.count = 0, .added = {}, .error = added.error()};
  }
  const auto middle = events.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::vector<NewFile> second(std::make_move_iterator(middle),
                              std::make_move_iterator(events.end()));
  events.erase(middle, events.end());
  Stored stored = add_what_fits(add, std::move(events));
  if (stored.error) return stored;
  Stored rest = add_what_fits(add, std::move(second));
  stored.count += rest.count;
  stored.added.dropped += rest.added.dropped;
  for (auto& name : rest.added.already_there) {
    stored.added.already_there.push_back(std::move(name));
  }
  stored.error = std::move(rest.error);
  return stored;
}

}  // namespace reprise::spool
