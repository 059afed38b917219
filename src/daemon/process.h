// What the daemon asks of the operating system, apart from sockets and signals.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace reprise::daemon {

// Raises the limit of open files to the hard one and returns what it now is.
std::uint64_t raise_open_file_limit();

// Bytes an unprivileged process may still write to the file system that holds `directory`; the
// largest number when the system does not say, so that only a known shortage refuses work.
std::uint64_t free_disk_bytes(const std::string& directory);

// Errc::io names the file and says why.
Result<std::string> read_whole_file(const std::string& path);

// Writes a whole file or none: readers see the old one or the new one.
Status write_file_atomically(const std::string& path, const std::string& text);

// How a person would start this binary again from the same shell: "reprise" when PATH leads to it,
// otherwise the path it was started by. Quoted for a shell if need be.
std::string command_name();

}  // namespace reprise::daemon
