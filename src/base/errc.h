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
  unauthorized,
  forbidden_host,    // Host is not one this server answers to
  forbidden_origin,  // a web page of another origin
  not_found,         // no such route
  queue_not_found,
  job_not_found,
  operation_not_found,
  method_not_allowed,
  request_timeout,
  ambiguous_id,
  queue_exists,
  wrong_status,  // the job's status does not allow what was asked
  lease_lost,
  backup_running,       // one at a time
  directory_not_empty,  // a backup goes into a directory of its own
  // Limits, one error each.
  body_too_large,
  payload_too_large,
  batch_too_many_jobs,
  batch_too_large,
  too_many_headers,
  header_too_large,
  key_too_long,
  error_too_long,
  request_header_too_large,
  queue_full,        // max_jobs
  queue_bytes_full,  // max_bytes
  disk_full,
  too_many_operations,
  too_many_waiting,
  too_many_connections,
  overloaded,
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
