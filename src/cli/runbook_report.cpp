#include "cli/runbook_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/duration.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "cli/escape.h"
#include "cli/table.h"
#include "model/queue_config_json.h"

namespace reprise::cli {
namespace {

using runbook::CommandTemplate;
using runbook::ExternalQueue;
using runbook::Finding;
using runbook::LoadResult;
using runbook::Pipeline;
using runbook::QueueDeclaration;
using runbook::Runbook;
using runbook::Severity;
using runbook::Step;
using runbook::WorkerDeclaration;

constexpr auto kRight = Column::Align::right;

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

template <class Map>
std::uint64_t count_in(const Map& declared, const std::string& file) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      declared, [&](const auto& one) { return one.second.place.file == file; }));
}

Json config_of(const QueueConfig& config) {
  JsonWriter out;
  write_config_json(out, config);
  auto json = Json::parse(out.text());
  return json ? std::move(*json) : Json();
}

// The fields that are not as they would be anyway: "vars=["id"] lease="1m"".
std::string config_text(const QueueConfig& config) {
  const Json usual = config_of(QueueConfig{});
  const Json told = config_of(config);
  std::string text;
  if (told.object() == nullptr) return text;
  for (const auto& [name, value] : *told.object()) {
    const std::string json = value.dump();
    if (json == usual[name].dump()) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, json);
  }
  return text;
}

std::string external_text(const ExternalQueue& queue) {
  std::string text = queue.poll ? fmt::format("listed every {}", format_duration(*queue.poll))
                                : std::string("listed when there is a reason to");
  if (!queue.key.empty()) text += fmt::format(", key {}", queue.key);
  return text + fmt::format(", timeout {}", format_duration(queue.timeout));
}

std::string queues_text(const Runbook& runbook, const Terminal& terminal) {
  Table table({{.title = "QUEUE"}, {.title = "TYPE"}, {.title = "CONFIG", .may_be_cut = true}},
              terminal, true);
  for (const auto& [name, queue] : runbook.queues) {
    const ExternalQueue* external = queue.external();
    table.add(
        {Cell(name, Style::bold), Cell(external != nullptr ? "external" : "persisted"),
         Cell(external != nullptr ? external_text(*external) : config_text(*queue.persisted()))});
  }
  return table.take_text();
}

std::string target_name(const Pipeline& pipeline, std::optional<runbook::StepIndex> target) {
  return target ? pipeline.steps[*target].name : std::string();
}

std::string steps_text(const Runbook& runbook, const Terminal& terminal) {
  Table table({{.title = "PIPELINE"},
               {.title = "STEP"},
               {.title = "HANDLER"},
               {.title = "ON_DONE"},
               {.title = "ON_FAIL"},
               {.title = "ON_CANCEL"},
               {.title = "TIMEOUT", .align = kRight},
               {.title = "RUN", .may_be_cut = true}},
              terminal, true);
  for (const auto& [name, pipeline] : runbook.pipelines) {
    for (const Step& step : pipeline.steps) {
      table.add(
          {Cell(name, Style::bold), Cell(step.name), Cell(step.handler ? "yes" : ""),
           Cell(target_name(pipeline, step.on_done)), Cell(target_name(pipeline, step.on_fail)),
           Cell(target_name(pipeline, step.on_cancel)),
           Cell(step.timeout ? format_duration(*step.timeout) : ""), Cell(step.run.source())});
    }
  }
  return table.take_text();
}

std::string workers_text(const Runbook& runbook, const Terminal& terminal) {
  Table table({{.title = "WORKER"},
               {.title = "QUEUE"},
               {.title = "RUN"},
               {.title = "CONCURRENCY", .align = kRight},
               {.title = "AUTOSTART"}},
              terminal, true);
  for (const auto& [name, worker] : runbook.workers) {
    table.add({Cell(name, Style::bold), Cell(worker.queue), Cell(worker.pipeline),
               Cell(std::to_string(worker.concurrency)), Cell(worker.autostart ? "yes" : "no")});
  }
  return table.take_text();
}

void write_text_or_null(JsonWriter& out, std::string_view key, std::string_view text) {
  out.key(key);
  text.empty() ? out.null() : out.value(text);
}

void write_duration_or_null(JsonWriter& out, std::string_view key,
                            const std::optional<Duration>& duration) {
  write_text_or_null(out, key, duration ? format_duration(*duration) : "");
}

void write_command_or_null(JsonWriter& out, std::string_view key,
                           const std::optional<CommandTemplate>& command) {
  write_text_or_null(out, key, command ? command->source() : "");
}

void write_queue(JsonWriter& out, const QueueDeclaration& queue) {
  out.begin_object().key("name").value(queue.name);
  if (const ExternalQueue* external = queue.external()) {
    out.key("type").value("external");
    out.key("list").value(external->list.source());
    out.key("take").value(external->take.source());
    write_command_or_null(out, "done", external->done);
    write_command_or_null(out, "failed", external->failed);
    write_text_or_null(out, "key", external->key);
    write_duration_or_null(out, "poll", external->poll);
    out.key("timeout").value(format_duration(external->timeout));
  } else {
    out.key("type").value("persisted").key("config");
    write_config_json(out, *queue.persisted());
  }
  out.end_object();
}

void write_pipeline(JsonWriter& out, const Pipeline& pipeline) {
  out.begin_object().key("name").value(pipeline.name);
  out.key("timeout").value(format_duration(pipeline.timeout));
  out.key("steps").begin_array();
  for (const Step& step : pipeline.steps) {
    out.begin_object().key("name").value(step.name);
    out.key("run").value(step.run.source()).key("script").value(step.run.script());
    write_duration_or_null(out, "timeout", step.timeout);
    write_text_or_null(out, "on_done", target_name(pipeline, step.on_done));
    write_text_or_null(out, "on_fail", target_name(pipeline, step.on_fail));
    write_text_or_null(out, "on_cancel", target_name(pipeline, step.on_cancel));
    out.key("handler").value(step.handler).end_object();
  }
  out.end_array().end_object();
}

void write_worker(JsonWriter& out, const WorkerDeclaration& worker) {
  out.begin_object().key("name").value(worker.name);
  out.key("queue").value(worker.queue).key("run").value(worker.pipeline);
  out.key("concurrency").value(worker.concurrency);
  out.key("autostart").value(worker.autostart).end_object();
}

void write_finding(JsonWriter& out, const Finding& finding) {
  out.begin_object();
  out.key("severity").value(finding.severity == Severity::error ? "error" : "warning");
  out.key("file").value(finding.place.file);
  out.key("line").value(finding.place.line);
  out.key("column").value(finding.place.column);
  out.key("path").value(finding.path);
  out.key("message").value(finding.message).end_object();
}

}  // namespace

bool has_errors(const LoadResult& loaded) { return !loaded.runbook.has_value(); }

std::string findings_text(const LoadResult& loaded) {
  std::string text;
  for (const Finding& finding : loaded.findings) text += escape_text(to_text(finding)) + "\n";
  return text;
}

std::string files_text(const Runbook& runbook) {
  std::string text;
  for (const std::string& file : runbook.files) {
    text += fmt::format("{}: {}, {}, {}\n", escape_text(file),
                        counted(count_in(runbook.queues, file), "queue"),
                        counted(count_in(runbook.pipelines, file), "pipeline"),
                        counted(count_in(runbook.workers, file), "worker"));
  }
  return text;
}

std::string check_json(const LoadResult& loaded, const std::string& root) {
  const auto count = [&](const auto& declared) {
    return loaded.runbook ? (*loaded.runbook.*declared).size() : 0;
  };
  JsonWriter out;
  out.begin_object().key("ok").value(!has_errors(loaded));
  write_text_or_null(out, "project", loaded.ns);
  out.key("root").value(root);
  out.key("files").begin_array();
  for (const std::string& file : loaded.files) out.value(file);
  out.end_array();
  out.key("queues").value(count(&Runbook::queues));
  out.key("pipelines").value(count(&Runbook::pipelines));
  out.key("workers").value(count(&Runbook::workers));
  out.key("findings").begin_array();
  for (const Finding& finding : loaded.findings) write_finding(out, finding);
  out.end_array().end_object();
  return out.take() + "\n";
}

std::string show_text(const Runbook& runbook, const Terminal& terminal) {
  std::string text =
      fmt::format("project {} ({})\n", escape_text(runbook.ns), escape_text(runbook.root));
  if (!runbook.queues.empty()) text += "\n" + queues_text(runbook, terminal);
  if (!runbook.pipelines.empty()) text += "\n" + steps_text(runbook, terminal);
  if (!runbook.workers.empty()) text += "\n" + workers_text(runbook, terminal);
  return text;
}

std::string show_json(const Runbook& runbook) {
  JsonWriter out;
  out.begin_object().key("project").value(runbook.ns).key("root").value(runbook.root);
  out.key("queues").begin_array();
  for (const auto& [name, queue] : runbook.queues) write_queue(out, queue);
  out.end_array().key("pipelines").begin_array();
  for (const auto& [name, pipeline] : runbook.pipelines) write_pipeline(out, pipeline);
  out.end_array().key("workers").begin_array();
  for (const auto& [name, worker] : runbook.workers) write_worker(out, worker);
  out.end_array().end_object();
  return out.take() + "\n";
}

}  // namespace reprise::cli
