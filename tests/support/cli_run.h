// run_cli: the whole command line inside a test, with what it prints.
#pragma once

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/app.h"

namespace reprise::test {

struct CliRun {
  int exit_code;
  std::string out;
  std::string err;
};

inline CliRun run_cli(std::vector<const char*> args) {
  args.insert(args.begin(), "reprise");
  int exit_code = 0;
  CLI::App app;
  cli::add_commands(app, exit_code);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = cli::parse_and_run(app, static_cast<int>(args.size()), args.data(), exit_code);
  std::string out = ::testing::internal::GetCapturedStdout();
  return {.exit_code = code, .out = out, .err = ::testing::internal::GetCapturedStderr()};
}

}  // namespace reprise::test
