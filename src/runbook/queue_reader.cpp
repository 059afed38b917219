#include "runbook/queue_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model/queue_config_json.h"
#include "runbook/command_reader.h"
#include "runbook/table_reader.h"

namespace reprise::runbook {
namespace {

constexpr std::size_t kMostVars = 64;
constexpr std::size_t kMostDefaultsBytes = 64 * 1024;
constexpr std::string_view kPersisted = "persisted";
constexpr std::string_view kExternal = "external";

constexpr auto kExternalFields =
    std::to_array<std::string_view>({"list", "take", "done", "failed", "key", "poll", "timeout"});

// The fields of a queue's config, without those that this file reads itself. QueueConfig's own
// writer knows them, so that a new one counts here as well.
const std::vector<std::string>& config_fields() {
  static const std::vector<std::string> names = [] {
    JsonWriter out;
    write_config_json(out, QueueConfig{});
    std::vector<std::string> found;
    const auto json = Json::parse(out.text());
    for (const auto& [name, value] : *json->object()) {
      if (name != "vars" && name != "defaults") found.push_back(name);
    }
    return found;
  }();
  return names;
}

// What apply_config_json says of one field: the field's path and what is wrong with it.
struct FieldProblem {
  std::string path;
  std::string message;
};

// "retry.attempts: must be…", or "unknown field 'retry.atempts'; did you mean…".
FieldProblem split_detail(const std::string& detail, const std::string& field) {
  const std::size_t quote = detail.find('\'');
  const std::size_t quote_end = detail.find('\'', quote + 1);
  if (detail.starts_with("unknown field '") && quote_end != std::string::npos) {
    return {detail.substr(quote + 1, quote_end - quote - 1), detail};
  }
  const std::size_t colon = detail.find(": ");
  const std::string path = detail.substr(0, colon);
  if (colon != std::string::npos && (path == field || path.starts_with(field + "."))) {
    return {path, detail.substr(colon + 2)};
  }
  return {field, detail};
}

// The member of `table` that `path` leads to, or the last one on the way; null: not even the first.
Member* find_path(Node& table, std::string_view path, Node** holder) {
  Member* found = nullptr;
  Node* node = &table;
  while (!path.empty()) {
    const auto key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(key.size() + 1, path.size()));
    const auto member = std::ranges::find(node->members, key, &Member::key);
    if (member == node->members.end()) break;
    found = &*member;
    *holder = node;
    node = &member->value;
  }
  return found;
}

// Applies one field. What is wrong within it is told and taken out, and the rest is tried again,
// so that every mistake is told.
void apply_field(QueueConfig& config, const Member& field, const Subject& queue,
                 Findings& findings) {
  constexpr int kMostMistakes = 20;
  if (const Node* strange = first_without_json(field.value)) {
    findings.error(queue.at(field.key, strange->position),
                   fmt::format("must not be {}", strange->kind_name()));
    return;
  }
  Node table;
  table.kind = Node::Kind::table;
  table.members.push_back(field);
  for (int mistakes = 0; mistakes < kMostMistakes && !table.members.empty(); ++mistakes) {
    const auto json = Json::parse(to_json(table));
    if (!json) {
      findings.error(queue.at(field.key, field.position), json.error().detail);
      return;
    }
    const Status applied = apply_config_json(config, *json);
    if (applied) return;
    const FieldProblem problem = split_detail(applied.error().detail, field.key);
    Node* holder = nullptr;
    const Member* wrong = find_path(table, problem.path, &holder);
    if (wrong == nullptr) wrong = find_path(table, field.key, &holder);
    findings.error(queue.at(problem.path, wrong->position), problem.message);
    holder->members.erase(holder->members.begin() + (wrong - holder->members.data()));
  }
}

std::vector<std::string> read_vars(TableReader& reader) {
  std::vector<std::string> vars;
  const Member* member = reader.take("vars");
  if (member == nullptr) {
    reader.error("vars", "persisted queue requires 'vars' field (may be [])");
    return vars;
  }
  if (!member->value.is(Node::Kind::list)) {
    reader.error("vars",
                 fmt::format("expected a list of field names, got {}", member->value.kind_name()));
    return vars;
  }
  if (member->value.items.size() > kMostVars) {
    reader.error("vars", fmt::format("may have at most {} names, got {}", kMostVars,
                                     member->value.items.size()));
    return vars;
  }
  for (const Node& item : member->value.items) {
    const Subject subject = reader.subject().at("vars", item.position);
    if (!item.is(Node::Kind::text)) {
      reader.findings().error(subject, fmt::format("expected text, got {}", item.kind_name()));
    } else if (item.text.empty()) {
      reader.findings().error(subject, "a name must not be empty");
    } else if (std::ranges::find(vars, item.text) != vars.end()) {
      reader.findings().error(subject, fmt::format("'{}' stands twice", item.text));
    } else {
      vars.push_back(item.text);
    }
  }
  return vars;
}

std::string read_defaults(TableReader& reader) {
  const Member* member = reader.take("defaults");
  if (member == nullptr) return {};
  if (!member->value.is(Node::Kind::table)) {
    reader.error("defaults", fmt::format("expected a table, got {}", member->value.kind_name()));
    return {};
  }
  if (const Node* strange = first_without_json(member->value)) {
    reader.findings().error(
        reader.subject().at("defaults", strange->position),
        fmt::format("holds {}, which JSON cannot say; write it as text",
                    strange->is(Node::Kind::time) ? strange->kind_name() : strange->text));
    return {};
  }
  std::string json = to_json(member->value);
  if (json.size() > kMostDefaultsBytes) {
    reader.error("defaults", fmt::format("has {} bytes of JSON, at most {} are taken", json.size(),
                                         kMostDefaultsBytes));
    return {};
  }
  return json;
}

QueueConfig read_persisted(const Node& table, TableReader& reader) {
  for (const std::string_view name : kExternalFields) {
    if (reader.take(name) == nullptr) continue;
    const bool when = name == "poll";
    reader.error(name,
                 fmt::format("persisted queue must not have '{}' field: {}", name,
                             when ? "it is event-driven, a push wakes its worker at once"
                                  : "it is event-driven and stored here; that is for external "
                                    "queues"));
  }
  QueueConfig config;
  for (const std::string& name : config_fields()) reader.take(name);
  for (const Member& member : table.members) {
    if (std::ranges::find(config_fields(), member.key) == config_fields().end()) continue;
    apply_field(config, member, reader.subject(), reader.findings());
  }
  config.vars = read_vars(reader);
  config.defaults = read_defaults(reader);
  return config;
}

void refuse_stored_fields(TableReader& reader) {
  std::vector<std::string> names = config_fields();
  names.insert(names.end(), {"vars", "defaults"});
  for (const std::string& name : names) {
    if (reader.take(name) == nullptr) continue;
    reader.error(name,
                 fmt::format("external queue must not have '{}' field: {}", name,
                             name == "retry" ? "the retry of an external item is the next poll"
                                             : "that is for persisted queues"));
  }
}

ExternalQueue read_external(TableReader& reader) {
  ExternalQueue queue;
  refuse_stored_fields(reader);
  for (const std::string_view name : {"list", "take"}) {
    if (reader.take(name) != nullptr) continue;
    reader.error(name, fmt::format("external queue requires '{}' field", name));
  }
  if (auto command = read_command(reader, "list", TemplateScope::list)) queue.list = *command;
  if (auto command = read_command(reader, "take", TemplateScope::item)) queue.take = *command;
  queue.done = read_command(reader, "done", TemplateScope::item);
  queue.failed = read_command(reader, "failed", TemplateScope::item);
  reader.read("key", queue.key);
  Duration poll{};
  if (reader.read("poll", poll, ExternalQueue::kShortestPoll, ExternalQueue::kLongestPoll)) {
    queue.poll = poll;
  }
  reader.read("timeout", queue.timeout);
  return queue;
}

// The fields of either kind are known, so that only real typos are told about a queue without type.
void know_all_fields(TableReader& reader) {
  for (const std::string_view name : kExternalFields) reader.take(name);
  for (const std::string& name : config_fields()) reader.take(name);
  reader.take("vars");
  reader.take("defaults");
}

}  // namespace

std::optional<QueueDeclaration> read_queue(const std::string& name, const Node& table,
                                           const Subject& subject, Findings& findings) {
  QueueDeclaration queue{.name = name, .place = subject.place(), .what = {}};
  TableReader reader(table, subject, findings);
  std::string type;
  const bool has_type = reader.read("type", type);
  if (!has_type && reader.take("type") == nullptr) {
    reader.error("type", "queue requires 'type' field: \"persisted\" or \"external\"");
  }
  if (type == kPersisted) {
    queue.what = read_persisted(table, reader);
  } else if (type == kExternal) {
    queue.what = read_external(reader);
  } else {
    know_all_fields(reader);
    const std::vector<std::string> types{std::string(kPersisted), std::string(kExternal)};
    if (has_type) {
      reader.error("type",
                   fmt::format("unknown queue type '{}'; it is \"persisted\" or \"external\"{}",
                               type, findings.suggestion(type, types)));
    }
  }
  reader.finish();
  if (type != kPersisted && type != kExternal) return std::nullopt;
  return queue;
}

}  // namespace reprise::runbook
