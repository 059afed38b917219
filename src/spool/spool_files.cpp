#include "spool/spool_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "spool/directory.h"
#include "spool/new_files.h"

namespace reprise::spool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEventEnding = ".json";
constexpr std::string_view kRawEnding = ".raw";
constexpr std::string_view kTemporaryEnding = ".tmp";
constexpr std::string_view kQuotaTemporaries = ".quota.json.";

const char* folder_name(Folder folder) {
  return folder == Folder::queue ? "queue" : folder == Folder::dead_letter ? "dead-letter" : ".";
}

// Empty counts as not set.
std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Makes the directories on the way to `directory` that are missing, and itself.
Status make_path(const fs::path& directory) {
  fs::path made;
  for (const fs::path& part : directory) {
    made /= part;
    if (part.empty() || part == "/") continue;
    struct stat info {};
    if (::stat(made.c_str(), &info) == 0) {
      if (!S_ISDIR(info.st_mode)) return io_error("make", made, ENOTDIR);
      continue;
    }
    const fs::path parent = made.has_parent_path() ? made.parent_path() : fs::path(".");
    const UniqueFd fd(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return io_error("make", made, errno);
    REPRISE_TRY(make_directory(fd.get(), part.string(), made));
  }
  return ok();
}

Result<UniqueFd> open_folder(int root, const fs::path& directory, Folder folder) {
  const std::string name = folder_name(folder);
  UniqueFd fd(::openat(root, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return io_error("open", directory / name, errno);
  return fd;
}

bool has_folder(int root, Folder folder) { return kind_of_entry(root, folder_name(folder)) != 0; }

bool is_temporary(std::string_view name, mode_t kind) {
  return kind == S_IFREG && name.ends_with(kTemporaryEnding);
}

// Sorts one entry into its place.
void classify(std::string_view name, mode_t kind, Folder folder, Listing& listing) {
  const auto ignore = [&](std::string_view why) {
    listing.ignored.push_back(fmt::format("{}/{}: {}", folder_name(folder), name, why));
  };
  if (is_temporary(name, kind)) {
    ++listing.temporaries;
  } else if (name.starts_with('.')) {
    return;
  } else if (kind != S_IFREG) {
    ignore(kind_name(kind));
  } else if (name.ends_with(kEventEnding)) {
    listing.files.push_back({std::string(name), 0});
  } else if (folder == Folder::dead_letter && name.ends_with(kRawEnding)) {
    listing.raw_files.emplace_back(name);
  } else {
    ignore("its name does not end with .json");
  }
}

// Those that have vanished since are left out.
void look_up_sizes(int directory, std::vector<FileEntry>& files) {
  std::erase_if(files, [directory](FileEntry& file) {
    struct stat info {};
    if (::fstatat(directory, file.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return true;
    file.bytes = static_cast<std::uint64_t>(info.st_size);
    return false;
  });
}

}  // namespace

Result<fs::path> SpoolFiles::default_directory(const std::optional<std::string>& flag) {
  if (flag && flag->empty()) return Error{Errc::invalid_field, "--spool must name a directory"};
  if (flag) return fs::path(*flag);
  if (const auto own = environment("REPRISE_SPOOL"); !own.empty()) return fs::path(own);
  // The XDG specification: a path that is not absolute is to be ignored.
  if (const fs::path data = environment("XDG_DATA_HOME"); data.is_absolute()) {
    return data / "reprise" / "spool";
  }
  if (const auto home = environment("HOME"); !home.empty()) {
    return fs::path(home) / ".local" / "share" / "reprise" / "spool";
  }
  return Error{Errc::invalid_field,
               "nothing says where the spool is: give --spool DIR, or set REPRISE_SPOOL or HOME"};
}

Result<std::optional<SpoolFiles>> SpoolFiles::open(const fs::path& directory) {
  SpoolFiles files;
  files.directory_ = directory;
  files.root_ = UniqueFd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!files.root_) {
    if (errno == ENOENT) return std::optional<SpoolFiles>();
    return io_error("open", directory, errno);
  }
  const int root = files.root_.get();
  if (!has_folder(root, Folder::queue) && !has_folder(root, Folder::dead_letter)) {
    return std::optional<SpoolFiles>();
  }
  for (const Folder folder : {Folder::queue, Folder::dead_letter}) {
    REPRISE_TRY(make_directory(root, folder_name(folder), files.folder_path(folder)));
    auto fd = open_folder(root, directory, folder);
    if (!fd) return fd.error();
    (folder == Folder::queue ? files.queue_ : files.dead_letter_) = std::move(*fd);
  }
  return std::optional<SpoolFiles>(std::move(files));
}

Result<SpoolFiles> SpoolFiles::create(const fs::path& directory) {
  REPRISE_TRY(make_path(directory));
  const UniqueFd root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return io_error("open", directory, errno);
  const std::string queue = folder_name(Folder::queue);
  REPRISE_TRY(make_directory(root.get(), queue, directory / queue));
  auto files = open(directory);
  if (!files) return files.error();
  if (!*files) return io_error("open", directory, ENOENT);
  return std::move(**files);
}

int SpoolFiles::folder_fd(Folder folder) const {
  return folder == Folder::queue         ? queue_.get()
         : folder == Folder::dead_letter ? dead_letter_.get()
                                         : root_.get();
}

fs::path SpoolFiles::folder_path(Folder folder) const {
  return folder == Folder::root ? directory_ : directory_ / folder_name(folder);
}

Result<Listing> SpoolFiles::list(Folder folder, Sizes sizes) const {
  Listing listing;
  REPRISE_TRY(for_each_entry(
      folder_fd(folder), folder_path(folder),
      [&](std::string_view name, mode_t kind) { classify(name, kind, folder, listing); }));
  std::ranges::sort(listing.files, {}, &FileEntry::name);
  std::ranges::sort(listing.raw_files);
  std::ranges::sort(listing.ignored);
  if (sizes == Sizes::yes) look_up_sizes(folder_fd(folder), listing.files);
  return listing;
}

FileContent SpoolFiles::read(Folder folder, const std::string& name, std::size_t max_bytes) const {
  return read_regular(folder_fd(folder), name, max_bytes, Beyond::refuse);
}

FileContent SpoolFiles::read_head(Folder folder, const std::string& name,
                                  std::size_t max_bytes) const {
  return read_regular(folder_fd(folder), name, max_bytes, Beyond::cut);
}

Result<SpoolFiles::Writing> SpoolFiles::lock_queue(int operation) const {
  UniqueFd fd = reopen_directory(queue_.get());
  if (!fd) return io_error("lock", folder_path(Folder::queue), errno);
  while (::flock(fd.get(), operation) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return Writing(UniqueFd());
    return io_error("lock", folder_path(Folder::queue), errno);
  }
  return Writing(std::move(fd));
}

Result<SpoolFiles::Writing> SpoolFiles::write_shared() const { return lock_queue(LOCK_SH); }

Result<SpoolFiles::Writing> SpoolFiles::write_alone() const { return lock_queue(LOCK_EX); }

Result<std::optional<SpoolFiles::Writing>> SpoolFiles::try_write_alone() const {
  auto writing = lock_queue(LOCK_EX | LOCK_NB);
  if (!writing) return writing.error();
  if (!writing->lock_) return std::optional<Writing>();
  return std::optional<Writing>(std::move(*writing));
}

Result<std::vector<std::string>> SpoolFiles::add(const Writing&, Folder folder,
                                                 const std::vector<NewFile>& files) {
  const fs::path path = folder_path(folder);
  NewFiles group(folder_fd(folder), path, observer_);
  REPRISE_TRY(group.write(files));
  return group.publish();
}

Result<bool> SpoolFiles::replace(const Writing& writing, Folder folder, const NewFile& file) {
  auto vanished = replace_all(writing, folder, {file});
  if (!vanished) return vanished.error();
  return vanished->empty();
}

Result<std::vector<std::string>> SpoolFiles::replace_all(const Writing&, Folder folder,
                                                         const std::vector<NewFile>& files) {
  const fs::path path = folder_path(folder);
  NewFiles group(folder_fd(folder), path, observer_);
  REPRISE_TRY(group.write(files));
  return group.exchange();
}

Status SpoolFiles::put(const Writing&, Folder folder, const NewFile& file) {
  const fs::path path = folder_path(folder);
  NewFiles group(folder_fd(folder), path, observer_);
  REPRISE_TRY(group.write({file}));
  return group.overwrite();
}

Result<bool> SpoolFiles::remove(Folder folder, const std::string& name) {
  if (::unlinkat(folder_fd(folder), name.c_str(), 0) != 0) {
    if (errno == ENOENT) return false;
    return io_error("remove", folder_path(folder) / name, errno);
  }
  reached("removed");
  return true;
}

Status SpoolFiles::sync_removals(Folder folder) {
  const int code = sync_directory(folder_fd(folder));
  if (code != 0) return io_error("sync", folder_path(folder), code);
  reached("removals synced");
  return ok();
}

Result<std::uint64_t> SpoolFiles::sweep(const Writing&) {
  std::uint64_t swept = 0;
  for (const Folder folder : {Folder::queue, Folder::dead_letter, Folder::root}) {
    std::vector<std::string> temporaries;
    REPRISE_TRY(for_each_entry(
        folder_fd(folder), folder_path(folder), [&](std::string_view name, mode_t kind) {
          // The root may be a directory of the user's, with files of other programs in it.
          const bool ours = folder != Folder::root || name.starts_with(kQuotaTemporaries);
          if (ours && is_temporary(name, kind)) temporaries.emplace_back(name);
        }));
    for (const std::string& name : temporaries) {
      const auto removed = remove(folder, name);
      if (!removed) return removed.error();
      swept += *removed ? 1 : 0;
    }
  }
  return swept;
}

}  // namespace reprise::spool
