#include "cli/job_record.h"

#include <fmt/format.h>

#include "cli/reply_fields.h"
#include "cli/reply_text.h"
#include "cli/table.h"
#include "model/job.h"

namespace reprise::cli {
namespace {

class JobRecord {
 public:
  JobRecord(JsonView job, const Terminal& terminal, Timestamp now)
      : job_(job), terminal_(terminal), now_(now), record_(terminal) {}

  std::string text() {
    add_fields();
    add_headers();
    record_.section("Payload");
    const bool bytes = job_["payload_base64"].present();
    record_.field(bytes ? "payload_base64" : "payload", bytes ? "bytes" : "json", payload());
    add_death();
    add_history();
    return record_.text();
  }

 private:
  void add_fields() {
    record_.section("Job");
    record_.field("id", "id", Cell(text_of(job_["id"]), Style::bold));
    add("queue");
    add("namespace");
    record_.field("status", "status", status_cell(job_["status"]));
    for (const char* name : {"lane", "priority", "key", "attempts", "failures", "generation"})
      add(name);
    add_scheduling();
    add_time("pushed_at", "pushed");
    add_time("due_at", "due");
    add_time("expires_at", "expires");
    add_time("lease_expires_at", "lease ends");
    add_time("ended_at", "ended");
    add("worker");
    record_.field("last_error", "last error", Cell(text_of(job_["last_error"])));
    record_.field("last_error_type", "error type", Cell(text_of(job_["last_error_type"])));
    add("reason");
    record_.field("origin_queue", "origin queue", Cell(text_of(job_["origin_queue"])));
  }

  // People see only what is not the default.
  void add_scheduling() {
    const auto add_unless = [&](const char* path, const char* label, std::string_view usual) {
      const auto value = job_[path];
      if (!value.present() || (terminal_.out_is_tty && text_of(value) == usual)) return;
      record_.field(path, label, Cell(text_of(value)));
    };
    add_unless("fairness_key", "fairness key", kDefaultFairnessKey);
    add_unless("weight", "weight", "1");
    add_throttle_keys();
  }

  void add_throttle_keys() {
    const auto keys = job_["throttle_keys"];
    if (!terminal_.out_is_tty) {
      if (keys.present()) cli::add_fields(record_, "throttle_keys", keys);
      return;
    }
    std::string together;
    for (const auto& key : keys.elements()) {
      together += (together.empty() ? "" : ", ") + text_of(key);
    }
    if (!together.empty()) record_.field("throttle_keys", "throttle keys", Cell(together));
  }

  void add(const char* name) { record_.field(name, name, Cell(text_of(job_[name]))); }

  // For people the distance to now stands beside a time.
  void add_time(const char* path, const char* label) {
    const auto value = job_[path];
    std::string text = text_of(value);
    if (const auto time = parse_timestamp(text); time && terminal_.out_is_tty) {
      text += *time > now_ ? fmt::format("  (in {})", until_text(value, now_))
                           : fmt::format("  ({} ago)", age_text(value, now_));
    }
    record_.field(path, label, Cell(text));
  }

  void add_headers() {
    const auto headers = job_["headers"].members();
    if (headers.empty()) return;
    record_.section("Headers");
    for (const auto& [name, value] : headers) {
      record_.field("headers." + name, name, Cell(text_of(value)));
    }
  }

  // Piped, bytes are base64 without the mark that a table needs: the field's name says it.
  Cell payload() const {
    const auto bytes = job_["payload_base64"];
    return bytes.present() ? Cell(text_of(bytes)) : payload_cell(job_);
  }

  void add_death() {
    const auto meta = job_["dead_letter"]["meta"];
    if (!meta.is_object()) return;
    record_.section("Dead");
    for (const auto& [name, value] : meta.members()) {
      if (value.is_array() || value.is_object()) continue;  // the history stands below
      record_.field("dead_letter.meta." + name, name, Cell(text_of(value)));
    }
  }

  void add_history() {
    const auto history = job_["history"].elements();
    if (history.empty()) return;
    if (!terminal_.out_is_tty) return add_history_fields(history);
    record_.section("History");
    for (const auto& attempt : history) {
      const auto label = fmt::format("attempt {}", text_of(attempt["attempt"]));
      std::string what = text_of(attempt["at"]) + "  " + text_of(attempt["outcome"]);
      if (const auto took = duration_of(attempt); !took.empty()) what += " after " + took;
      if (const auto worker = text_of(attempt["worker"]); !worker.empty()) what += "  by " + worker;
      if (const auto error = text_of(attempt["error"]); !error.empty()) what += "  " + error;
      record_.field("", label, Cell(what));
    }
  }

  void add_history_fields(const std::vector<JsonView>& history) {
    for (std::size_t i = 0; i < history.size(); ++i) {
      for (const auto& [name, value] : history[i].members()) {
        record_.field(fmt::format("history.{}.{}", i, name), "", Cell(text_of(value)));
      }
    }
  }

  static std::string duration_of(JsonView attempt) {
    const auto end = parse_timestamp(text_of(attempt["ended_at"]));
    return end ? age_text(attempt["at"], *end) : std::string();
  }

  JsonView job_;
  Terminal terminal_;
  Timestamp now_;
  Record record_;
};

}  // namespace

std::string job_record(JsonView job, const Terminal& terminal, Timestamp now) {
  return JobRecord(job, terminal, now).text();
}

}  // namespace reprise::cli
