// The command `reprise salvage`: copies what can be read of a damaged data directory into a new
// one. It works on files, without a server, and so lives here rather than with the commands that
// talk to one. Exit codes:
//   0  everything was kept
//   1  something was lost; what could be read was kept
//   2  wrong usage, directories that are not what they should be included
//   3  impossible: in use, nothing can be read, or the new directory cannot be written
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::daemon {

// As add_serve_command() does.
void add_salvage_command(CLI::App& app, int& exit_code);

}  // namespace reprise::daemon
