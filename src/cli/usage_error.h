// What to tell a person whose command line was not understood.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace reprise::cli {

// A line that says what is wrong, what was probably meant, and which --help to read; for a
// command that is missing altogether, the help itself. `app` is as app.parse() left it.
std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace reprise::cli
