// Pages of jobs as one listing: `queue jobs` and `queue inspect` differ in what they ask for and in
// the columns they show.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json_view.h"
#include "cli/command_context.h"
#include "cli/table.h"
#include "client/url.h"

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::cli {

struct PageFlags {
  std::uint64_t limit = 50;
  bool all = false;
  std::string cursor;
  bool no_header = false;
};

// --limit, --all, --cursor and --no-header.
void add_page_flags(CLI::App& command, PageFlags& flags);

struct JobListing {
  std::string queue;
  client::QueryParameters filter;
  std::vector<Column> columns;
  std::function<std::vector<Cell>(JsonView job)> row;
};

// Prints page after page; returns the exit code.
int print_job_listing(CommandContext& context, const JobListing& listing, const PageFlags& flags);

// At most `limit` jobs, from as many pages as that takes: a page may be short, even empty, without
// being the last. visit(job) borrows from the page it is called with. Returns the exit code, after
// telling what went wrong; `next` is the cursor to go on with, empty at the end.
int for_each_job(CommandContext& context, const std::string& queue,
                 const client::QueryParameters& filter, std::uint64_t limit, std::string& next,
                 const std::function<void(const std::vector<JsonView>& page)>& visit);

}  // namespace reprise::cli
