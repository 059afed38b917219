// reprise_storage_bench: what Reprise's storage does without a server around it. bench/run-storage
// starts it; each command prints one line of JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "backlog.h"
#include "cold_claims.h"
#include "committer.h"
#include "compare.h"

namespace reprise::bench {
namespace {

void add_compare(CLI::App& app, CompareOptions& options) {
  CLI::App* const command = app.add_subcommand("compare", "the same batches to several storages");
  command->add_option("--dir", options.folder, "where they keep their files")->required();
  command->add_option("--workload", options.workload, "pushes or lives (push, lease, ack)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Workload>{
          {"pushes", Workload::pushes}, {"lives", Workload::lives}}));
  command->add_option("--mode", options.mode, "sync or interval")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Mode>{{"sync", Mode::sync}, {"interval", Mode::interval}}));
  command->add_option("--jobs", options.jobs, "for each of them");
  command->add_option("--batch", options.jobs_per_batch, "jobs in a commit")
      ->check(CLI::PositiveNumber);
  command->add_option("--order", options.committers, "which of them, one after another")
      ->delimiter(',')
      ->check(CLI::IsMember(committer_names()));
  command->callback([&options] { fmt::print("{}\n", compare(options)); });
}

void add_fill(CLI::App& app, BacklogOptions& options) {
  CLI::App* const command = app.add_subcommand("fill", "a backlog that only grows");
  command->add_option("--dir", options.folder, "the data directory to make")->required();
  command->add_option("--jobs", options.jobs, "to push");
  command->add_option("--batch", options.jobs_per_batch, "jobs in a commit")
      ->check(CLI::PositiveNumber);
  command->add_option("--queues", options.queues, "that the jobs are spread over")
      ->check(CLI::PositiveNumber);
  command->add_flag("--kill", options.kill, "end by SIGKILL after the last commit");
  command->callback([&options] { fill_backlog(options); });
}

void add_claim(CLI::App& app, ClaimOptions& options) {
  CLI::App* const command = app.add_subcommand("claim", "from a backlog that fill has made");
  command->add_option("--dir", options.folder, "the data directory")->required();
  command->add_option("--jobs", options.jobs, "to claim");
  command->add_option("--batch", options.jobs_per_claim, "jobs in a claim")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--ack", options.ack, "each claim's jobs before the next claim");
  command->callback([&options] { fmt::print("{}\n", claim_cold(options)); });
}

int run(int argc, char** argv) {
  CompareOptions compare_options{.committers = committer_names()};
  BacklogOptions backlog_options;
  ClaimOptions claim_options;
  CLI::App app("Measures Reprise's storage without a server; prints one line of JSON.");
  app.require_subcommand(1);
  add_compare(app, compare_options);
  add_fill(app, backlog_options);
  add_claim(app, claim_options);
  CLI11_PARSE(app, argc, argv);
  return 0;
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  try {
    return reprise::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "reprise_storage_bench: {}\n", error.what());
    return 1;
  }
}
