#include "runbook/reference_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "runbook/template_syntax.h"

namespace reprise::runbook {
namespace {

// A long path is told apart by what follows.
constexpr std::size_t kMostNameBytes = 100;

std::string_view prefix_of(TemplateRoot root) {
  switch (root) {
    case TemplateRoot::item:
      return "REPRISE_ITEM";
    case TemplateRoot::job:
      return "REPRISE_JOB";
    // Every command has REPRISE_QUEUE and REPRISE_WORKER; these may hold a fallback.
    case TemplateRoot::queue:
      return "REPRISE_QUEUE_name";
    case TemplateRoot::worker:
      return "REPRISE_WORKER_name";
    case TemplateRoot::run:
      return "REPRISE_RUN";
    case TemplateRoot::project:
      return "REPRISE_PROJECT";
    case TemplateRoot::env:
      return "REPRISE_ENV";
  }
  return "REPRISE";
}

std::string plain_name(const TemplateReference& reference) {
  std::string name(prefix_of(reference.root));
  for (const std::string& part : reference.path) {
    name.push_back('_');
    for (const char c : part) {
      const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      name.push_back(fits ? c : '_');
    }
  }
  name.resize(std::min(name.size(), kMostNameBytes));
  return name;
}

}  // namespace

const std::string& ReferenceTable::variable_for(const TemplateReference& reference) {
  const auto known = std::ranges::find_if(references_, [&](const TemplateReference& one) {
    return one.root == reference.root && one.path == reference.path &&
           one.fallback == reference.fallback;
  });
  if (known != references_.end()) return known->variable;
  const std::string plain = plain_name(reference);
  std::string name = plain;
  for (int number = 2; !taken_.insert(name).second; ++number) {
    name = fmt::format("{}_{}", plain, number);
  }
  references_.push_back(reference);
  references_.back().variable = std::move(name);
  return references_.back().variable;
}

}  // namespace reprise::runbook
