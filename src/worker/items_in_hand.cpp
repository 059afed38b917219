#include "worker/items_in_hand.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_writer.h"
#include "worker/command.h"
#include "worker/step_environment.h"

namespace reprise::worker {
namespace {

constexpr int kMostTries = 4;  // the first, and three more
constexpr Duration kFirstWait = std::chrono::seconds(1);

}  // namespace

struct ItemsInHand::Telling {
  ItemRecord record;
  Book book;
  Told told;
  std::string error;
  int tries = 0;
};

ItemsInHand::ItemsInHand(RunTools tools, ChangeNotes change_notes,
                         std::function<void(std::string_view)> warn)
    : tools_(std::move(tools)), change_notes_(std::move(change_notes)), warn_(std::move(warn)) {}

bool ItemsInHand::has(const QueueName& queue, const std::string& key) const {
  const auto found = in_hand_.find(queue);
  return found != in_hand_.end() && found->second.contains(key);
}

ItemsInHand::ListMark ItemsInHand::list_begins(const QueueName& queue) {
  const ListMark list = next_mark_++;
  listings_[queue].lists.insert(list);
  return list;
}

void ItemsInHand::list_ends(const QueueName& queue, ListMark list) {
  const auto found = listings_.find(queue);
  if (found == listings_.end()) return;
  Listing& listing = found->second;
  listing.lists.erase(list);
  if (listing.lists.empty()) {
    listings_.erase(found);
    return;
  }
  const ListMark oldest = *listing.lists.begin();
  std::erase_if(listing.let_go, [&](const auto& item) { return item.second < oldest; });
}

bool ItemsInHand::is_free(const QueueName& queue, const std::string& key, ListMark list) const {
  if (has(queue, key)) return false;
  const auto listing = listings_.find(queue);
  if (listing == listings_.end()) return true;
  const auto let_go = listing->second.let_go.find(key);
  return let_go == listing->second.let_go.end() || let_go->second < list;
}

std::size_t ItemsInHand::count(const QueueName& queue) const {
  const auto found = in_hand_.find(queue);
  return found == in_hand_.end() ? 0 : found->second.size();
}

void ItemsInHand::take(ItemRecord record, absl::AnyInvocable<void(Status)> then) {
  in_hand_[{record.ns, record.queue}].insert(record.item.key);
  const std::string key = item_note_key(record.ns, record.queue, record.item.key);
  std::string note = encode_item(record);
  change_notes_({{key, std::move(note)}},
                [this, record = std::move(record), then = std::move(then)](Status stored) mutable {
                  if (!stored) forget(record);
                  then(std::move(stored));
                });
}

void ItemsInHand::update(const ItemRecord& record, Task then) {
  change_notes_({{item_note_key(record.ns, record.queue, record.item.key), encode_item(record)}},
                [this, name = record.item.key, queue = record.queue,
                 then = std::move(then)](const Status& stored) mutable {
                  if (!stored) {
                    warn_(fmt::format("item {} of queue {}: its record could not be written: {}",
                                      name, queue, stored.error().detail));
                  }
                  then();
                });
}

void ItemsInHand::forget(const ItemRecord& record) {
  const QueueName queue{record.ns, record.queue};
  if (const auto listing = listings_.find(queue); listing != listings_.end()) {
    listing->second.let_go.insert_or_assign(record.item.key, next_mark_++);
  }
  const auto found = in_hand_.find(queue);
  if (found == in_hand_.end()) return;
  found->second.erase(record.item.key);
  if (found->second.empty()) in_hand_.erase(found);
}

void ItemsInHand::drop(const ItemRecord& record) {
  forget(record);
  erase_note(item_note_key(record.ns, record.queue, record.item.key));
}

// A note that stayed would have the next server tell what was told already.
void ItemsInHand::erase_note(const std::string& key) {
  change_notes_({{key, std::nullopt}}, [this, key](const Status& erased) {
    if (erased || erased.error().code == Errc::shutting_down) return;
    // Unless it is in hand again by then, with a record of its own.
    tools_.loop.after("erase:" + key, kFirstWait, [this, key] {
      if (!written_again(key)) erase_note(key);
    });
  });
}

bool ItemsInHand::written_again(const std::string& key) const {
  for (const auto& [queue, keys] : in_hand_) {
    for (const std::string& item : keys) {
      if (item_note_key(queue.ns, queue.name, item) == key) return true;
    }
  }
  return false;
}

void ItemsInHand::tell(ItemRecord record, Book book, Told told_then) {
  auto telling = std::make_shared<Telling>();
  telling->record = std::move(record);
  telling->book = std::move(book);
  telling->told = std::move(told_then);
  tell_again(telling);
}

void ItemsInHand::tell_again(const std::shared_ptr<Telling>& telling) {
  const ItemRecord& record = telling->record;
  const auto queue = telling->book->queues.find(record.queue);
  const runbook::ExternalQueue* external =
      queue == telling->book->queues.end() ? nullptr : queue->second.external();
  const bool well = record.phase == ItemPhase::succeeded;
  if (external == nullptr || !(well ? external->done : external->failed)) return told(telling);
  const runbook::CommandTemplate& command = well ? *external->done : *external->failed;
  CommandSubject subject{.ns = record.ns,
                         .root = telling->book->root,
                         .server_url = tools_.server_url ? tools_.server_url() : "",
                         .run_id = record.run,
                         .worker = record.worker,
                         .queue = record.queue,
                         .job_id = record.item.key,
                         .item = record.item.json};
  if (!well) subject.error = record.error.empty() ? "failed" : record.error;
  auto spec = make_spec(command, subject, tools_.environment);
  const char* name = well ? "done" : "failed";
  if (!spec) {
    warn_(fmt::format("{} of queue {} for item {}: {}", name, record.queue, record.item.key,
                      spec.error().detail));
    return told(telling);
  }
  spec->input = item_input(record);
  const std::string id =
      fmt::format("{}:{}", name, item_note_key(record.ns, record.queue, record.item.key));
  (void)run_command(
      tools_.loop, tools_.steps,
      {.name = id, .spec = *std::move(spec), .timeout = external->timeout},
      [this, telling, name, id](const Result<std::string>& output) {
        if (output) return told(telling);
        const ItemRecord& about = telling->record;
        const bool last = ++telling->tries == kMostTries;
        warn_(fmt::format("{} of queue {} for item {}: {}{}", name, about.queue, about.item.key,
                          output.error().detail, last ? "; given up" : "; it will be tried again"));
        if (last) {
          telling->error = fmt::format("{} for item {} was given up: {}", name, about.item.key,
                                       output.error().detail);
          return told(telling);
        }
        tools_.loop.after("again:" + id, kFirstWait * (1 << (telling->tries - 1)),
                          [this, telling] { tell_again(telling); });
      });
}

void ItemsInHand::told(const std::shared_ptr<Telling>& telling) {
  drop(telling->record);
  telling->told(telling->error);
}

void ItemsInHand::restore(ItemRecord record) {
  in_hand_[{record.ns, record.queue}].insert(record.item.key);
  left_.push_back(std::move(record));
}

void ItemsInHand::tell_left(const Book& book) {
  std::vector<ItemRecord> later;
  for (ItemRecord& record : std::exchange(left_, {})) {
    const auto queue = book->queues.find(record.queue);
    if (record.ns != book->ns || queue == book->queues.end() ||
        queue->second.external() == nullptr) {
      later.push_back(std::move(record));
      continue;
    }
    if (record.phase != ItemPhase::succeeded && record.phase != ItemPhase::failed) {
      record.error = record.phase == ItemPhase::taking ? "the server ended while it was being taken"
                                                       : "the server ended while it ran";
      record.phase = ItemPhase::failed;
    }
    tell(std::move(record), book, [](const std::string&) {});
  }
  left_.insert(left_.end(), std::make_move_iterator(later.begin()),
               std::make_move_iterator(later.end()));
}

std::string item_input(const ItemRecord& record) {
  JsonWriter out;
  out.begin_object();
  out.key("id").value(record.item.key);
  out.key("namespace").value(record.ns);
  out.key("queue").value(record.queue);
  out.key("payload").raw(record.item.json);
  out.end_object();
  return std::string(out.text());
}

}  // namespace reprise::worker
