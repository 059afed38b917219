#include "cli/log_follow.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "cli/escape.h"
#include "cli/exit_code.h"

namespace reprise::cli {
namespace {

constexpr Duration kWait = std::chrono::seconds(20);
// After an answer without anything new: a server that does not wait is not to be stormed.
constexpr auto kPause = std::chrono::milliseconds(50);

}  // namespace

LogPrinter::LogPrinter(CommandContext& context, LogRequest request)
    : context_(context), request_(std::move(request)) {}

int LogPrinter::print(const std::function<bool()>& stop) {
  context_.client().set_keep_going([&stop] { return !stop(); });
  const int code = print_pages(stop);
  context_.client().set_keep_going({});
  return code;
}

void LogPrinter::finish_line() const {
  if (line_is_open_ && context_.terminal().out_is_tty) context_.print("\n");
  std::fflush(stdout);
}

int LogPrinter::print_pages(const std::function<bool()>& stop) {
  while (!ended_ && !stop()) {
    const auto reply = request_.read(next_page(), request_.follow ? kWait : Duration::zero());
    if (!reply && stop()) return kExitOk;  // given up by ourselves
    if (const int code = context_.report(reply); code != kExitOk) return code;
    const auto page = reply->json();
    const std::string text = page["text"].string_or("");
    print_page(*reply, text);
    const auto next = page["next"].unsigned_integer();
    if (!next) return kExitOk;
    offset_ = *next;
    // Nothing new: of what has ended, this was all.
    if (text.empty()) {
      ended_ = page["ended"].is_true();
      if (!request_.follow) return kExitOk;
      if (!ended_) std::this_thread::sleep_for(kPause);
    }
    // A log that grows as fast as it is read still has a tail.
    const bool tail_is_out = request_.tail && printed_bytes_ >= *request_.tail;
    if (tail_is_out && !request_.follow) return kExitOk;
  }
  return kExitOk;
}

void LogPrinter::print_page(const client::Reply& reply, const std::string& text) {
  if (context_.json()) {
    // One reply a line; those that say nothing new are left out.
    if (!text.empty() || !offset_) context_.print_json(reply);
  } else if (!text.empty()) {
    context_.print(context_.terminal().out_is_tty ? escape_output(text) : text);
    line_is_open_ = !text.ends_with('\n');
  }
  printed_bytes_ += text.size();
  // Whoever reads the pipe wants it now.
  std::fflush(stdout);
}

client::QueryParameters LogPrinter::next_page() const {
  if (offset_) return {{"offset", std::to_string(*offset_)}};
  if (request_.tail) return {{"tail", std::to_string(*request_.tail)}};
  return {};
}

}  // namespace reprise::cli
