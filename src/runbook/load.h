// Finding a project and reading its runbook (docs/runbooks.md).
// Threads: any; nothing is shared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runbook/runbook.h"

namespace reprise::runbook {

inline constexpr char kRunbookDirectory[] = ".reprise";
inline constexpr std::uint64_t kMostFileBytes = 1 << 20;

// The nearest directory at or above `directory` that holds .reprise/, absolute and without symbolic
// links; nothing: there is none.
std::optional<std::string> find_project(const std::string& directory);

// Its name, from config.toml or config.json, else from the directory. Errc::invalid_runbook when
// the config cannot be read or the name cannot be a namespace; the message says what to do.
Result<std::string> project_name(const std::string& root);

struct LoadResult {
  std::optional<Runbook> runbook;  // nothing: there are errors among the findings
  std::vector<Finding> findings;   // all, by file and line
  std::vector<std::string> files;  // that were found, also those with errors
  std::string ns;                  // the project's name, as far as it could be told; else empty
};
// `ns` overrides the project's name when it is not empty. A directory that cannot be read is a
// finding, too.
LoadResult load_runbook(const std::string& root, const std::string& ns = {});

// A text in memory as if it stood in a file; for tests and for load_runbook itself.
struct SourceFile {
  std::string name;  // ".reprise/shop.toml"; the ending says the format
  std::string text;
};
LoadResult parse_runbook(const std::string& root, const std::string& ns,
                         const std::vector<SourceFile>& files);

// Changes whenever a file of the runbook has: names, sizes, times and numbers of the files. Cheap.
// Empty: there is no .reprise/ any more.
std::string runbook_fingerprint(const std::string& root);

// Errc::unsafe_project unless the directory, .reprise/ and its files belong to the user of this
// process or to root, are no symbolic links, and cannot be written by everybody; the message names
// the file and the fix.
Status check_ownership(const std::string& root);

}  // namespace reprise::runbook
