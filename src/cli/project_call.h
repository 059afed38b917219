// Calls that make the project here known to the server, should it not be.
#pragma once

#include <functional>
#include <string>

#include "cli/command_context.h"

namespace reprise::cli {

// `send` gets the project's directory, or nothing. A project that goes by its own name is always
// named with its directory: the server refuses one whose name belongs to another directory. With
// another name that a flag or the environment gives, the server is first asked for the project that
// it knows by it; only when it knows none is the directory here loaded under that name.
Result<client::Reply> call_in_project(
    CommandContext& context,
    const std::function<Result<client::Reply>(const std::string& root)>& send);

// Like CommandContext::report; outside of any project it says what to do about it.
int report_in_project(CommandContext& context, const Result<client::Reply>& reply);

}  // namespace reprise::cli
