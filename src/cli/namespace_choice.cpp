#include "cli/namespace_choice.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "model/queue.h"
#include "runbook/load.h"

namespace reprise::cli {
namespace {

std::string project_of_environment() {
  const char* const name = std::getenv("REPRISE_PROJECT");
  return name == nullptr ? std::string() : std::string(name);
}

}  // namespace

Result<NamespaceChoice> choose_namespace(const std::string& given, const std::string& directory) {
  NamespaceChoice choice{.ns = given.empty() ? project_of_environment() : given,
                         .root = runbook::find_project(directory).value_or(""),
                         .own_name = false};
  if (!choice.ns.empty()) return choice;
  if (choice.root.empty()) {
    choice.ns = kDefaultNamespace;
    return choice;
  }
  auto name = runbook::project_name(choice.root);
  if (!name) {
    return Error{name.error().code,
                 fmt::format("the project in {} has no usable name: {}; or name one with --project",
                             choice.root, name.error().detail)};
  }
  choice.ns = *std::move(name);
  choice.own_name = true;
  return choice;
}

std::string current_directory() {
  std::error_code failed;
  const auto path = std::filesystem::current_path(failed);
  return failed ? std::string(".") : path.string();
}

}  // namespace reprise::cli
