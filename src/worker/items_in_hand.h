// ItemsInHand: the external items that workers of this server have taken, or are about to. Each has
// a note before it is taken, which goes after `done` or `failed` has been told: what a former
// server left is told at the start, and nothing is forgotten.
// Threads: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/note.h"
#include "model/queue.h"
#include "runbook/runbook.h"
#include "worker/external_item.h"
#include "worker/run.h"

namespace reprise::worker {

// Where notes are kept; the broker's, or a test's. `done` comes on the loop.
using ChangeNotes =
    std::function<void(std::vector<NoteChange>, absl::AnyInvocable<void(Status)> done)>;

class ItemsInHand {
 public:
  using Book = std::shared_ptr<const runbook::Runbook>;

  ItemsInHand(RunTools tools, ChangeNotes change_notes, std::function<void(std::string_view)> warn);

  bool has(const QueueName& queue, const std::string& key) const;
  // A list is a little old when it is read: what was let go of after it began may still stand in
  // it, though it is done. Between these two calls that is known.
  using ListMark = std::uint64_t;
  ListMark list_begins(const QueueName& queue);
  void list_ends(const QueueName& queue, ListMark list);
  // Whether an item of that list may be taken.
  bool is_free(const QueueName& queue, const std::string& key, ListMark list) const;
  std::size_t count(const QueueName& queue) const;

  // It is in hand from now on; `then` says whether that is on disk. If not, it is not in hand.
  void take(ItemRecord record, absl::AnyInvocable<void(Status)> then);
  // How far it has come.
  void update(const ItemRecord& record, Task then);
  // It was never ours.
  void drop(const ItemRecord& record);
  // Tells `done` or `failed`, by the record's phase, and lets go of it. A command that fails is
  // tried again; in the end it is given up. `told` comes when nothing more will be done, with the
  // error if it was given up.
  using Told = absl::AnyInvocable<void(const std::string& error)>;
  void tell(ItemRecord record, Book book, Told told);

  // What a former server has left; it stays in hand until tell_left() finds its queue declared.
  void restore(ItemRecord record);
  void tell_left(const Book& book);

 private:
  struct Telling;
  void tell_again(const std::shared_ptr<Telling>& telling);
  void told(const std::shared_ptr<Telling>& telling);
  void forget(const ItemRecord& record);
  void erase_note(const std::string& key);
  bool written_again(const std::string& key) const;

  const RunTools tools_;
  const ChangeNotes change_notes_;
  const std::function<void(std::string_view)> warn_;
  std::map<QueueName, std::set<std::string>> in_hand_;
  // Of a queue that is being listed: the lists, and when items were let go of since the oldest.
  struct Listing {
    std::multiset<ListMark> lists;
    std::map<std::string, ListMark> let_go;
  };
  std::map<QueueName, Listing> listings_;
  ListMark next_mark_ = 1;
  std::vector<ItemRecord> left_;
};

// What commands and steps for an item get on standard input.
std::string item_input(const ItemRecord& record);

}  // namespace reprise::worker
