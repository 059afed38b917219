#include "broker/endings.h"

#include <utility>

#include "storage/records.h"

namespace reprise {
namespace {

using storage::EndingKey;
using storage::Keyspace;

// How much more than a page may be read to find its beginning.
constexpr std::size_t kOverread = 8;

}  // namespace

Result<std::vector<Ended>> Endings::oldest(const EndingKey& from, const EndingKey& to,
                                           std::size_t most) const {
  std::vector<Ended> found;
  const auto cursor = snapshot_.cursor(Keyspace::endings, ending_key(from), ending_key(to));
  for (; cursor->valid() && found.size() < most; cursor->next()) {
    const auto key = storage::parse_ending_key(cursor->key());
    const auto ending = storage::decode_ending(cursor->value());
    if (!key) return Error{Errc::corrupt, "a key in the list of endings is damaged"};
    if (!ending) return ending.error();
    found.push_back({*key, ending->fingerprint});
  }
  REPRISE_TRY(cursor->status());
  return found;
}

// Storage reads forwards only. So this goes back in windows of time, each twice as long as the one
// behind it, until they hold a page. None is read twice, and nothing before them: where millions
// were purged, storage takes a while to pass over what is left of them.
Result<std::vector<Ended>> Endings::newest(const EndingKey& before, std::size_t most) const {
  std::vector<Ended> found;
  EndingKey to = before;
  Duration length(1);  // a batch of failures shares one microsecond
  while (found.size() < most) {
    const bool is_first = to.at - Timestamp{} <= length;
    const EndingKey begin = from(is_first ? Timestamp{} : to.at - length);
    const auto window = last_in(begin, to, most - found.size());
    if (!window) return window.error();
    found.insert(found.end(), window->rbegin(), window->rend());
    if (is_first) break;
    to = begin;
    length *= 2;
  }
  return found;
}

// In [begin, to), oldest first: the last `most`. Each look begins where the one before it found
// something, so what was deleted before that is passed over once.
Result<std::vector<Ended>> Endings::last_in(const EndingKey& begin, const EndingKey& to,
                                            std::size_t most) const {
  auto found = oldest(begin, to, most * kOverread);
  Timestamp too_late = to.at;  // from here on there are too few
  // More than was asked for: they begin somewhere in between.
  while (found && found->size() == most * kOverread) {
    const Timestamp early = found->front().key.at;
    if (too_late - early <= Duration(1)) break;
    const Timestamp middle = early + (too_late - early) / 2;
    auto later = oldest(from(middle), to, most * kOverread);
    if (!later) return later;
    if (later->size() >= most) {
      found = std::move(later);
    } else {
      too_late = middle;
    }
  }
  // So many in one microsecond: there is nothing left to halve.
  if (found && found->size() == most * kOverread) {
    found = oldest(found->front().key, to, ~std::size_t{0});
  }
  if (found && found->size() > most) {
    found->erase(found->begin(), found->end() - static_cast<std::ptrdiff_t>(most));
  }
  return found;
}

}  // namespace reprise
