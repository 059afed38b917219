#include "cli/job_listing.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "base/json_writer.h"
#include "cli/exit_code.h"
#include "cli/flags.h"

namespace reprise::cli {
namespace {

// Small enough that a page of large payloads stays a moderate reply.
constexpr std::uint64_t kPageJobs = 200;

// Where a listing goes: a table, or one JSON document made of the server's own bytes.
class ListingOutput {
 public:
  ListingOutput(CommandContext& context, const JobListing& listing, bool header)
      : context_(context), row_(listing.row), table_(listing.columns, context.terminal(), header) {}

  void page(const std::vector<JsonView>& jobs) {
    if (context_.json()) {
      for (const auto& job : jobs) {
        context_.print(begun_ ? "," : R"({"jobs":[)");
        context_.print(job.raw());
        begun_ = true;
      }
      return;
    }
    for (const auto& job : jobs) table_.add(row_(job));
    context_.print(table_.take_text());
  }

  // `cursor` is empty at the end of the listing.
  void end(const std::string& cursor) {
    if (context_.json()) {
      std::string text = "null";
      if (!cursor.empty()) {
        text.clear();
        append_json_string(text, cursor);
      }
      context_.print(begun_ ? "" : R"({"jobs":[)");
      context_.print(fmt::format("],\"cursor\":{}}}\n", text));
    } else if (!cursor.empty()) {
      context_.note("more: --cursor " + cursor);
    }
  }

 private:
  CommandContext& context_;
  const std::function<std::vector<Cell>(JsonView)>& row_;
  Table table_;
  bool begun_ = false;
};

}  // namespace

void add_page_flags(CLI::App& command, PageFlags& flags) {
  auto* limit = command.add_option("--limit", flags.limit, "At most this many")
                    ->type_name("N")
                    ->check(CLI::PositiveNumber)
                    ->capture_default_str();
  command.add_flag("--all", flags.all, "All of them, page after page")->excludes(limit);
  command.add_option("--cursor", flags.cursor, "Go on where an earlier listing ended")
      ->type_name("CURSOR");
  add_no_header(command, flags.no_header);
}

int for_each_job(CommandContext& context, const std::string& queue,
                 const client::QueryParameters& filter, std::uint64_t limit, std::string& next,
                 const std::function<void(const std::vector<JsonView>& page)>& visit) {
  while (true) {
    auto parameters = filter;
    parameters.emplace_back("limit", std::to_string(std::min(limit, kPageJobs)));
    if (!next.empty()) parameters.emplace_back("cursor", next);
    const auto reply = context.client().list_jobs(queue, std::move(parameters));
    if (const int code = context.report(reply, queue); code != kExitOk) return code;

    const auto found = reply->json()["jobs"].elements();
    visit(found);
    limit -= std::min<std::uint64_t>(limit, found.size());
    next = reply->json()["cursor"].string_or("");
    if (limit == 0 || next.empty()) return kExitOk;
  }
}

int print_job_listing(CommandContext& context, const JobListing& listing, const PageFlags& flags) {
  ListingOutput output(context, listing, !flags.no_header);
  const auto limit = flags.all ? std::numeric_limits<std::uint64_t>::max() : flags.limit;
  std::string cursor = flags.cursor;
  const int code = for_each_job(context, listing.queue, listing.filter, limit, cursor,
                                [&](const std::vector<JsonView>& page) { output.page(page); });
  if (code == kExitOk) output.end(cursor);
  return code;
}

}  // namespace reprise::cli
