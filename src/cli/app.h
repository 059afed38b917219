// The command line of `reprise`: one CLI11 app, so that help, completion and the man page know
// every command.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::cli {

// Names the app, dresses its help, and adds every command that talks to a server. A command runs
// inside app.parse() and leaves what a shell shall see in `exit_code`, which must outlive that.
void add_commands(CLI::App& app, int& exit_code);

// Parses, runs, and explains what is wrong with a command line (exit code 2). Call it after all
// commands have been added; returns what main() returns.
int parse_and_run(CLI::App& app, int argc, const char* const* argv, const int& exit_code);

}  // namespace reprise::cli
