#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/json_view.h"
#include "runbook/command_template.h"
#include "runbook/template_syntax.h"

namespace reprise::runbook {
namespace {

Error missing(const TemplateReference& reference, std::string_view why) {
  return Error{Errc::missing_field, fmt::format("${{{}}}: {}", template_name(reference), why)};
}

using Value = Result<std::optional<std::string>>;  // nothing: there is none

Value item_value(const TemplateReference& reference, std::string_view item) {
  JsonView view(item);
  for (const std::string& name : reference.path) view = view[name];
  if (view.is_null()) return std::optional<std::string>();
  if (!view.is_string()) return std::optional(std::string(view.raw()));
  if (view.raw().find('\\') == std::string_view::npos) return std::optional(view.string_or(""));
  // A text that cannot be read must not become an empty one.
  const auto text = Json::parse(view.raw());
  if (!text) return missing(reference, "is not valid text: " + text.error().detail);
  return std::optional(text->string_or(""));
}

std::optional<std::string> header_value(const TemplateReference& reference,
                                        const TemplateInput& input) {
  // A header's own dots count as such.
  std::string name = reference.path[1];
  for (std::size_t i = 2; i < reference.path.size(); ++i) name += "." + reference.path[i];
  for (const auto& [key, value] : input.headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::optional<std::string> job_value(const TemplateReference& reference,
                                     const TemplateInput& input) {
  const std::string& field = reference.path[0];
  if (field == "headers") return header_value(reference, input);
  if (field == "attempts") return std::to_string(input.attempts);
  if (field == "failures") return std::to_string(input.failures);
  return input.job_id.empty() ? std::nullopt : std::optional(input.job_id);
}

Value value_of(const TemplateReference& reference, const TemplateInput& input) {
  const auto unless_empty = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
  };
  switch (reference.root) {
    case TemplateRoot::item:
      return item_value(reference, input.item);
    case TemplateRoot::job:
      return job_value(reference, input);
    case TemplateRoot::queue:
      return unless_empty(input.queue);
    case TemplateRoot::worker:
      return unless_empty(input.worker);
    case TemplateRoot::run:
      return unless_empty(input.run_id);
    case TemplateRoot::project:
      return unless_empty(input.project_root);
    case TemplateRoot::env:
      return input.environment ? input.environment(reference.path[0]) : std::nullopt;
  }
  return std::optional<std::string>();
}

std::string_view why_missing(TemplateRoot root) {
  switch (root) {
    case TemplateRoot::item:
      return "the item has no such field, or it is null; give it one, or a text after ':-'";
    case TemplateRoot::env:
      return "the server's environment has no such variable; set it, or give a text after ':-'";
    default:
      return "there is none here; give a text after ':-'";
  }
}

}  // namespace

Result<EnvironmentList> expand(const CommandTemplate& command, const TemplateInput& input) {
  EnvironmentList list;
  for (const TemplateReference& reference : command.references()) {
    Value found = value_of(reference, input);
    if (!found) return found.error();
    std::optional<std::string> value = std::move(*found);
    if (!value) value = reference.fallback;
    if (!value) return missing(reference, why_missing(reference.root));
    if (value->find('\0') != std::string::npos) {
      return missing(reference,
                     "holds a NUL character, which no variable can; read it from "
                     "standard input");
    }
    if (reference.variable.size() + 1 + value->size() > kMostVariableBytes) {
      return missing(reference,
                     fmt::format("has {} bytes, and a variable can hold 128 KiB; read it from "
                                 "standard input",
                                 value->size()));
    }
    list.emplace_back(reference.variable, std::move(*value));
  }
  return list;
}

}  // namespace reprise::runbook
