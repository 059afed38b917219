// HookChoice: which of a queue's two hooks a command is about.
#pragma once

#include "base/json_view.h"
#include "model/hook_kind.h"

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::cli {

struct HookChoiceFlags {
  bool on_failure = false;
  bool on_enqueue = false;

  bool any() const { return on_failure || on_enqueue; }
};

// --on-failure and --on-enqueue, which exclude each other.
void add_hook_choice_flags(CLI::App& command, HookChoiceFlags& flags);

// The one that the flags name; without flags the one that the queue has, on_failure first. `queue`
// is the API's reply.
HookKind chosen_hook(const HookChoiceFlags& flags, JsonView queue);

}  // namespace reprise::cli
