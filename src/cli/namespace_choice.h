// Which namespace a command works in (docs/cli.md, "Flags"): what a flag says, else
// REPRISE_PROJECT, else the name of the project that a directory is in, else "default".
// Threads: any; it reads the environment and files.
#pragma once

#include <string>

#include "base/result.h"

namespace reprise::cli {

struct NamespaceChoice {
  std::string ns;
  // The project that the directory is in; empty: none.
  std::string root;
  // `ns` is that project's own name, not one that a flag or the environment gave.
  bool own_name = false;
};

// `given` is the value of --namespace or --project; empty: neither was given. An error is one of
// the project's config; it comes only where its name is asked for.
Result<NamespaceChoice> choose_namespace(const std::string& given, const std::string& directory);

// Where the command runs; "." when that cannot be told.
std::string current_directory();

}  // namespace reprise::cli
