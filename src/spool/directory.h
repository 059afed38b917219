// What the spool asks of a directory, relative to its descriptor: a directory that is renamed
// meanwhile stays the same one. Paths are for messages only.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "spool/spool_files.h"

namespace reprise::spool {

// Errc::io, "cannot write /spool/queue/x.json: No space left on device". `code` is an errno.
Error io_error(std::string_view action, const std::filesystem::path& path, int code);

// A descriptor of its own, with its own lock and position, for what `directory` is.
UniqueFd reopen_directory(int directory);
// Makes it with mode 0700, whatever the umask; one that is there is fine.
Status make_directory(int parent, const std::string& name, const std::filesystem::path& path);
// Its names are durable afterwards. 0, or an errno.
int sync_directory(int directory);

// S_IFREG and the like; 0: gone.
mode_t kind_of_entry(int directory, const char* name);
// "a symbolic link", "a FIFO", …
std::string_view kind_name(mode_t kind);
// All but "." and "..", in no order.
Status for_each_entry(int directory, const std::filesystem::path& path,
                      const std::function<void(std::string_view name, mode_t kind)>& visit);

// Opens a regular file to read it. Never follows a link, never waits. On failure `content` says
// why.
UniqueFd open_regular(int directory, const std::string& name, FileContent& content);
enum class Beyond : bool { refuse, cut };  // what is larger than was asked for
FileContent read_regular(int directory, const std::string& name, std::size_t max_bytes,
                         Beyond beyond);

}  // namespace reprise::spool
