#include "storage/durable/opening.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <random>
#include <utility>

#include "storage/durable/checkpoint.h"
#include "storage/durable/upgrade.h"
#include "storage/journal/recovery.h"

namespace reprise::storage {
namespace {

// Small directories are verified whole at their start; it takes some tens of milliseconds.
constexpr std::uint64_t kVerifiedBytesMax = 64ULL << 20;

journal::DirectoryId make_directory_id() {
  std::random_device device;
  journal::DirectoryId id;
  std::ranges::generate(id, [&] { return static_cast<char>(device()); });
  return id;
}

class Opening {
 public:
  explicit Opening(const DurableOptions& options) : options_(options) {
    auto* env = options.env == nullptr ? ::rocksdb::Env::Default() : options.env;
    files_ = env->GetFileSystem();
  }

  Result<OpenParts> run() {
    auto directory = prepare_data_directory(*files_, options_.directory, on_real_disk());
    if (!directory) return directory.error();
    paths() = *std::move(directory);
    if (on_real_disk()) {
      auto lock = DirectoryLock::acquire(options_.directory);
      if (!lock) return lock.error();
      parts_.lock.emplace(*std::move(lock));
    }
    REPRISE_TRY(make_directory(*files_, paths().journal));
    REPRISE_TRY(make_directory(*files_, paths().checkpoint));
    REPRISE_TRY(delete_files_in(*files_, paths().checkpoint));  // a checkpoint that was cut short
    if (paths().is_new) {
      REPRISE_TRY(make_journal());
    } else {
      REPRISE_TRY(read_what_is_there());
    }
    REPRISE_TRY(open_base());
    if (!parts_.journal) REPRISE_TRY(start_journal(std::move(left_)));
    return std::move(parts_);
  }

 private:
  bool on_real_disk() const { return options_.env == nullptr; }
  DataDirectory& paths() { return parts_.directory.paths; }

  journal::SegmentPoolOptions pool_options() {
    return {.files = files_,
            .on_real_disk = on_real_disk(),
            .directory = paths().journal,
            .segment_bytes_min = options_.segment_bytes_min,
            .segment_bytes_max = options_.segment_bytes_max,
            // What a checkpoint gives back at once while a backlog grows.
            .kept_bytes = 4 * options_.journal_bytes,
            .fills_segments = options_.commits == Durability::synced,
            .background = options_.background,
            .on_failure = options_.on_failure};
  }

  // The journal comes first, so that a base without one is damage and not an interrupted start.
  Status make_journal() {
    const auto left = journal::identify(*files_, on_real_disk(), paths().journal);
    if (!left) return left.error();
    if (*left && (*left)->holds_batches) {
      return Error{Errc::corrupt,
                   "data directory " + paths().path + " is damaged: " + paths().database +
                       " is missing or has lost what it held, beside a journal that needs it; "
                       "restore a backup, or copy what can be read with `reprise salvage`"};
    }
    REPRISE_TRY(delete_files_in(*files_, paths().journal));
    parts_.directory.id = make_directory_id();
    parts_.overlay = std::make_shared<Overlay>(0, 0);
    REPRISE_TRY(start_journal({}));
    return sync_new_directory(*files_, paths());
  }

  Status start_journal(journal::Contents contents) {
    auto journal =
        journal::Journal::start(pool_options(), parts_.directory.id, std::move(contents));
    if (!journal) return journal.error();
    parts_.journal = *std::move(journal);
    return ok();
  }

  DatabaseOptions database_options() {
    return {.directory = paths().database,
            .block_cache_bytes = options_.block_cache_bytes,
            .env = options_.env,
            .compacts = options_.background,
            .on_failure = options_.on_failure};
  }

  // Nothing is changed until base and journal are known to fit together.
  Status read_what_is_there() {
    const auto checkpoint = Database::inspect(database_options());
    if (!checkpoint) return checkpoint.error();
    if (!*checkpoint) return make_journal();  // its making was interrupted
    parts_.directory.id = (*checkpoint)->directory;
    return recover_journal(**checkpoint);
  }

  Status recover_journal(const CheckpointRecord& checkpoint) {
    parts_.overlay = std::make_shared<Overlay>(checkpoint.covered_batch, checkpoint.seq_highest);
    auto contents = journal::recover(
        {.files = files_,
         .on_real_disk = on_real_disk(),
         .directory = paths().journal,
         .id = parts_.directory.id,
         .covered_batch = checkpoint.covered_batch,
         .replay = [this](const journal::ReplayedBatch& batch) { return replay(batch); },
         .notice = options_.notice});
    if (!contents) return contents.error();
    left_ = *std::move(contents);
    return ok();
  }

  Status open_base() {
    auto base = Database::open(database_options());
    if (!base) return base.error();
    parts_.base = *std::move(base);
    if (parts_.base->checkpoint()) {
      REPRISE_TRY(parts_.base->verify_tables(kVerifiedBytesMax));
      return upgrade_base(*parts_.base, paths().checkpoint);
    }
    REPRISE_TRY(write_first_checkpoint(*parts_.base, paths().checkpoint, parts_.directory.id));
    return sync_new_directory(*files_, paths());
  }

  Status replay(const journal::ReplayedBatch& batch) {
    const bool whole = parts_.overlay->apply(
        {.number = batch.number, .segment = batch.segment, .body_offset = batch.body_offset},
        batch.body, batch.mutations);
    if (whole) return ok();
    return Error{Errc::corrupt, batch.segment->path() + " is damaged at byte " +
                                    std::to_string(batch.body_offset) + ": batch " +
                                    std::to_string(batch.number) +
                                    " is not what a batch should be"};
  }

  const DurableOptions& options_;
  std::shared_ptr<::rocksdb::FileSystem> files_;
  OpenParts parts_;
  journal::Contents left_;  // by the last run
};

}  // namespace

Result<OpenParts> open_parts(const DurableOptions& options) { return Opening(options).run(); }

}  // namespace reprise::storage
