#include "storage/durable/salvage.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "storage/durable/durable_storage.h"
#include "storage/durable/salvage_base.h"
#include "storage/durable/salvage_copy.h"
#include "storage/durable/salvage_journal.h"
#include "storage/rocksdb/data_directory.h"
#include "storage/rocksdb/directory_lock.h"

namespace reprise::storage {
namespace {

namespace fs = std::filesystem;

// Inside the new directory. No start takes a directory that holds it.
constexpr char kWorkDirectoryName[] = "salvage-unfinished";

Error file_problem(const std::string& path, const std::error_code& why) {
  return Error{why == std::errc::no_space_on_device ? Errc::disk_full : Errc::io,
               path + ": " + why.message()};
}

bool is_inside(const fs::path& path, const fs::path& directory) {
  return std::mismatch(directory.begin(), directory.end(), path.begin(), path.end()).first ==
         directory.end();
}

class Salvage {
 public:
  explicit Salvage(const SalvageOptions& options)
      : options_(options),
        database_(options.from + "/" + kDatabaseDirectoryName),
        journal_(options.from + "/" + kJournalDirectoryName),
        work_(options.to + "/" + kWorkDirectoryName) {}

  Result<SalvageReport> run() {
    REPRISE_TRY(check_source());
    REPRISE_TRY(check_target());
    auto lock = DirectoryLock::acquire_to_read(options_.from);
    if (!lock) return lock.error();
    std::error_code why;
    const bool was_there = fs::exists(options_.to, why);
    auto report = make();
    if (report) return report;
    // All of it is ours: the directory was empty.
    for (const char* name : {kDatabaseDirectoryName, kJournalDirectoryName, kWorkDirectoryName}) {
      fs::remove_all(options_.to + "/" + name, why);
    }
    if (!was_there) fs::remove(options_.to, why);
    return report;
  }

 private:
  Status check_source() const {
    std::error_code why;
    if (!fs::is_directory(options_.from, why)) {
      return Error{Errc::invalid_field, options_.from + " is not a directory"};
    }
    if (fs::exists(database_, why) || fs::exists(journal_, why)) return ok();
    return Error{Errc::invalid_field, options_.from +
                                          " is not a data directory of reprise: it holds "
                                          "neither " +
                                          kDatabaseDirectoryName + " nor " + kJournalDirectoryName};
  }

  Status check_target() const {
    std::error_code why;
    if (is_inside(fs::weakly_canonical(options_.to, why),
                  fs::weakly_canonical(options_.from, why))) {
      return Error{Errc::invalid_field, options_.to + " is inside " + options_.from +
                                            ", which must not be changed; name one outside of it"};
    }
    if (!fs::exists(options_.to, why)) return ok();
    if (fs::is_directory(options_.to, why) && fs::is_empty(options_.to, why)) return ok();
    return Error{Errc::invalid_field,
                 options_.to + " is there already and not an empty directory; name a new one"};
  }

  Result<SalvageReport> make() {
    REPRISE_TRY(make_work_directories());
    SalvageReport report;
    {
      step("reading the tables");
      const auto base = SalvagedBase::open(database_, work_ + "/scratch", damage_);
      if (!base) return base.error();
      step("reading the journal");
      const auto journal = salvage_journal(journal_, (*base)->checkpoint(), damage_);
      report.batches_read = journal.batches_read;
      report.batches_lost = journal.batches_lost;
      auto queues = copy({**base, journal});
      if (!queues) return queues.error();
      report.queues = *std::move(queues);
      (*base)->tell_other_damage();
      if (report.queues.empty() && damage_.places() > 0 && !(*base)->checkpoint() &&
          journal.batches_read == 0) {
        return nothing_readable();
      }
    }
    REPRISE_TRY(move_into_place());
    report.places_lost = damage_.places();
    report.damage = damage_.take();
    return report;
  }

  Error nothing_readable() {
    std::string detail = "nothing can be read from " + options_.from;
    for (const std::string& line : damage_.take()) detail += "; " + line;
    return Error{Errc::corrupt, std::move(detail)};
  }

  Status make_work_directories() const {
    const auto files = ::rocksdb::FileSystem::Default();
    constexpr bool kOnRealDisk = true;
    const auto target = prepare_data_directory(*files, options_.to, kOnRealDisk);
    if (!target) return target.error();
    std::error_code why;
    fs::create_directories(work_ + "/scratch", why);
    if (why) return file_problem(work_, why);
    return ok();
  }

  Result<std::vector<SalvagedQueue>> copy(const SalvageSource& source) {
    step("copying");
    const auto storage =
        open_durable_storage({.directory = work_ + "/data", .commits = Durability::buffered});
    if (!storage) return storage.error();
    return copy_salvaged(source, **storage, damage_, [this](std::uint64_t jobs) {
      if (options_.progress) options_.progress("copying", jobs);
    });
  }

  // The database last: before it is there, nobody takes the directory for a whole one.
  Status move_into_place() const {
    std::error_code why;
    for (const char* name : {kJournalDirectoryName, kDatabaseDirectoryName}) {
      fs::rename(work_ + "/data/" + name, options_.to + "/" + name, why);
      if (why) return file_problem(options_.to, why);
    }
    fs::remove_all(work_, why);
    if (why) return file_problem(work_, why);
    const auto files = ::rocksdb::FileSystem::Default();
    return sync_new_directory(*files, {.path = options_.to});
  }

  void step(std::string_view what) const {
    if (options_.progress) options_.progress(what, 0);
  }

  const SalvageOptions& options_;
  const std::string database_;
  const std::string journal_;
  const std::string work_;
  DamageLog damage_;
};

}  // namespace

Result<SalvageReport> salvage(const SalvageOptions& options) { return Salvage(options).run(); }

}  // namespace reprise::storage
