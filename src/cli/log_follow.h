// Logs of runs and workers: printed as they are to a pipe, escaped on a terminal, page after page
// and, when asked to, as they grow.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/time.h"
#include "cli/command_context.h"

namespace reprise::cli {

struct LogRequest {
  // Asks for a page; `wait` is how long the answer may take.
  std::function<Result<client::Reply>(client::QueryParameters page, Duration wait)> read;
  std::optional<std::uint64_t> tail;  // begin this many bytes before the end; nothing: at its start
  bool follow = false;
};

class LogPrinter {
 public:
  // The context must outlive it.
  LogPrinter(CommandContext& context, LogRequest request);

  // Prints what is there; with `follow` goes on until nothing can follow or `stop` says so, which
  // is asked within a second and after every signal. Returns the exit code; what the server refuses
  // has been reported. May be called again to go on where it stopped.
  int print(const std::function<bool()>& stop);
  // On a terminal, ends a last line that has no end.
  void finish_line() const;

 private:
  int print_pages(const std::function<bool()>& stop);
  void print_page(const client::Reply& reply, const std::string& text);
  client::QueryParameters next_page() const;

  CommandContext& context_;
  LogRequest request_;
  std::optional<std::uint64_t> offset_;  // of the next page; nothing: the first one
  std::uint64_t printed_bytes_ = 0;
  bool ended_ = false;
  bool line_is_open_ = false;
};

}  // namespace reprise::cli
