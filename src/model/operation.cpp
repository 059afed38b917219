#include "model/operation.h"

#include <algorithm>
#include <array>

namespace reprise {
namespace {

constexpr std::array<std::string_view, 4> kStateNames = {"running", "done", "cancelled", "failed"};
constexpr std::array<std::string_view, 5> kActionNames = {"retry", "purge", "drop", "delete",
                                                          "cancel"};

template <class Enum, std::size_t N>
std::optional<Enum> from_name(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto* found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view operation_kind_name(OperationKind kind) {
  return kind == OperationKind::retry ? "retry" : "purge";
}

std::string_view operation_state_name(OperationState state) {
  return kStateNames[static_cast<std::size_t>(state)];
}

std::optional<OperationState> operation_state_from_name(std::string_view name) {
  return from_name<OperationState>(kStateNames, name);
}

std::string_view audit_action_name(AuditAction action) {
  return kActionNames[static_cast<std::size_t>(action)];
}

std::optional<AuditAction> audit_action_from_name(std::string_view name) {
  return from_name<AuditAction>(kActionNames, name);
}

}  // namespace reprise
