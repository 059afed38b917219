#include "server/worker_json.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/duration.h"
#include "model/job_fields_json.h"

namespace reprise::server {
namespace {

using worker::ExternalQueueView;
using worker::ProjectView;
using worker::RunView;
using worker::StepView;
using worker::WorkerReply;
using worker::WorkerView;

void write_time_or_null(JsonWriter& out, std::string_view name,
                        const std::optional<Timestamp>& time) {
  out.key(name);
  time ? out.value(format_timestamp(*time)) : out.null();
}

void write_texts(JsonWriter& out, std::string_view name, const std::vector<std::string>& texts) {
  out.key(name).begin_array();
  for (const std::string& text : texts) out.value(text);
  out.end_array();
}

std::string_view queue_type(bool external) { return external ? "external" : "persisted"; }

void write_finding(JsonWriter& out, const runbook::Finding& finding) {
  const bool is_error = finding.severity == runbook::Severity::error;
  out.begin_object().key("severity").value(is_error ? "error" : "warning");
  out.key("file").value(finding.place.file);
  out.key("line").value(finding.place.line).key("column").value(finding.place.column);
  out.key("path").value(finding.path).key("message").value(finding.message).end_object();
}

void write_project(JsonWriter& out, const ProjectView& project) {
  out.begin_object().key("name").value(project.ns).key("root").value(project.root);
  write_time_or_null(out, "loaded_at", project.loaded_at);
  out.key("broken").value(project.broken);
  out.key("missing").value(project.missing);
  write_texts(out, "files", project.files);
  out.key("queues").value(project.queues).key("pipelines").value(project.pipelines);
  out.key("workers").value(project.workers);
  out.key("findings").begin_array();
  for (const runbook::Finding& finding : project.findings) write_finding(out, finding);
  out.end_array().end_object();
}

void write_projects(JsonWriter& out, const std::vector<ProjectView>& projects) {
  out.key("projects").begin_array();
  for (const ProjectView& project : projects) write_project(out, project);
  out.end_array();
}

void write_worker(JsonWriter& out, const WorkerView& worker) {
  out.begin_object().key("name").value(worker.name).key("namespace").value(worker.ns);
  out.key("queue").value(worker.queue).key("type").value(queue_type(worker.external));
  out.key("pipeline").value(worker.pipeline);
  out.key("status").value(worker_status_name(worker.status));
  out.key("active").value(worker.active).key("concurrency").value(worker.concurrency);
  out.key("autostart").value(worker.autostart);
  write_time_or_null(out, "last_poll_at", worker.last_poll_at);
  write_time_or_null(out, "next_poll_at", worker.next_poll_at);
  out.key("succeeded").value(worker.succeeded).key("failed").value(worker.failed);
  write_text_or_null(out, "last_error", worker.last_error);
  write_time_or_null(out, "last_error_at", worker.last_error_at);
  out.end_object();
}

void write_worker_item(JsonWriter& out, const WorkerReply::Item& item) {
  out.begin_object().key("name").value(item.name);
  if (item.worker) {
    out.key("status").value(worker_status_name(item.worker->status));
    out.key("was_running").value(item.was_running);
    out.key("worker");
    write_worker(out, *item.worker);
  } else {
    out.key("status").value("error").key("error");
    write_error(out, item.worker.error());
  }
  out.end_object();
}

void write_step(JsonWriter& out, const StepView& step) {
  out.begin_object().key("name").value(step.name).key("visit").value(step.visit);
  out.key("status").value(run_status_name(step.status)).key("exit_code");
  step.exit_code ? out.value(*step.exit_code) : out.null();
  write_text_or_null(out, "error", step.error);
  write_time(out, "started_at", step.started_at);
  write_time_or_null(out, "ended_at", step.ended_at);
  out.end_object();
}

void write_run(JsonWriter& out, const RunView& run) {
  const bool trial = run.worker.empty();
  out.begin_object().key("id").value(run.id).key("namespace").value(run.ns);
  out.key("pipeline").value(run.pipeline);
  write_text_or_null(out, "worker", run.worker);
  write_text_or_null(out, "queue", run.queue);
  write_text_or_null(out, "type", trial ? std::string_view() : queue_type(run.external));
  write_text_or_null(out, "job", run.job);
  out.key("status").value(run_status_name(run.status));
  write_time(out, "started_at", run.started_at);
  write_time_or_null(out, "ended_at", run.ended_at);
  write_text_or_null(out, "error", run.error);
  write_text_or_null(out, "error_type", run.error_type);
  out.key("log_bytes").value(run.log_bytes).key("log_left_out").value(run.log_left_out);
  out.key("steps").begin_array();
  for (const StepView& step : run.steps) write_step(out, step);
  out.end_array().end_object();
}

// A reply that is one view.
template <class View, class Write>
Response view_response(const View& view, Write write) {
  JsonWriter out;
  write(out, view);
  return json_response(std::move(out));
}

}  // namespace

void write_external_queue(JsonWriter& out, const ExternalQueueView& queue) {
  out.begin_object().key("name").value(queue.queue.name).key("namespace").value(queue.queue.ns);
  out.key("type").value(queue_type(true));
  write_texts(out, "workers", queue.workers);
  out.key("poll");
  queue.poll ? out.value(format_duration(*queue.poll)) : out.null();
  write_time_or_null(out, "last_poll_at", queue.last_poll_at);
  out.key("listed").value(queue.listed).key("in_hand").value(queue.in_hand);
  write_text_or_null(out, "last_error", queue.last_error);
  out.end_object();
}

Response project_response(const ProjectView& project) {
  return view_response(project, write_project);
}

Response projects_response(const std::vector<ProjectView>& projects) {
  JsonWriter out;
  out.begin_object();
  write_projects(out, projects);
  out.end_object();
  return json_response(std::move(out));
}

Response workers_response(const worker::WorkerList& list) {
  JsonWriter out;
  out.begin_object().key("workers").begin_array();
  for (const WorkerView& worker : list.workers) write_worker(out, worker);
  out.end_array();
  write_projects(out, list.projects);
  out.end_object();
  return json_response(std::move(out));
}

Response worker_items_response(const WorkerReply& reply) {
  JsonWriter out;
  out.begin_object().key("results").begin_array();
  for (const WorkerReply::Item& item : reply.items) write_worker_item(out, item);
  out.end_array().end_object();
  const bool none_succeeded =
      !reply.items.empty() && std::ranges::none_of(reply.items, [](const WorkerReply::Item& item) {
        return item.worker.has_value();
      });
  const int http_status =
      none_succeeded ? errc_info(reply.items.front().worker.error().code).http_status : 200;
  return json_response(std::move(out), http_status);
}

Response external_queue_response(const ExternalQueueView& queue) {
  return view_response(queue, write_external_queue);
}

Response run_response(const RunView& run) { return view_response(run, write_run); }

Response runs_response(const std::vector<RunView>& runs) {
  JsonWriter out;
  out.begin_object().key("runs").begin_array();
  for (const RunView& run : runs) write_run(out, run);
  out.end_array().end_object();
  return json_response(std::move(out));
}

Response log_response(const worker::LogPart& part) {
  JsonWriter out;
  out.begin_object().key("text").value(part.text).key("next").value(part.next);
  out.key("ended").value(part.ended).end_object();
  return json_response(std::move(out));
}

Response timers_response(const std::vector<worker::TimerView>& timers) {
  JsonWriter out;
  out.begin_object().key("timers").begin_array();
  for (const worker::TimerView& timer : timers) {
    out.begin_object().key("id").value(timer.id);
    write_time(out, "due_at", timer.due_at);
    out.end_object();
  }
  out.end_array().end_object();
  return json_response(std::move(out));
}

}  // namespace reprise::server
