// Errc: every way a call can fail, once. Each value has a wire name, an HTTP status and a line in
// docs/api.md ("Errors"); a test compares the three.
// Adding one: add it here, in errc.cpp's table and in docs/api.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace reprise {

enum class Errc : std::uint8_t {
  // The request itself.
  invalid_request,      // not JSON, wrong type, missing field
  unknown_field,        // a field or parameter nobody reads: most likely a typo
  invalid_field,        // a known field with a value outside its range
  invalid_name,         // queue or namespace name outside the allowed pattern
  invalid_lease_token,  // text that was never a lease token
  invalid_script,       // a hook's source that cannot be used
  missing_var,          // a payload without a field that its queue requires
  missing_field,        // a template that stands for nothing
  invalid_runbook,      // a project whose runbook cannot be used
  unauthorized,
  forbidden_host,    // Host is not one this server answers to
  forbidden_origin,  // a web page of another origin
  unsafe_project,    // somebody else could have written it
  not_found,         // no such route
  queue_not_found,
  job_not_found,
  config_not_found,  // no such runtime key
  throttle_not_found,
  operation_not_found,
  project_not_found,
  worker_not_found,
  pipeline_not_found,
  run_not_found,
  method_not_allowed,
  request_timeout,
  ambiguous_id,
  queue_exists,
  project_conflict,    // another project has its name
  external_queue,      // its items are listed, not pushed
  queue_not_external,  // nothing to be listed
  wrong_status,        // the job's status does not allow what was asked
  lease_lost,
  spool_locked,         // client side only: another process drains
  hook_rejected,        // the queue's on_enqueue refused the job
  backup_running,       // one at a time
  directory_not_empty,  // a backup goes into a directory of its own
  // Limits, one error each.
  body_too_large,
  payload_too_large,
  batch_too_many_jobs,
  batch_too_large,
  too_many_events,  // of one ingest
  too_many_headers,
  header_too_large,
  key_too_long,
  error_too_long,
  script_too_large,
  value_too_large,  // of a runtime key
  target_too_long,  // of a request line
  request_header_too_large,
  queue_full,        // max_jobs
  queue_bytes_full,  // max_bytes
  disk_full,
  spool_full,             // client side only: the quota of the local spool
  too_many_wrong_tokens,  // of one address
  too_many_operations,
  too_many_keys,       // runtime keys of a namespace
  too_many_throttles,  // of a namespace
  too_many_runs,       // trials at once
  too_many_waiting,
  too_many_connections,
  overloaded,
  hooks_unavailable,  // no process can be started to run scripts in
  workers_disabled,   // this server runs none
  shutting_down,
  // The server's own trouble.
  unreachable,    // client side only: no answer from the server
  backup_failed,  // the copy cannot be written; nothing else is the matter
  io,
  corrupt,
  internal,
};

struct ErrcInfo {
  Errc code;
  std::string_view wire_name;
  int http_status;
};

// All of them, in the order of the enum.
std::span<const ErrcInfo> all_errcs();
const ErrcInfo& errc_info(Errc code);
// Errc::internal for a name this build does not know (a newer server).
Errc errc_from_wire_name(std::string_view name);

}  // namespace reprise
