#include "base/errc.h"

#include <algorithm>
#include <array>

namespace reprise {
namespace {

constexpr std::array kTable = {
    ErrcInfo{Errc::invalid_request, "invalid_request", 400},
    ErrcInfo{Errc::unknown_field, "unknown_field", 400},
    ErrcInfo{Errc::invalid_field, "invalid_field", 400},
    ErrcInfo{Errc::invalid_name, "invalid_name", 400},
    ErrcInfo{Errc::invalid_lease_token, "invalid_lease_token", 400},
    ErrcInfo{Errc::invalid_script, "invalid_script", 400},
    ErrcInfo{Errc::missing_var, "missing_var", 400},
    ErrcInfo{Errc::missing_field, "missing_field", 400},
    ErrcInfo{Errc::invalid_runbook, "invalid_runbook", 400},
    ErrcInfo{Errc::unauthorized, "unauthorized", 401},
    ErrcInfo{Errc::forbidden_host, "forbidden_host", 403},
    ErrcInfo{Errc::forbidden_origin, "forbidden_origin", 403},
    ErrcInfo{Errc::unsafe_project, "unsafe_project", 403},
    ErrcInfo{Errc::not_found, "not_found", 404},
    ErrcInfo{Errc::queue_not_found, "queue_not_found", 404},
    ErrcInfo{Errc::job_not_found, "job_not_found", 404},
    ErrcInfo{Errc::config_not_found, "config_not_found", 404},
    ErrcInfo{Errc::throttle_not_found, "throttle_not_found", 404},
    ErrcInfo{Errc::operation_not_found, "operation_not_found", 404},
    ErrcInfo{Errc::project_not_found, "project_not_found", 404},
    ErrcInfo{Errc::worker_not_found, "worker_not_found", 404},
    ErrcInfo{Errc::pipeline_not_found, "pipeline_not_found", 404},
    ErrcInfo{Errc::run_not_found, "run_not_found", 404},
    ErrcInfo{Errc::method_not_allowed, "method_not_allowed", 405},
    ErrcInfo{Errc::request_timeout, "request_timeout", 408},
    ErrcInfo{Errc::ambiguous_id, "ambiguous_id", 409},
    ErrcInfo{Errc::queue_exists, "queue_exists", 409},
    ErrcInfo{Errc::project_conflict, "project_conflict", 409},
    ErrcInfo{Errc::external_queue, "external_queue", 409},
    ErrcInfo{Errc::queue_not_external, "queue_not_external", 409},
    ErrcInfo{Errc::wrong_status, "wrong_status", 409},
    ErrcInfo{Errc::lease_lost, "lease_lost", 409},
    ErrcInfo{Errc::spool_locked, "spool_locked", 409},
    ErrcInfo{Errc::hook_rejected, "hook_rejected", 422},
    ErrcInfo{Errc::backup_running, "backup_running", 409},
    ErrcInfo{Errc::directory_not_empty, "directory_not_empty", 409},
    ErrcInfo{Errc::body_too_large, "body_too_large", 413},
    ErrcInfo{Errc::payload_too_large, "payload_too_large", 413},
    ErrcInfo{Errc::batch_too_many_jobs, "batch_too_many_jobs", 413},
    ErrcInfo{Errc::batch_too_large, "batch_too_large", 413},
    ErrcInfo{Errc::too_many_events, "too_many_events", 413},
    ErrcInfo{Errc::too_many_headers, "too_many_headers", 413},
    ErrcInfo{Errc::header_too_large, "header_too_large", 413},
    ErrcInfo{Errc::key_too_long, "key_too_long", 413},
    ErrcInfo{Errc::error_too_long, "error_too_long", 413},
    ErrcInfo{Errc::script_too_large, "script_too_large", 413},
    ErrcInfo{Errc::value_too_large, "value_too_large", 413},
    ErrcInfo{Errc::target_too_long, "target_too_long", 414},
    ErrcInfo{Errc::request_header_too_large, "request_header_too_large", 431},
    ErrcInfo{Errc::queue_full, "queue_full", 429},
    ErrcInfo{Errc::queue_bytes_full, "queue_bytes_full", 429},
    ErrcInfo{Errc::disk_full, "disk_full", 507},
    ErrcInfo{Errc::spool_full, "spool_full", 507},
    ErrcInfo{Errc::too_many_wrong_tokens, "too_many_wrong_tokens", 429},
    ErrcInfo{Errc::too_many_operations, "too_many_operations", 429},
    ErrcInfo{Errc::too_many_keys, "too_many_keys", 429},
    ErrcInfo{Errc::too_many_throttles, "too_many_throttles", 429},
    ErrcInfo{Errc::too_many_runs, "too_many_runs", 429},
    ErrcInfo{Errc::too_many_waiting, "too_many_waiting", 503},
    ErrcInfo{Errc::too_many_connections, "too_many_connections", 503},
    ErrcInfo{Errc::overloaded, "overloaded", 503},
    ErrcInfo{Errc::hooks_unavailable, "hooks_unavailable", 503},
    ErrcInfo{Errc::workers_disabled, "workers_disabled", 503},
    ErrcInfo{Errc::shutting_down, "shutting_down", 503},
    ErrcInfo{Errc::unreachable, "unreachable", 503},
    ErrcInfo{Errc::backup_failed, "backup_failed", 500},
    ErrcInfo{Errc::io, "io", 500},
    ErrcInfo{Errc::corrupt, "corrupt", 500},
    ErrcInfo{Errc::internal, "internal", 500},
};

constexpr bool table_follows_enum() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].code) != i) return false;
  }
  return kTable.size() == static_cast<std::size_t>(Errc::internal) + 1;
}
static_assert(table_follows_enum(), "one row for each Errc, in order");

}  // namespace

std::span<const ErrcInfo> all_errcs() { return kTable; }

const ErrcInfo& errc_info(Errc code) { return kTable[static_cast<std::size_t>(code)]; }

Errc errc_from_wire_name(std::string_view name) {
  const auto* row = std::ranges::find(kTable, name, &ErrcInfo::wire_name);
  return row == kTable.end() ? Errc::internal : row->code;
}

}  // namespace reprise
