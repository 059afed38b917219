#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "model/limits.h"
#include "server/handlers.h"

namespace reprise::server {
namespace {

// "queue:pushed,queue:dead", perhaps several times.
Status read_types(Query& query, EventFilter& filter) {
  const auto lists = query.take_all("type");
  if (lists.empty()) return ok();
  filter.types.reset();
  for (const std::string& list : lists) {
    std::string_view rest = list;
    while (true) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      const std::string_view name = rest.substr(0, end);
      const auto type = event_type_from_name(name);
      if (!type) {
        return Error{Errc::invalid_field,
                     fmt::format("parameter type: '{}' is no type of event", name)};
      }
      filter.types.set(static_cast<std::size_t>(*type));
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
  }
  return ok();
}

Result<EventFilter> read_filter(Request& request) {
  EventFilter filter;
  filter.queue = request.query.take("queue");
  filter.ns = request.query.take("namespace");
  if (filter.queue) REPRISE_TRY(check_name("queue", *filter.queue));
  if (filter.ns) REPRISE_TRY(check_name("namespace", *filter.ns));
  REPRISE_TRY(read_types(request.query, filter));
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  return filter;
}

Result<std::optional<std::uint64_t>> read_last_event_id(const RequestHead& head) {
  const std::string_view text = head.last_event_id.value_or("");
  if (text.empty()) return std::optional<std::uint64_t>();
  std::uint64_t id = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) {
    return Error{Errc::invalid_field, "Last-Event-ID is not the id of an event"};
  }
  return std::optional(id);
}

}  // namespace

Status stream_events(Api&, Request& request, const Exchange& exchange) {
  auto filter = read_filter(request);
  if (!filter) return filter.error();
  const auto after_id = read_last_event_id(request.head);
  if (!after_id) return after_id.error();
  exchange.stream(std::make_unique<EventStream>(std::move(*filter), *after_id));
  return ok();
}

}  // namespace reprise::server
