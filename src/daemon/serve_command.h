// The command `reprise serve`: from its command line to a running broker.
//
// Everything `serve` needs besides its settings lives in daemon.h; this file only joins the two and
// says which exit code a shell sees:
//   0    stopped cleanly, or printed what it was asked to print
//   1    could not start: the address or the data directory is in use, ...
//   2    the settings are wrong
//   70   the storage failed while serving
//   130/143  a second SIGINT/SIGTERM cut the clean stop short
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::daemon {

// Adds the subcommand `serve` to `app`. When the parsed command line selects it, it runs inside
// app.parse() and leaves its exit code in `exit_code`, which must outlive the call to parse().
void add_serve_command(CLI::App& app, int& exit_code);

}  // namespace reprise::daemon
