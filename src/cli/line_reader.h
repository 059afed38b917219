// LineReader: lines of a file or pipe of any size, in bounded memory.
// A line longer than the limit is skipped and reported as such. Tells when nothing arrives for a
// while, so that a live pipe's lines need not wait for a batch to fill.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::cli {

class LineReader {
 public:
  enum class Event {
    line,
    too_long,  // a line beyond the limit; text() is empty
    idle,      // nothing has arrived for kIdle; ask again
    end,
    failed,  // errno says why
  };
  static constexpr int kIdleMs = 200;

  // Does not own `fd`.
  LineReader(int fd, std::size_t max_line_bytes) : fd_(fd), max_line_bytes_(max_line_bytes) {}

  Event next();
  // The latest line, without its end ("\n" or "\r\n"); valid until the next call.
  std::string_view text() const { return text_; }
  std::uint64_t number() const { return number_; }            // from 1
  std::uint64_t bytes_taken() const { return bytes_taken_; }  // up to the end of this line

 private:
  // True when the buffer holds a whole line, which then is text_.
  bool take_line();
  Event take_last_line();
  void drop_used();

  int fd_;
  std::size_t max_line_bytes_;
  std::string buffer_;
  std::size_t begin_ = 0;    // of the current line in buffer_
  std::size_t scanned_ = 0;  // no line end before this place
  bool skipping_ = false;    // inside a line that is too long
  bool at_end_ = false;
  std::string_view text_;
  std::uint64_t number_ = 0;
  std::uint64_t bytes_taken_ = 0;
};

}  // namespace reprise::cli
