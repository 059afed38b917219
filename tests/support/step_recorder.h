// A StepObserver that keeps what it hears, and processes found by what is in their environment.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "worker/step_runner.h"

namespace reprise::test {

class StepRecorder : public worker::StepObserver {
 public:
  void on_output(worker::StepStream stream, std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    (stream == worker::StepStream::out ? out_ : err_).append(bytes);
    changed_.notify_all();
  }
  void on_end(const worker::StepEnd& end) override {
    const std::lock_guard lock(mutex_);
    ++ends_;
    end_ = end;
    changed_.notify_all();
  }

  // Kind and code, as "exited 0", "signalled 9", "lost"; "" if it does not end.
  std::string wait(std::chrono::seconds patience = std::chrono::seconds(60)) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return end_.has_value(); })) return "";
    switch (end_->kind) {
      case worker::StepEnd::Kind::exited:
        return "exited " + std::to_string(end_->code);
      case worker::StepEnd::Kind::signalled:
        return "signalled " + std::to_string(end_->code);
      case worker::StepEnd::Kind::not_started:
        return "not started";
      case worker::StepEnd::Kind::lost:
        return "lost";
    }
    return "?";
  }
  bool wait_for_output(std::string_view text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return out_.find(text) != out_.npos; });
  }
  bool ended() { return ends() > 0; }
  int ends() {
    const std::lock_guard lock(mutex_);
    return ends_;
  }
  std::string out() {
    const std::lock_guard lock(mutex_);
    return out_;
  }
  std::string err() {
    const std::lock_guard lock(mutex_);
    return err_;
  }
  std::string detail() {
    const std::lock_guard lock(mutex_);
    return end_ ? end_->detail : "";
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string out_;
  std::string err_;
  std::optional<worker::StepEnd> end_;
  int ends_ = 0;
};

// "NAME=value", as no other process has it.
inline std::string make_mark() {
  static std::atomic<int> count = 0;
  return "STEP_MARK=" + std::to_string(getpid()) + "." + std::to_string(++count) + ".";
}

// Those that live and were started with this in their environment.
inline std::vector<pid_t> processes_with(std::string_view mark) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    std::ifstream file(entry.path() / "environ");
    std::ostringstream environment;
    environment << file.rdbuf();  // a process that ends meanwhile is an error, not an exception
    if (environment.str().find(mark) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

}  // namespace reprise::test
