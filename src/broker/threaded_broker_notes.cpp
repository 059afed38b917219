// Notes: small records that modules above the broker keep. They join the open batch like any
// change, and are read from committed storage.
#include <utility>

#include "broker/threaded_broker_impl.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace reprise {
namespace {

Status check_note(const NoteChange& change) {
  if (change.key.empty() || change.key.size() > kMaxNoteKeyBytes) {
    return Error{Errc::key_too_long, "a note's key has 1 to " + std::to_string(kMaxNoteKeyBytes) +
                                         " bytes, not " + std::to_string(change.key.size())};
  }
  if (change.value && change.value->size() > kMaxNoteValueBytes) {
    return Error{Errc::value_too_large,
                 "note " + change.key + " has " + std::to_string(change.value->size()) +
                     " bytes; at most " + std::to_string(kMaxNoteValueBytes) + " are kept"};
  }
  return ok();
}

Result<std::vector<Note>> read_notes(const storage::Storage& storage, const std::string& prefix) {
  const std::string begin = storage::note_key(prefix);
  const auto snapshot = storage.snapshot();
  const auto cursor = snapshot->cursor(storage::Keyspace::meta, begin, storage::prefix_end(begin));
  std::vector<Note> notes;
  for (; cursor->valid(); cursor->next()) {
    auto note = storage::decode_note(cursor->value());
    if (!note) return note.error();
    notes.push_back(*std::move(note));
  }
  REPRISE_TRY(cursor->status());
  return notes;
}

}  // namespace

void ThreadedBroker::change_notes(std::vector<NoteChange> changes, Done<std::size_t> done) {
  std::size_t bytes = 0;
  for (const NoteChange& change : changes) {
    if (const Status checked = check_note(change); !checked) return done(checked.error());
    bytes += change.value ? change.value->size() : 0;
  }
  post<std::size_t>(std::move(done), bytes,
                    [this, changes = std::move(changes)](Timestamp) mutable {
                      for (NoteChange& change : changes) core_->change_note(std::move(change));
                      return Result<std::size_t>(changes.size());
                    });
}

void ThreadedBroker::list_notes(std::string prefix, Done<std::vector<Note>> done) {
  using Notes = std::vector<Note>;
  // Through the engine's line first, so that changes asked for before are in storage.
  Done<std::size_t> after_commit = [this, prefix = std::move(prefix),
                                    done = std::move(done)](Result<std::size_t> turn) mutable {
    if (!turn) return done(turn.error());
    read_on<Notes>(reader_, std::move(done), [this, prefix = std::move(prefix)](Done<Notes> reply) {
      reply(read_notes(storage_, prefix));
    });
  };
  post<std::size_t>(std::move(after_commit), 0, [](Timestamp) { return Result<std::size_t>(0U); });
}

}  // namespace reprise
