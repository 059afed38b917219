#include "cli/hook_choice.h"

#include <CLI/CLI.hpp>

#include "cli/hook_record.h"

namespace reprise::cli {

void add_hook_choice_flags(CLI::App& command, HookChoiceFlags& flags) {
  auto* on_failure = command.add_flag("--on-failure", flags.on_failure,
                                      "The queue's on_failure [the one it has, on_failure first]");
  command.add_flag("--on-enqueue", flags.on_enqueue, "The queue's on_enqueue")
      ->excludes(on_failure);
}

HookKind chosen_hook(const HookChoiceFlags& flags, JsonView queue) {
  if (flags.on_enqueue) return HookKind::on_enqueue;
  const bool only_on_enqueue = version_of_hook(queue, HookKind::on_failure).empty() &&
                               !version_of_hook(queue, HookKind::on_enqueue).empty();
  return only_on_enqueue && !flags.on_failure ? HookKind::on_enqueue : HookKind::on_failure;
}

}  // namespace reprise::cli
