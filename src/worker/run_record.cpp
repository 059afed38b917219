// A run's record as text: JSON, times in microseconds since 1970.
#include "base/json_view.h"
#include "base/json_writer.h"
#include "worker/run_store.h"

namespace reprise::worker {
namespace {

std::int64_t number_of(Timestamp time) { return time.time_since_epoch().count(); }

void write_time(JsonWriter& out, std::string_view name, const std::optional<Timestamp>& time) {
  if (time) out.key(name).value(number_of(*time));
}

std::optional<Timestamp> time_of(JsonView json) {
  const auto number = json.unsigned_integer();
  if (!number) return std::nullopt;
  return Timestamp(Duration(static_cast<std::int64_t>(*number)));
}

void write_step(JsonWriter& out, const StepView& step) {
  out.begin_object();
  out.key("name").value(step.name);
  out.key("visit").value(step.visit);
  out.key("status").value(run_status_name(step.status));
  if (step.exit_code) out.key("exit_code").value(*step.exit_code);
  out.key("error").value(step.error);
  out.key("started_at").value(number_of(step.started_at));
  write_time(out, "ended_at", step.ended_at);
  out.end_object();
}

StepView read_step(JsonView json) {
  StepView step;
  step.name = json["name"].string_or("");
  step.visit = static_cast<std::uint32_t>(json["visit"].unsigned_integer().value_or(1));
  step.status = run_status_from_name(json["status"].string_or("")).value_or(RunStatus::lost);
  if (const auto code = json["exit_code"].number()) step.exit_code = static_cast<int>(*code);
  step.error = json["error"].string_or("");
  step.started_at = time_of(json["started_at"]).value_or(Timestamp{});
  step.ended_at = time_of(json["ended_at"]);
  return step;
}

}  // namespace

std::string encode_run(const RunView& run) {
  JsonWriter out;
  out.begin_object();
  out.key("id").value(run.id);
  out.key("namespace").value(run.ns);
  out.key("pipeline").value(run.pipeline);
  out.key("worker").value(run.worker);
  out.key("queue").value(run.queue);
  out.key("job").value(run.job);
  out.key("external").value(run.external);
  out.key("status").value(run_status_name(run.status));
  out.key("started_at").value(number_of(run.started_at));
  write_time(out, "ended_at", run.ended_at);
  out.key("error").value(run.error);
  out.key("error_type").value(run.error_type);
  out.key("log_bytes").value(run.log_bytes);
  out.key("log_left_out").value(run.log_left_out);
  out.key("steps").begin_array();
  for (const StepView& step : run.steps) write_step(out, step);
  out.end_array();
  out.end_object();
  return std::string(out.text());
}

std::optional<RunView> decode_run(std::string_view text) {
  const JsonView json(text);
  const auto status = run_status_from_name(json["status"].string_or(""));
  const auto started_at = time_of(json["started_at"]);
  if (!status || !started_at) return std::nullopt;
  RunView run;
  run.id = json["id"].string_or("");
  run.ns = json["namespace"].string_or("");
  run.pipeline = json["pipeline"].string_or("");
  run.worker = json["worker"].string_or("");
  run.queue = json["queue"].string_or("");
  run.job = json["job"].string_or("");
  run.external = json["external"].is_true();
  run.status = *status;
  run.started_at = *started_at;
  run.ended_at = time_of(json["ended_at"]);
  run.error = json["error"].string_or("");
  run.error_type = json["error_type"].string_or("");
  run.log_bytes = json["log_bytes"].unsigned_integer().value_or(0);
  run.log_left_out = json["log_left_out"].unsigned_integer().value_or(0);
  for (const JsonView step : json["steps"].elements()) run.steps.push_back(read_step(step));
  return run;
}

}  // namespace reprise::worker
