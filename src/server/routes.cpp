#include "server/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace reprise::server {
namespace {

// In the order of docs/api.md.
constexpr std::array kRoutes = {
    RouteInfo{"GET", "/v1/queues", list_queues},
    RouteInfo{"PUT", "/v1/queues/{queue}", put_queue},
    RouteInfo{"GET", "/v1/queues/{queue}", get_queue},
    RouteInfo{"PATCH", "/v1/queues/{queue}", patch_queue},
    RouteInfo{"DELETE", "/v1/queues/{queue}", delete_queue},
    RouteInfo{"POST", "/v1/queues/{queue}/pause", pause_queue},
    RouteInfo{"POST", "/v1/queues/{queue}/resume", resume_queue},
    RouteInfo{"POST", "/v1/queues/{queue}/push", push_jobs},
    RouteInfo{"POST", "/v1/queues/{queue}/claim", claim_jobs},
    RouteInfo{"GET", "/v1/queues/{queue}/jobs", browse_jobs},
    RouteInfo{"GET", "/v1/queues/{queue}/jobs/{id}", show_job},
    RouteInfo{"DELETE", "/v1/queues/{queue}/jobs/{id}", drop_job},
    RouteInfo{"POST", "/v1/queues/{queue}/retry", retry_jobs},
    RouteInfo{"POST", "/v1/queues/{queue}/purge", purge_jobs},
    RouteInfo{"GET", "/v1/queues/{queue}/errors", group_errors},
    RouteInfo{"POST", "/v1/queues/{queue}/hooks/test", test_hook},
    RouteInfo{"POST", "/v1/queues/{queue}/hooks/replay", replay_hook},
    RouteInfo{"GET", "/v1/config", list_config},
    RouteInfo{"GET", "/v1/config/{key}", show_config},
    RouteInfo{"PUT", "/v1/config/{key}", set_config},
    RouteInfo{"DELETE", "/v1/config/{key}", unset_config},
    RouteInfo{"GET", "/v1/throttles", list_throttles},
    RouteInfo{"GET", "/v1/throttles/{key}", show_throttle},
    RouteInfo{"PUT", "/v1/throttles/{key}", set_throttle},
    RouteInfo{"DELETE", "/v1/throttles/{key}", unset_throttle},
    RouteInfo{"GET", "/v1/projects", list_projects},
    RouteInfo{"PUT", "/v1/projects/{name}", put_project},
    RouteInfo{"DELETE", "/v1/projects/{name}", delete_project},
    RouteInfo{"GET", "/v1/workers", list_workers},
    RouteInfo{"POST", "/v1/workers/start", start_workers},
    RouteInfo{"POST", "/v1/workers/stop", stop_workers},
    RouteInfo{"POST", "/v1/workers/restart", restart_workers},
    RouteInfo{"POST", "/v1/workers/resize", resize_worker},
    RouteInfo{"GET", "/v1/workers/{name}/log", show_worker_log},
    RouteInfo{"POST", "/v1/queues/{queue}/refresh", refresh_queue},
    RouteInfo{"POST", "/v1/runs", start_run},
    RouteInfo{"GET", "/v1/runs", list_runs},
    RouteInfo{"GET", "/v1/runs/{id}", show_run},
    RouteInfo{"POST", "/v1/runs/{id}/cancel", cancel_run},
    RouteInfo{"GET", "/v1/runs/{id}/log", show_run_log},
    RouteInfo{"GET", "/v1/timers", list_timers},
    RouteInfo{"GET", "/v1/operations", list_operations},
    RouteInfo{"GET", "/v1/operations/{id}", show_operation},
    RouteInfo{"DELETE", "/v1/operations/{id}", cancel_operation},
    RouteInfo{"GET", "/v1/audit", list_audit},
    RouteInfo{"POST", "/v1/ack", ack_leases},
    RouteInfo{"POST", "/v1/fail", fail_leases},
    RouteInfo{"POST", "/v1/release", release_leases},
    RouteInfo{"POST", "/v1/extend", extend_leases},
    RouteInfo{"POST", "/api/events/ingest", ingest_events},
    RouteInfo{"GET", "/v1/events", stream_events},
    RouteInfo{"GET", "/v1/status", show_status},
    RouteInfo{"POST", "/v1/backup", make_backup},
    RouteInfo{"GET", "/healthz", show_health, false},
    RouteInfo{"GET", "/readyz", show_readiness, false},
    RouteInfo{"GET", "/metrics", show_metrics},
    RouteInfo{"GET", "/openapi.json", show_openapi},
    RouteInfo{"GET", "/", show_welcome},
};
static_assert(kRoutes.size() <= kMaxRoutes);

// Path parameters, still encoded.
struct Captures {
  std::string_view queue;
  std::string_view id;
};

// The first segment of a path that begins with '/', and the rest after it.
std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(1);
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(end);
  return segment;
}

std::optional<Captures> match_pattern(std::string_view pattern, std::string_view path) {
  Captures captures;
  while (!pattern.empty() && !path.empty()) {
    const std::string_view wanted = take_segment(pattern);
    const std::string_view found = take_segment(path);
    if (wanted == "{queue}" && !found.empty()) {
      captures.queue = found;
    } else if ((wanted == "{id}" || wanted == "{key}" || wanted == "{name}") && !found.empty()) {
      captures.id = found;
    } else if (wanted != found) {
      return std::nullopt;
    }
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return captures;
}

// After the path has been split: an escaped slash is an ordinary, if useless, character of a name.
Result<std::string> decode_segment(std::string_view segment) {
  auto decoded = percent_decode(segment, false);
  if (!decoded) {
    return Error{Errc::invalid_request, fmt::format("bad escape in the path at '{}'", segment)};
  }
  return std::move(*decoded);
}

void append_method(std::string& allow, std::string_view method) {
  if (!allow.empty()) allow += ", ";
  allow += method;
  if (method == "GET") allow += ", HEAD";
}

}  // namespace

std::span<const RouteInfo> routes() { return kRoutes; }

std::size_t route_index(const RouteInfo& route) {
  return static_cast<std::size_t>(&route - kRoutes.data());
}

Result<RouteMatch> match_route(std::string_view method, std::string_view path) {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  RouteMatch match;
  for (const RouteInfo& route : kRoutes) {
    const auto captures = match_pattern(route.pattern, path);
    if (!captures) continue;
    if (route.method != wanted) {
      append_method(match.allow, route.method);
      continue;
    }
    auto queue = decode_segment(captures->queue);
    if (!queue) return queue.error();
    auto id = decode_segment(captures->id);
    if (!id) return id.error();
    match.route = &route;
    match.queue = std::move(*queue);
    match.id = std::move(*id);
    return match;
  }
  if (match.allow.empty()) {
    return Error{Errc::not_found, fmt::format("no such route: {} {}", method, path)};
  }
  return match;
}

}  // namespace reprise::server
