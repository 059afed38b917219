#include "sim/server.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/violation.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace reprise::sim {

Server::Server(const Options& options)
    : options_(options),
      saboteur_(options.sabotage, options.seed),
      random_(saboteur_.make_random(options.seed)),
      disk_(make_disk(options.disk)) {
  models_.emplace(0, Model{});
  recover();
}

void Server::recover() {
  auto core =
      BrokerCore::recover(disk_->storage(), *random_, {.cache_bytes = options_.cache_bytes});
  require(core.has_value(), core ? "" : "the server does not start: " + core.error().detail);
  core_ = *std::move(core);
}

std::vector<Event> Server::seal(const Model& model, Timestamp now) {
  SealedBatch batch = core_->seal(now);
  if (saboteur_.settles_early()) core_->settled(batch.number);
  models_.emplace(batch.number, model);
  std::vector<Event> events = std::move(batch.events);
  sealed_.push_back({std::move(batch), std::exchange(open_replies_, {})});
  return events;
}

bool Server::commit_next(storage::Durability durability) {
  Sealed next = std::move(sealed_.front());
  sealed_.pop_front();
  const bool promised = durability == storage::Durability::synced;
  saboteur_.tamper(next.batch.changes, durability);
  const Status status = BrokerCore::commit(disk_->storage(), next.batch.changes, durability);
  if (!status) {
    require(status.error().code == Errc::io, "commit: " + status.error().detail);
    uncertain_ = next.batch.number;
    return false;
  }
  committed_ = next.batch.number;
  std::ranges::move(next.replies, std::back_inserter(unsynced_replies_));
  if (promised) now_synced();
  return true;
}

bool Server::sync() {
  const Status status = disk_->storage().sync();
  if (!status) {
    require(status.error().code == Errc::io, "sync: " + status.error().detail);
    return false;
  }
  now_synced();
  return true;
}

void Server::now_synced() {
  synced_ = committed_;
  models_.erase(models_.begin(), models_.find(synced_));
  for (const auto& reply : std::exchange(unsynced_replies_, {})) reply();
}

void Server::settle() {
  settled_ = committed_;
  core_->settled(settled_);
}

void Server::check_storage() const {
  const auto image = read_image(disk_->storage());
  require(image.has_value(), image ? "" : "storage cannot be read: " + image.error().detail);
  const std::string wrong = difference(*image, image_of(models_.at(committed_)));
  require(wrong.empty(), "after the commit of batch " + std::to_string(committed_) + ": " + wrong);
}

Server::Survivor Server::restart(Death death, std::uint64_t seed) {
  core_.reset();
  store_torn_half();
  if (death == Death::kill) {
    disk_->kill();
  } else {
    disk_->cut_power(seed);
  }
  const std::uint64_t first = death == Death::kill ? committed_ : synced_;
  Survivor found = survivor(first, uncertain_.value_or(committed_));
  found.model.restart();
  found.clock = stored_clock();

  sealed_.clear();
  open_replies_.clear();
  unsynced_replies_.clear();
  models_.clear();
  models_.emplace(0, found.model);
  committed_ = synced_ = settled_ = 0;
  uncertain_.reset();
  recover();
  return found;
}

Server::Survivor Server::survivor(std::uint64_t first, std::uint64_t last) const {
  auto image = read_image(disk_->storage());
  require(image.has_value(), image ? "" : "storage cannot be read: " + image.error().detail);
  for (std::uint64_t batch = last;; --batch) {
    const Model& model = models_.at(batch);
    if (*image == image_of(model)) {
      const std::uint64_t lost = committed_ - std::min(batch, committed_);
      return {.model = model, .image = std::move(*image), .lost_batches = lost};
    }
    if (batch == first) break;
  }
  throw Violation("what survived is the state after no batch from " + std::to_string(first) +
                  " to " + std::to_string(last) +
                  "; to the first: " + difference(*image, image_of(models_.at(first))) +
                  "; to the last: " + difference(*image, image_of(models_.at(last))));
}

Timestamp Server::stored_clock() const {
  const auto bytes = disk_->storage().get(storage::Keyspace::meta, storage::kServerKey);
  if (!bytes || !*bytes) return Timestamp{};
  return storage::decode_server(**bytes).value().clock;
}

void Server::store_torn_half() {
  if (sealed_.empty()) return;
  ChangeSet half = saboteur_.torn_half(sealed_.front().batch.changes);
  if (half.empty()) return;
  const auto status = BrokerCore::commit(disk_->storage(), half, storage::Durability::synced);
  require(status.has_value(), "the saboteur cannot write");
}

}  // namespace reprise::sim
