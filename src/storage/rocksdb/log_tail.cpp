#include "storage/rocksdb/log_tail.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "storage/rocksdb/log_block.h"
#include "storage/rocksdb/status.h"

namespace reprise::storage {
namespace {

using ::rocksdb::FileOptions;
using ::rocksdb::FileSystem;
using ::rocksdb::IOOptions;

constexpr std::size_t kSectorBytes = 512;  // what a disk writes wholly or not at all
constexpr std::size_t kPageBytes = 4096;   // what a kernel does

// A file system, and the directory that errors name.
struct Place {
  FileSystem& files;
  const DataDirectory& directory;

  std::string path_of(const std::string& name) const { return directory.database + "/" + name; }
  Status check(const ::rocksdb::Status& status) const { return to_status(status, directory.path); }
};

// A file, one block at a time.
class BlockFile {
 public:
  static Result<BlockFile> open(const Place& place, const std::string& name) {
    BlockFile file(place);
    REPRISE_TRY(place.check(
        place.files.NewSequentialFile(place.path_of(name), FileOptions(), &file.file_, nullptr)));
    return file;
  }

  // The next block, or the part of it that the file has; empty at the end.
  Result<std::string_view> next() {
    offset_ += filled_;
    filled_ = 0;
    while (filled_ < kLogBlockBytes) {
      ::rocksdb::Slice got;
      char* const to = buffer_.data() + filled_;
      REPRISE_TRY(
          place_.check(file_->Read(kLogBlockBytes - filled_, IOOptions(), &got, to, nullptr)));
      if (got.empty()) break;
      // A file system may answer from memory of its own.
      if (got.data() != to) std::copy_n(got.data(), got.size(), to);
      filled_ += got.size();
    }
    return std::string_view(buffer_.data(), filled_);
  }
  // Where in the file the current block begins.
  std::uint64_t offset() const { return offset_; }

 private:
  explicit BlockFile(const Place& place) : place_(place), buffer_(kLogBlockBytes, '\0') {}

  Place place_;
  std::unique_ptr<::rocksdb::FSSequentialFile> file_;
  std::string buffer_;
  std::size_t filled_ = 0;
  std::uint64_t offset_ = 0;
};

struct Problem {
  std::uint64_t record_at{};  // where the record begins: all before is whole
  std::uint64_t at{};         // the fragment that is wrong
  bool torn = false;
};

Result<bool> has_record_after(BlockFile& file, std::string_view block, std::size_t at) {
  if (has_record_from(block, at + 1)) return true;
  for (;;) {
    const auto next = file.next();
    if (!next) return next.error();
    if (next->empty()) return false;
    if (has_record_from(*next, 0)) return true;
  }
}

// Whether the fragment at `at`, which is not whole, is an unfinished write.
Result<bool> is_torn(BlockFile& file, std::string_view block, std::size_t at) {
  const bool cut_short = is_cut_short(block, at);
  const bool sector_missing = has_unwritten_unit(block, at, kSectorBytes);
  // Writes that were not synced reach the disk in any order, a page at a time, so whole records may
  // stand after a missing page. After a missing sector they cannot.
  const bool page_missing = has_unwritten_unit(block, at, kPageBytes);
  const auto followed = has_record_after(file, block, at);
  if (!followed) return followed.error();
  return *followed ? page_missing : cut_short || sector_missing;
}

// The first record that is not whole.
Result<std::optional<Problem>> find_problem(BlockFile& file) {
  std::uint64_t record_at = 0;
  bool inside = false;  // a record that the blocks so far have not ended
  for (;;) {
    const auto block = file.next();
    if (!block) return block.error();
    if (block->empty()) break;
    std::size_t at = 0;
    // Fewer bytes than a header at a block's end are padding.
    while (at + kLogHeaderBytes <= kLogBlockBytes && at < block->size()) {
      const auto fragment = fragment_at(*block, at);
      if (!fragment || fragment->begins_record() == inside) {
        Problem problem{.record_at = record_at, .at = file.offset() + at};
        const auto torn = is_torn(file, *block, at);
        if (!torn) return torn.error();
        problem.torn = *torn;
        return std::optional(problem);
      }
      at += fragment->bytes;
      inside = !fragment->ends_record();
      if (!inside) record_at = file.offset() + at;
    }
  }
  if (!inside) return std::optional<Problem>();
  return std::optional(Problem{.record_at = record_at, .at = record_at, .torn = true});
}

Status copy_front(const Place& place, const std::string& from, const std::string& to,
                  std::uint64_t bytes) {
  auto source = BlockFile::open(place, from);
  if (!source) return source.error();
  std::unique_ptr<::rocksdb::FSWritableFile> out;
  auto status = place.files.NewWritableFile(place.path_of(to), FileOptions(), &out, nullptr);
  while (status.ok() && bytes > 0) {
    const auto block = source->next();
    if (!block) return block.error();
    const std::string_view part = block->substr(0, bytes);
    if (part.empty()) break;
    status = out->Append({part.data(), part.size()}, IOOptions(), nullptr);
    bytes -= part.size();
  }
  if (status.ok()) status = out->Fsync(IOOptions(), nullptr);
  if (status.ok()) status = out->Close(IOOptions(), nullptr);
  return place.check(status);
}

// By a copy that takes the file's name: at no moment is there less than the whole front.
Status cut_file(const Place& place, const std::string& name, std::uint64_t bytes) {
  const std::string copy = "000000.dbtmp";  // a name that RocksDB clears away
  REPRISE_TRY(copy_front(place, name, copy, bytes));
  auto status =
      place.files.RenameFile(place.path_of(copy), place.path_of(name), IOOptions(), nullptr);
  std::unique_ptr<::rocksdb::FSDirectory> directory;
  if (status.ok()) {
    status = place.files.NewDirectory(place.directory.database, IOOptions(), &directory, nullptr);
  }
  if (status.ok()) status = directory->Fsync(IOOptions(), nullptr);
  return place.check(status);
}

Status sync_file(const Place& place, const std::string& name) {
  std::unique_ptr<::rocksdb::FSRandomRWFile> file;
  auto status = place.files.NewRandomRWFile(place.path_of(name), FileOptions(), &file, nullptr);
  if (status.ok()) status = file->Sync(IOOptions(), nullptr);
  if (status.ok()) status = file->Close(IOOptions(), nullptr);
  return place.check(status);
}

Error damaged(const Place& place, const std::string& name, const Problem& problem) {
  return Error{Errc::corrupt, "data directory " + place.directory.path +
                                  " is damaged: " + place.path_of(name) + " is wrong at byte " +
                                  std::to_string(problem.at) +
                                  ", in data that had been stored; restore it from a backup"};
}

// `names` in the order in which they were written. Only the last of them can have been in writing.
Status mend(const Place& place, const std::vector<std::string>& names, std::vector<TornTail>& cut) {
  for (const std::string& name : names) {
    auto file = BlockFile::open(place, name);
    if (!file) return file.error();
    const auto problem = find_problem(*file);
    if (!problem) return problem.error();
    if (!*problem) {
      REPRISE_TRY(sync_file(place, name));
    } else if ((*problem)->torn && name == names.back()) {
      REPRISE_TRY(cut_file(place, name, (*problem)->record_at));
      cut.push_back({.file = place.path_of(name), .kept_bytes = (*problem)->record_at});
    } else {
      return damaged(place, name, **problem);
    }
  }
  return ok();
}

bool is_journal_file(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return name.size() > 4 && name.ends_with(".log") &&
         std::ranges::all_of(name.substr(0, name.size() - 4), is_digit);
}

// Journal files that hold anything, oldest first: their names are numbers, padded to six digits.
Result<std::vector<std::string>> journal_files(const Place& place) {
  std::vector<::rocksdb::Env::FileAttributes> children;
  REPRISE_TRY(place.check(place.files.GetChildrenFileAttributes(place.directory.database,
                                                                IOOptions(), &children, nullptr)));
  std::vector<std::string> names;
  for (const auto& child : children) {
    if (is_journal_file(child.name) && child.size_bytes > 0) names.push_back(child.name);
  }
  std::ranges::sort(names, [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  return names;
}

// The manifest that RocksDB will read: CURRENT holds its name and a newline.
Result<std::vector<std::string>> manifest_file(const Place& place) {
  auto current = BlockFile::open(place, "CURRENT");
  if (!current) return current.error();
  const auto text = current->next();
  if (!text) return text.error();
  const std::string name(text->substr(0, text->find('\n')));
  if (!name.starts_with("MANIFEST-")) return std::vector<std::string>();  // RocksDB will complain
  return std::vector{name};
}

}  // namespace

Result<std::vector<TornTail>> mend_log_tails(FileSystem& files, const DataDirectory& directory) {
  const Place place{.files = files, .directory = directory};
  std::vector<TornTail> cut;
  for (const auto list : {manifest_file, journal_files}) {
    const auto names = list(place);
    if (!names) return names.error();
    REPRISE_TRY(mend(place, *names, cut));
  }
  return cut;
}

Status sync_last_journal_file(FileSystem& files, const DataDirectory& directory) {
  const Place place{.files = files, .directory = directory};
  const auto names = journal_files(place);
  if (!names) return names.error();
  if (names->empty()) return ok();
  const auto synced = sync_file(place, names->back());
  // RocksDB deletes a file when its contents are in table files, which are synced.
  const auto exists = files.FileExists(place.path_of(names->back()), IOOptions(), nullptr);
  return exists.IsNotFound() ? ok() : synced;
}

}  // namespace reprise::storage
