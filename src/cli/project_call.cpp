#include "cli/project_call.h"

#include <fmt/format.h>

#include "cli/escape.h"
#include "cli/exit_code.h"

namespace reprise::cli {
namespace {

bool project_is_unknown(const Result<client::Reply>& reply) {
  return reply && reply->refused() &&
         reply->json()["error"]["code"].string_or("") ==
             errc_info(Errc::project_not_found).wire_name;
}

}  // namespace

Result<client::Reply> call_in_project(
    CommandContext& context,
    const std::function<Result<client::Reply>(const std::string& root)>& send) {
  const NamespaceChoice& place = context.place();
  if (place.root.empty() || place.own_name) return send(place.root);
  auto reply = send({});
  if (!project_is_unknown(reply)) return reply;
  reply = send(place.root);
  if (reply && !reply->refused()) {
    context.note(fmt::format("{} is project {} from now on", escape_text(place.root),
                             escape_text(place.ns)));
  }
  return reply;
}

int report_in_project(CommandContext& context, const Result<client::Reply>& reply) {
  const int code = context.report(reply);
  if (project_is_unknown(reply) && context.place().root.empty() && !context.json()) {
    context.note("  run it inside the project, or make it known: reprise project add DIR");
  }
  return code;
}

}  // namespace reprise::cli
