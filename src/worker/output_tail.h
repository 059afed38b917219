// OutputTail: the end of a stream, for the text of an error.
//
// It keeps at most twice `max_bytes`, however long the stream is. Threads: one owner, no locks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::worker {

class OutputTail {
 public:
  static constexpr std::size_t kMaxBytes = 4096;
  static constexpr std::size_t kMaxLines = 20;

  explicit OutputTail(std::size_t max_bytes = kMaxBytes, std::size_t max_lines = kMaxLines)
      : max_bytes_(max_bytes), max_lines_(max_lines) {}

  void append(std::string_view bytes);

  // The last lines, at most max_lines of them and max_bytes in all, without the line ends after
  // the last one. It begins with a whole line, or a whole character where a line is longer than
  // that. Valid UTF-8: '?' stands for each byte that is in no character. Control characters stay.
  std::string text() const;

 private:
  std::size_t max_bytes_;
  std::size_t max_lines_;
  std::string kept_;
  bool cut_ = false;  // something was in front of kept_
};

}  // namespace reprise::worker
