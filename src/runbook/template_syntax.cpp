#include "runbook/template_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace reprise::runbook {
namespace {

struct Root {
  std::string_view name;
  TemplateRoot root;
  bool alone;  // stands for something without a field
};

constexpr auto kRoots = std::to_array<Root>({
    {"item", TemplateRoot::item, true},
    {"job", TemplateRoot::job, false},
    {"queue", TemplateRoot::queue, true},
    {"worker", TemplateRoot::worker, true},
    {"run", TemplateRoot::run, false},
    {"project", TemplateRoot::project, false},
    {"env", TemplateRoot::env, false},
});

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_char(char c) { return is_letter(c) || is_digit(c); }
// Of the name of a field: letters of other scripts, too.
bool is_field_char(char c) {
  return is_word_char(c) || c == '-' || (static_cast<unsigned char>(c) & 0x80) != 0;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t dot = text.find('.');
    parts.emplace_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

std::vector<std::string> fields_of(TemplateRoot root) {
  switch (root) {
    case TemplateRoot::job:
      return {"id", "attempts", "failures", "headers"};
    case TemplateRoot::run:
      return {"id"};
    case TemplateRoot::project:
      return {"root"};
    default:
      return {};
  }
}

bool is_known_field(TemplateRoot root, const std::vector<std::string>& path) {
  switch (root) {
    case TemplateRoot::item:
      return true;
    case TemplateRoot::queue:
    case TemplateRoot::worker:
      return path.empty();
    case TemplateRoot::env:
      return path.size() == 1 && !is_digit(path[0].front()) &&
             std::ranges::all_of(path[0], is_word_char);
    case TemplateRoot::job:
      if (path[0] == "headers") return path.size() > 1;
      [[fallthrough]];
    case TemplateRoot::run:
    case TemplateRoot::project: {
      const auto fields = fields_of(root);
      return path.size() == 1 && std::ranges::find(fields, path[0]) != fields.end();
    }
  }
  return false;
}

// One use each.
class Reader {
 public:
  Reader(std::string_view text, std::size_t at, TemplateScope scope)
      : text_(text), at_(at + 2), scope_(scope) {}

  TemplateText read();

 private:
  bool read_name();
  void read_fallback();
  void find_end();
  void check();
  void unknown(TemplateText::Kind kind, const std::optional<std::string>& meant);
  void wrong(std::string problem) {
    found_.kind = TemplateText::Kind::wrong;
    found_.problem = std::move(problem);
  }

  std::string_view text_;
  std::size_t at_;
  TemplateScope scope_;
  std::string name_;  // all of it, with the root
  TemplateText found_;
};

// Root, and fields behind it. False: it is the shell's.
bool Reader::read_name() {
  const std::size_t begin = at_;
  if (at_ >= text_.size() || !is_letter(text_[at_])) return false;
  while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
  const auto word = text_.substr(begin, at_ - begin);
  const auto* root = std::ranges::find(kRoots, word, &Root::name);
  const auto rest = text_.substr(at_);
  if (!rest.starts_with('.')) {
    // Only what has a meaning of its own, and not with an operator of the shell.
    if (root == kRoots.end() || !root->alone) return false;
    if (!rest.starts_with('}') && !rest.starts_with(":-")) return false;
  }
  while (at_ < text_.size() && (is_field_char(text_[at_]) || text_[at_] == '.')) ++at_;
  name_ = text_.substr(begin, at_ - begin);
  found_.kind = TemplateText::Kind::ours;
  return true;
}

// From an opening brace to its end.
void Reader::find_end() {
  std::size_t depth = 1;
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '{') ++depth;
    if (text_[at_] == '}' && --depth == 0) {
      found_.end = ++at_;
      return;
    }
  }
  found_.end = at_;
  wrong(fmt::format("'${{{}' has no closing brace", name_));
}

void Reader::read_fallback() {
  const std::size_t begin = at_ + 2;
  find_end();
  if (found_.kind == TemplateText::Kind::wrong) return;
  const auto text = text_.substr(begin, found_.end - 1 - begin);
  found_.reference.fallback = std::string(text);
  for (std::size_t at = text.find("${"); at != std::string_view::npos;
       at = text.find("${", at + 2)) {
    // Its name is enough, and a chain of fallbacks takes no stack.
    if (!Reader(text, at, scope_).read_name()) continue;
    return wrong(
        fmt::format("the text after ':-' of '{}' is taken as it is: no template can stand "
                    "in it",
                    name_));
  }
  if (text.find_first_of("$`") != std::string_view::npos) {
    found_.problem = fmt::format(
        "the text after ':-' of '{}' is taken as it is: the shell does not "
        "expand it",
        name_);
  }
}

void Reader::unknown(TemplateText::Kind kind, const std::optional<std::string>& meant) {
  found_.kind = kind;
  found_.problem = fmt::format("unknown template name '{}'", name_);
  if (meant) found_.problem += fmt::format("; did you mean '{}'?", *meant);
  found_.has_suggestion = meant.has_value();
}

void Reader::check() {
  auto path = split(name_);
  const std::string root_name = path.front();
  path.erase(path.begin());
  const auto* root = std::ranges::find(kRoots, root_name, &Root::name);
  if (root == kRoots.end()) {
    std::vector<std::string> names;
    for (const Root& one : kRoots) names.emplace_back(one.name);
    auto meant = did_you_mean(root_name, names);
    if (meant) {
      const auto* known = std::ranges::find(kRoots, *meant, &Root::name);
      const bool takes_fields = !known->alone || known->root == TemplateRoot::item;
      if (takes_fields) meant->append(name_.substr(root_name.size()));
    }
    return unknown(TemplateText::Kind::unknown_root, meant);
  }
  found_.reference.root = root->root;
  if (std::ranges::any_of(path, &std::string::empty)) {
    return wrong(fmt::format("'{}' is no template: a name is missing beside a '.'", name_));
  }
  if (!is_known_field(root->root, path)) {
    std::optional<std::string> meant;
    if (root->alone) meant = root_name;
    if (const auto fields = fields_of(root->root); !fields.empty()) {
      meant = did_you_mean(path.front(), fields);
      if (meant) meant->insert(0, root_name + ".");
      if (meant && *meant == "job.headers")
        meant->append(path.size() > 1 ? "." + path[1] : ".NAME");
    }
    return unknown(TemplateText::Kind::wrong, meant);
  }
  const bool about_item = root->root == TemplateRoot::item || root->root == TemplateRoot::job;
  if (about_item && scope_ == TemplateScope::list) {
    return wrong(fmt::format("'{}' cannot stand in 'list': there is no {} yet", name_, root_name));
  }
  found_.reference.path = std::move(path);
}

TemplateText Reader::read() {
  if (!read_name()) return {};
  if (text_.substr(at_).starts_with(":-")) {
    read_fallback();
  } else if (at_ < text_.size() && text_[at_] == '}') {
    found_.end = ++at_;
  } else {
    const auto rest = text_.substr(at_, text_.substr(at_).find_first_of("}\n"));
    find_end();
    if (found_.kind != TemplateText::Kind::wrong) {
      wrong(
          fmt::format("'{}' in '${{{}{}}}' is not understood: behind the name may stand only "
                      "':-text'",
                      rest, name_, rest));
    }
  }
  if (found_.kind == TemplateText::Kind::ours) check();
  return std::move(found_);
}

}  // namespace

TemplateText read_template(std::string_view text, std::size_t at, TemplateScope scope) {
  return Reader(text, at, scope).read();
}

std::string template_name(const TemplateReference& reference) {
  const auto* root = std::ranges::find(kRoots, reference.root, &Root::root);
  std::string name(root->name);
  for (const std::string& part : reference.path) name.append(1, '.').append(part);
  return name;
}

}  // namespace reprise::runbook
