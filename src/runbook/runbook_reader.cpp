#include "runbook/runbook_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "model/limits.h"
#include "runbook/name_list.h"
#include "runbook/pipeline_reader.h"
#include "runbook/queue_reader.h"
#include "runbook/table_reader.h"

namespace reprise::runbook {
namespace {

const std::vector<std::string> kGroups = {"queue", "pipeline", "worker", "project"};

std::string describe(const Place& place) { return fmt::format("{}:{}", place.file, place.line); }

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

}  // namespace

bool is_config_file(std::string_view file) {
  const auto name = file.substr(file.rfind('/') + 1);
  return name == "config.toml" || name == "config.json";
}

std::optional<std::string> read_project_name(const Node& root, const std::string& file,
                                             Findings& findings) {
  const Member* project = root.find("project");
  if (project == nullptr) return std::nullopt;
  const Subject subject{file, "project", project->position};
  if (!project->value.is(Node::Kind::table)) {
    findings.error(subject, fmt::format("expected a table, got {}", project->value.kind_name()));
    return std::nullopt;
  }
  TableReader reader(project->value, subject, findings);
  std::string name;
  const bool given = reader.read("name", name);
  reader.finish();
  if (!given) return std::nullopt;
  if (const Status fine = check_name("namespace", name); !fine) {
    reader.error("name", fine.error().detail);
    return std::nullopt;
  }
  return name;
}

void RunbookReader::read(const std::string& file, const Node& root) {
  runbook_.files.push_back(file);
  for (const Member& group : root.members) {
    if (group.key == "queue") {
      read_queues(group, file);
    } else if (group.key == "pipeline") {
      read_pipelines(group, file);
    } else if (group.key == "worker") {
      read_workers(group, file);
    } else if (group.key == "project") {
      read_project(group, root, file);
    } else {
      findings_.error(
          {file, group.key, group.position},
          fmt::format("unknown field '{}'{}", group.key, findings_.suggestion(group.key, kGroups)));
    }
  }
}

// Calls read(name, table, subject) for each [group.NAME] that has a good name of its own.
template <class Read>
void RunbookReader::for_each_named(const Member& group, const std::string& file, Places& places,
                                   Read read) {
  const Subject all{file, group.key, group.position};
  if (!group.value.is(Node::Kind::table)) {
    findings_.error(all, fmt::format("expected a table, got {}", group.value.kind_name()));
    return;
  }
  for (const Member& member : group.value.members) {
    const Subject subject = all.at(member.key, member.position);
    if (const Status fine = check_name(group.key, member.key); !fine) {
      findings_.error(subject, fine.error().detail);
      continue;
    }
    const auto [first, is_new] = places.emplace(member.key, subject.place());
    if (!is_new) {
      findings_.error(subject, fmt::format("{} '{}' is defined twice, first at {}", group.key,
                                           member.key, describe(first->second)));
      continue;
    }
    if (places.size() > kMostDeclarations) {
      if (places.size() == kMostDeclarations + 1) {
        findings_.error(subject, fmt::format("more than {} {}s; a project may have that many",
                                             kMostDeclarations, group.key));
      }
      continue;
    }
    if (!member.value.is(Node::Kind::table)) {
      findings_.error(subject, fmt::format("expected a table, got {}", member.value.kind_name()));
      continue;
    }
    read(member.key, member.value, subject);
  }
}

void RunbookReader::read_queues(const Member& queues, const std::string& file) {
  for_each_named(queues, file, queues_,
                 [&](const std::string& name, const Node& table, const Subject& subject) {
                   queue_subjects_.emplace(name, subject);
                   auto queue = read_queue(name, table, subject, findings_);
                   if (queue) runbook_.queues.emplace(name, std::move(*queue));
                 });
}

void RunbookReader::read_pipelines(const Member& pipelines, const std::string& file) {
  for_each_named(pipelines, file, pipelines_,
                 [&](const std::string& name, const Node& table, const Subject& subject) {
                   auto pipeline = read_pipeline(name, table, subject, findings_);
                   if (pipeline) runbook_.pipelines.emplace(name, std::move(*pipeline));
                 });
}

void RunbookReader::read_workers(const Member& workers, const std::string& file) {
  for_each_named(workers, file, workers_,
                 [&](const std::string& name, const Node& table, const Subject& subject) {
                   read_worker(name, table, subject);
                 });
}

void RunbookReader::read_worker(const std::string& name, const Node& table,
                                const Subject& subject) {
  WorkerDraft draft;
  draft.worker.name = name;
  draft.worker.place = subject.place();
  TableReader reader(table, subject, findings_);
  for (const std::string_view field : {"queue", "run"}) {
    if (reader.take(field) == nullptr) {
      reader.error(field, fmt::format("worker requires '{}' field", field));
    }
  }
  reader.read("queue", draft.worker.queue);
  reader.read("run", draft.worker.pipeline);
  reader.read("concurrency", draft.worker.concurrency, 1, WorkerDeclaration::kMostConcurrency);
  reader.read("autostart", draft.worker.autostart);
  reader.finish();
  draft.queue = reader.subject_of("queue");
  draft.pipeline = reader.subject_of("run");
  drafts_.push_back(std::move(draft));
}

void RunbookReader::read_project(const Member& project, const Node& root, const std::string& file) {
  const Subject subject{file, "project", project.position};
  if (!is_config_file(file)) {
    findings_.error(subject, "may stand only in .reprise/config.toml or .reprise/config.json");
    return;
  }
  if (project_) {
    findings_.error(subject,
                    fmt::format("project is defined twice, first at {}", describe(*project_)));
    return;
  }
  project_ = subject.place();
  name_ = read_project_name(root, file, findings_);
}

void RunbookReader::check_workers() {
  const auto queues = keys_of(queues_);
  const auto pipelines = keys_of(pipelines_);
  for (WorkerDraft& draft : drafts_) {
    const WorkerDeclaration& worker = draft.worker;
    if (!worker.queue.empty() && !queues_.contains(worker.queue)) {
      findings_.error(draft.queue, unknown_name("queue", worker.queue, queues, findings_));
    }
    if (!worker.pipeline.empty() && !pipelines_.contains(worker.pipeline)) {
      findings_.error(draft.pipeline,
                      unknown_name("pipeline", worker.pipeline, pipelines, findings_));
    }
  }
}

// A stored queue may have workers elsewhere; nobody else lists an external one.
void RunbookReader::check_unused() {
  std::set<std::string, std::less<>> used;
  for (const WorkerDraft& draft : drafts_) used.insert(draft.worker.queue);
  for (const auto& [name, queue] : runbook_.queues) {
    if (queue.external() == nullptr || used.contains(name)) continue;
    findings_.warning(queue_subjects_.at(name),
                      "no worker uses this external queue: it is never "
                      "listed");
  }
}

Runbook RunbookReader::finish() {
  check_workers();
  check_unused();
  for (WorkerDraft& draft : drafts_) {
    std::string name = draft.worker.name;
    runbook_.workers.emplace(std::move(name), std::move(draft.worker));
  }
  return std::move(runbook_);
}

}  // namespace reprise::runbook
