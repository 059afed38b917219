// reprise_storage_floor: how often this disk can append and fdatasync, with nothing else around it.
// The floor under every durable reply, so that figures of different machines can be compared.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "clock.h"
#include "latency_histogram.h"
#include "load_error.h"
#include "own_cpu.h"

namespace reprise::bench {
namespace {

// A file that is gone when it is closed.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& folder) {
    std::string path = folder + "/storage-floor-XXXXXX";
    fd_ = mkostemp(path.data(), O_CLOEXEC);
    if (fd_ < 0) throw LoadError(fmt::format("{}: {}", path, std::strerror(errno)));
    unlink(path.c_str());
  }
  ~ScratchFile() { close(fd_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void append_and_sync(const std::string& data) {
    if (write(fd_, data.data(), data.size()) != static_cast<ssize_t>(data.size()) ||
        fdatasync(fd_) != 0) {
      throw LoadError(fmt::format("append: {}", std::strerror(errno)));
    }
  }

 private:
  int fd_;
};

std::string random_bytes(std::size_t count) {
  std::mt19937_64 random(42);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string measure(const std::string& folder, std::size_t append_bytes, double seconds) {
  ScratchFile file(folder);
  const std::string data = random_bytes(append_bytes);
  LatencyHistogram latency;
  const double cpu_before = own_cpu_seconds();
  const TimePoint started = Clock::now();
  TimePoint now = started;
  while (now - started < from_seconds(seconds)) {
    file.append_and_sync(data);
    const TimePoint after = Clock::now();
    latency.record(after - now);
    now = after;
  }
  const double rate = static_cast<double>(latency.count()) / to_seconds(now - started);
  return fmt::format(
      R"({{"append_bytes":{},"syncs_per_second":{:.1f},"bytes_per_second":{:.0f},)"
      R"("p50_us":{:.1f},"p99_us":{:.1f},"cpu_seconds":{:.3f},"wall_seconds":{:.4f}}})",
      append_bytes, rate, rate * static_cast<double>(append_bytes),
      to_microseconds(latency.percentile(0.5)), to_microseconds(latency.percentile(0.99)),
      own_cpu_seconds() - cpu_before, to_seconds(now - started));
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  std::string folder = ".";
  double seconds = 1;
  CLI::App app("Appends and syncs, 1 KiB and 64 KiB at a time; prints one line of JSON.");
  app.add_option("--dir", folder, "on the file system to measure");
  app.add_option("--seconds", seconds, "for each size");
  CLI11_PARSE(app, argc, argv);
  try {
    fmt::print("[{},{}]\n", reprise::bench::measure(folder, 1 << 10, seconds),
               reprise::bench::measure(folder, 64 << 10, seconds));
  } catch (const reprise::bench::LoadError& error) {
    fmt::print(stderr, "reprise_storage_floor: {}\n", error.what());
    return 1;
  }
  return 0;
}
