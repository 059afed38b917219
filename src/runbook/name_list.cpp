#include "runbook/name_list.h"

#include <fmt/format.h>

#include <algorithm>

namespace reprise::runbook {

std::string unknown_name(std::string_view kind, std::string_view name,
                         std::span<const std::string> available, Findings& findings) {
  constexpr std::size_t kMostShown = 20;
  if (available.empty()) return fmt::format("unknown {} '{}'; there are no {}s", kind, name, kind);
  const auto shown = available.first(std::min(available.size(), kMostShown));
  return fmt::format("unknown {} '{}'; available {}s: {}{}{}", kind, name, kind,
                     fmt::join(shown, ", "), shown.size() < available.size() ? ", …" : "",
                     findings.suggestion(name, available));
}

}  // namespace reprise::runbook
