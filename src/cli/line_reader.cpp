#include "cli/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace reprise::cli {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;

std::string_view without_carriage_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

LineReader::Event LineReader::next() {
  text_ = {};
  while (true) {
    if (take_line()) {
      // The end of a line that was skipped brings only its tail.
      const bool too_long = std::exchange(skipping_, false) || text_.size() > max_line_bytes_;
      if (too_long) text_ = {};
      return too_long ? Event::too_long : Event::line;
    }
    if (at_end_) return take_last_line();
    drop_used();
    if (buffer_.size() > max_line_bytes_) {
      skipping_ = true;
      bytes_taken_ += buffer_.size();
      buffer_.clear();
      scanned_ = 0;
    }
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kIdleMs) == 0) return Event::idle;

    const std::size_t old_size = buffer_.size();
    buffer_.resize(old_size + kReadBytes);
    const ssize_t got = read(fd_, buffer_.data() + old_size, kReadBytes);
    buffer_.resize(old_size + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got < 0 && errno != EINTR && errno != EAGAIN) return Event::failed;
    if (got == 0) at_end_ = true;
  }
}

bool LineReader::take_line() {
  const std::size_t end = buffer_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return false;
  }
  text_ = without_carriage_return(std::string_view(buffer_).substr(begin_, end - begin_));
  bytes_taken_ += end + 1 - begin_;
  begin_ = scanned_ = end + 1;
  ++number_;
  return true;
}

// A last line without a line end counts too.
LineReader::Event LineReader::take_last_line() {
  if (begin_ == buffer_.size() && !skipping_) return Event::end;
  ++number_;
  const bool too_long =
      std::exchange(skipping_, false) || buffer_.size() - begin_ > max_line_bytes_;
  if (!too_long) text_ = without_carriage_return(std::string_view(buffer_).substr(begin_));
  bytes_taken_ += buffer_.size() - begin_;
  begin_ = scanned_ = buffer_.size();
  return too_long ? Event::too_long : Event::line;
}

void LineReader::drop_used() {
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
}

}  // namespace reprise::cli
