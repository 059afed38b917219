#include "cli/line_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::cli {
namespace {

using Event = LineReader::Event;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~Pipe() {
    close(ends_[0]);
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int fd() const { return ends_[0]; }
  void write_all(std::string_view text) {
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close_write() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// Lines as "number:text", "number!" for one that was too long.
std::vector<std::string> read_all(std::string_view text, std::size_t max_line_bytes) {
  Pipe pipe;
  std::jthread writer([&] {
    pipe.write_all(text);
    pipe.close_write();
  });
  LineReader reader(pipe.fd(), max_line_bytes);
  std::vector<std::string> lines;
  while (true) {
    const Event event = reader.next();
    if (event == Event::end) return lines;
    if (event == Event::line) {
      lines.push_back(std::to_string(reader.number()) + ":" + std::string(reader.text()));
    }
    if (event == Event::too_long) lines.push_back(std::to_string(reader.number()) + "!");
  }
}

TEST(LineReader, GivesLinesAndTheirNumbers) {
  EXPECT_EQ(read_all("a\n\nb\r\nc", 100), (std::vector<std::string>{"1:a", "2:", "3:b", "4:c"}));
  EXPECT_TRUE(read_all("", 100).empty());
}

TEST(LineReader, SkipsALineThatIsTooLong) {
  const std::string huge(300'000, 'x');
  EXPECT_EQ(read_all("a\n" + huge + "\nb\n" + huge, 1000),
            (std::vector<std::string>{"1:a", "2!", "3:b", "4!"}));
  EXPECT_EQ(read_all("12345\n1234\n", 4), (std::vector<std::string>{"1!", "2:1234"}));
}

TEST(LineReader, LinesMayBeLongerThanOneRead) {
  const std::string longish(200'000, 'y');
  EXPECT_EQ(read_all(longish + "\n" + longish, 1 << 20),
            (std::vector<std::string>{"1:" + longish, "2:" + longish}));
}

TEST(LineReader, TellsWhenNothingArrives) {
  Pipe pipe;
  pipe.write_all("a\nhalf");
  LineReader reader(pipe.fd(), 100);
  EXPECT_EQ(reader.next(), Event::line);
  EXPECT_EQ(reader.next(), Event::idle);
  pipe.write_all(" line\n");
  EXPECT_EQ(reader.next(), Event::line);
  EXPECT_EQ(reader.text(), "half line");
  EXPECT_EQ(reader.bytes_taken(), 12U);
}

TEST(LineReader, ReportsAFailure) {
  const int folder = open("/", O_RDONLY | O_DIRECTORY);
  LineReader reader(folder, 100);
  EXPECT_EQ(reader.next(), Event::failed);
  close(folder);
}

}  // namespace
}  // namespace reprise::cli
