// Reads one ${…} of a command and tells whether it is a template of ours.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runbook/command_template.h"

namespace reprise::runbook {

struct TemplateText {
  enum class Kind : std::uint8_t {
    foreign,  // the shell's own
    ours,
    unknown_root,  // ${word.word} of no root that we know; `problem` says so
    wrong,         // ours, but not as it should be
  };
  Kind kind = Kind::foreign;
  std::size_t end = 0;          // behind the closing brace; not of a foreign one
  TemplateReference reference;  // without variable
  std::string problem;          // also a warning about one that is ours
  bool has_suggestion = false;  // the problem knows what was meant
};

// `at` is the place of "${" in `text`.
TemplateText read_template(std::string_view text, std::size_t at, TemplateScope scope);

// "item.a.b", "job.headers.x", "queue": as people write it.
std::string template_name(const TemplateReference& reference);

}  // namespace reprise::runbook
