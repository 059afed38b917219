#include "server/ingest_reply.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace reprise::server {
namespace {

std::string_view status_of(const Result<PushedJob>& result) {
  if (result) return result->duplicate ? "duplicate" : "accepted";
  return is_passing(result.error().code) ? "deferred" : "rejected";
}

void write_result(JsonWriter& out, std::size_t index, const Result<PushedJob>& result) {
  out.begin_object().key("index").value(index).key("status").value(status_of(result));
  if (!result) {
    out.key("error").value(shown_message(result.error()));
    out.key("code").value(errc_info(result.error().code).wire_name);
  }
  out.end_object();
}

// The first error of those that `wanted` names.
template <class Wanted>
std::optional<Error> first_error(const IngestResults& results, Wanted wanted) {
  const auto found = std::ranges::find_if(results, [&](const Result<PushedJob>& result) {
    return !result && wanted(result.error().code);
  });
  if (found == results.end()) return std::nullopt;
  return found->error();
}

// The error that stands for the whole request, if one does.
std::optional<Error> whole_error(const IngestResults& results, const IngestCounts& counts) {
  // Fewer events at a time would fit, which only the sender can do. What was stored of the others
  // will be known again.
  const auto too_large = [](Errc code) { return code == Errc::batch_too_large; };
  if (auto error = first_error(results, too_large)) return error;
  if (counts.accepted + counts.duplicates > 0) return std::nullopt;
  return first_error(results, is_passing);
}

}  // namespace

bool is_passing(Errc code) {
  const int http_status = errc_info(code).http_status;
  return http_status == 429 || http_status >= 500 || code == Errc::batch_too_large;
}

IngestCounts count_results(const IngestResults& results) {
  IngestCounts counts;
  for (const Result<PushedJob>& result : results) {
    if (result) {
      ++(result->duplicate ? counts.duplicates : counts.accepted);
    } else {
      ++(is_passing(result.error().code) ? counts.deferred : counts.rejected);
    }
  }
  return counts;
}

Response ingest_response(const IngestResults& results) {
  const IngestCounts counts = count_results(results);
  if (const auto error = whole_error(results, counts)) return error_response(*error);
  JsonWriter out;
  out.reserve(128 + results.size() * 40);
  out.begin_object();
  out.key("ingested").value(counts.accepted);
  out.key("duplicates").value(counts.duplicates);
  out.key("rejected").value(counts.rejected);
  out.key("deferred").value(counts.deferred);
  out.key("results").begin_array();
  for (std::size_t i = 0; i < results.size(); ++i) write_result(out, i, results[i]);
  out.end_array().end_object();
  return json_response(std::move(out), 202);
}

}  // namespace reprise::server
