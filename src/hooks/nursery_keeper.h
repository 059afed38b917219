// NurseryKeeper: has a nursery when one is needed, and another when that one is lost.
//
// Whoever wants a host is told about each: that it started, or that it did not. A nursery that
// ends or is silent for too long fails all that was asked of it; the next one is started after a
// short pause, so that one that cannot live does not keep a processor busy.
//
// Threads: one owner, which must be the thread that lives as long as the hosts shall
// (nursery_link.h).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "hooks/nursery_link.h"
#include "hooks/steady_time.h"

namespace reprise::hooks {

class NurseryKeeper {
 public:
  struct HostStarted {
    NurseryLink::Report report;
  };
  struct HostFailed {
    std::uint32_t host{};
    std::string why;
  };
  struct HostEnded {
    std::uint32_t host{};
    int wait_status{};
  };
  struct NurseryLost {  // and with it how its hosts end
    std::string why;
  };
  using Event = std::variant<HostStarted, HostFailed, HostEnded, NurseryLost>;

  // The control socket of the nursery is watched in `epoll_fd` under `tag`.
  NurseryKeeper(std::string program, int epoll_fd, std::uint64_t tag)
      : program_(std::move(program)), epoll_fd_(epoll_fd), tag_(tag) {}

  void want(std::uint32_t host) { unasked_.push_back(host); }
  // Does what is to be done and returns what has happened. To be called after want(), when the
  // control socket is readable, and at due().
  std::vector<Event> pump(Steady now);
  Steady due() const;  // Steady::max(): not by itself
  void close(std::chrono::milliseconds patience);

 private:
  struct Asked {
    std::uint32_t host{};
    Steady at{};
  };

  void receive(Steady now, std::vector<Event>& events);
  void ask(Steady now, std::vector<Event>& events);
  bool start(Steady now, std::vector<Event>& events);
  void lose(const std::string& why, Steady now, std::vector<Event>& events);
  void pause(Steady now);
  void forget_asked(std::uint32_t host);

  const std::string program_;
  const int epoll_fd_;
  const std::uint64_t tag_;
  std::unique_ptr<NurseryLink> nursery_;
  Steady started_at_{};
  Steady not_before_{};
  Steady::duration pause_{};
  std::deque<std::uint32_t> unasked_;
  std::deque<Asked> asked_;  // oldest first
};

}  // namespace reprise::hooks
