// SpoolFiles: the spool's directory on disk, and the one place that knows how its files are made
// durable (docs/spool.md, "The directory").
//
// Invariants: under its own name a file is whole; no name is ever overwritten but by replace();
// what a call has returned as done survives a power cut, except removals, which sync_removals()
// makes so (an event that comes back was sent already, and its id is known to the receiver). Files
// that somebody else takes away or puts there meanwhile are an ordinary case. Threads: one owner;
// any number of processes work on one directory, by these rules: writers hold writing() while they
// have temporaries, and only who has it alone sweeps or enforces a quota.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "base/unique_fd.h"

namespace reprise::spool {

// root is the spool itself, for `lock` and quota.json.
enum class Folder : std::uint8_t { queue, dead_letter, root };

struct FileEntry {
  std::string name;  // "01J….json"
  std::uint64_t bytes = 0;
};
struct Listing {
  std::vector<FileEntry> files;        // regular files that end with ".json", by name
  std::vector<std::string> raw_files;  // of dead-letter/: those that end with ".raw", by name
  std::vector<std::string> ignored;    // for warnings: "queue/x: a symbolic link"
  std::uint64_t temporaries = 0;
};
enum class Sizes : bool { no, yes };  // `bytes` takes a system call for each file

struct NewFile {
  std::string name;
  std::string content;
};

// One file's bytes, or why not.
struct FileContent {
  enum class State : std::uint8_t {
    whole,
    too_large,   // more than was asked for; `size` says how much; nothing was read
    vanished,    // not there any more
    unreadable,  // there, but it cannot be opened or read, or is no regular file; `problem` says
                 // why
  };
  State state = State::whole;
  std::string bytes;
  std::uint64_t size = 0;
  std::string problem;
  Timestamp changed_at{};  // its last change
};

// Told after each step that a crash could follow; only tests, which then crash, give one.
using StepObserver = std::function<void(std::string_view step)>;

class SpoolFiles {
 public:
  // The default of docs/spool.md: `flag` (--spool), REPRISE_SPOOL, XDG_DATA_HOME, HOME.
  // Errc::invalid_field: none of these is set.
  static Result<std::filesystem::path> default_directory(const std::optional<std::string>& flag);

  // No value: there is no spool in `directory`, and none is made. (Of a spool that has lost one of
  // its folders, that one is.)
  static Result<std::optional<SpoolFiles>> open(const std::filesystem::path& directory);
  // Makes what is missing of it, parents included, with mode 0700.
  static Result<SpoolFiles> create(const std::filesystem::path& directory);

  SpoolFiles(SpoolFiles&&) noexcept = default;
  SpoolFiles& operator=(SpoolFiles&&) noexcept = default;

  const std::filesystem::path& directory() const { return directory_; }
  // Of `folder`; an open descriptor, which stays this object's.
  int folder_fd(Folder folder) const;
  void set_step_observer(StepObserver observer) { observer_ = std::move(observer); }
  void reached(std::string_view step) const {
    if (observer_) observer_(step);
  }

  Result<Listing> list(Folder folder, Sizes sizes) const;
  // Never follows a link, never waits for a FIFO, reads at most `max_bytes`.
  FileContent read(Folder folder, const std::string& name, std::size_t max_bytes) const;
  // The same, but of a larger file its first `max_bytes`; `size` tells.
  FileContent read_head(Folder folder, const std::string& name, std::size_t max_bytes) const;

  // Held while temporaries exist; alone: nobody else writes.
  class Writing {
   public:
    Writing(Writing&&) noexcept = default;
    Writing& operator=(Writing&&) noexcept = default;

   private:
    friend class SpoolFiles;
    explicit Writing(UniqueFd lock) : lock_(std::move(lock)) {}
    UniqueFd lock_;
  };
  Result<Writing> write_shared() const;
  Result<Writing> write_alone() const;  // waits for the others
  // No value: somebody else writes.
  Result<std::optional<Writing>> try_write_alone() const;

  // Stores all of them, or, when an error is returned, none. Any number of files costs one sync of
  // the data and one of the directory. Errc::io names the file and the reason ("No space left on
  // device"). A name that is taken is left as it is and returned.
  Result<std::vector<std::string>> add(const Writing& writing, Folder folder,
                                       const std::vector<NewFile>& files);
  // A new content for a file that is there; one that has vanished stays so (false).
  Result<bool> replace(const Writing& writing, Folder folder, const NewFile& file);
  // The same for many, with one sync of the data and one of the directory. Returns the names that
  // have vanished. On an error each file is whole, but may be the old one or the new one.
  Result<std::vector<std::string>> replace_all(const Writing& writing, Folder folder,
                                               const std::vector<NewFile>& files);
  // Writes it, whatever was there before.
  Status put(const Writing& writing, Folder folder, const NewFile& file);
  // Gives the bytes of a file in queue/ a second name in dead-letter/, without reading them when
  // the file system can do that. False: that name is taken by something else than these bytes.
  Result<bool> keep_raw(const Writing& writing, const std::string& queue_name,
                        const std::string& raw_name);

  // False: it was not there.
  Result<bool> remove(Folder folder, const std::string& name);
  Status sync_removals(Folder folder);
  // Deletes temporaries that crashes left behind. Returns how many.
  Result<std::uint64_t> sweep(const Writing& alone);

 private:
  SpoolFiles() = default;
  std::filesystem::path folder_path(Folder folder) const;
  Result<Writing> lock_queue(int operation) const;

  std::filesystem::path directory_;
  UniqueFd root_;
  UniqueFd queue_;
  UniqueFd dead_letter_;
  StepObserver observer_;
};

}  // namespace reprise::spool
