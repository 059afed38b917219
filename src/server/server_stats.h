// ServerStats: what the HTTP server counts about itself.
// Bounded: one counter per route and status, whatever clients send.
// Threads: any; all counters are atomic and independent of each other.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "server/response.h"

namespace reprise::server {

inline constexpr std::size_t kMaxRoutes = 64;
// The counter of requests that fit no route, or never got so far.
inline constexpr std::size_t kNoRoute = kMaxRoutes;

// What became of events that came to be ingested.
struct IngestCounts {
  std::uint64_t accepted = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t rejected = 0;
  std::uint64_t deferred = 0;
  friend bool operator==(const IngestCounts&, const IngestCounts&) = default;
};

class ServerStats {
 public:
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> connections_refused{0};
  // Memory in large input buffers and in replies that wait for slow readers.
  std::atomic<std::uint64_t> buffered_bytes{0};
  std::atomic<bool> shutting_down{false};

  void count_request(std::size_t route, int http_status) {
    counters_[route][status_index(http_status)].fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t requests(std::size_t route, int http_status) const {
    return counters_[route][status_index(http_status)].load(std::memory_order_relaxed);
  }

  void count_ingested(const IngestCounts& counts) {
    accepted_.fetch_add(counts.accepted, std::memory_order_relaxed);
    duplicates_.fetch_add(counts.duplicates, std::memory_order_relaxed);
    rejected_.fetch_add(counts.rejected, std::memory_order_relaxed);
    deferred_.fetch_add(counts.deferred, std::memory_order_relaxed);
  }
  IngestCounts ingested() const {
    return {.accepted = accepted_.load(std::memory_order_relaxed),
            .duplicates = duplicates_.load(std::memory_order_relaxed),
            .rejected = rejected_.load(std::memory_order_relaxed),
            .deferred = deferred_.load(std::memory_order_relaxed)};
  }

 private:
  static constexpr std::size_t kStatusCount = std::size(kHttpStatuses);

  // An unlisted status cannot be sent; it would count as the last one.
  static std::size_t status_index(int http_status) {
    const auto* found = std::ranges::find(kHttpStatuses, http_status);
    return std::min<std::size_t>(static_cast<std::size_t>(found - std::begin(kHttpStatuses)),
                                 kStatusCount - 1);
  }

  std::array<std::array<std::atomic<std::uint64_t>, kStatusCount>, kMaxRoutes + 1> counters_{};
  // Of events that came to be ingested.
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> duplicates_{0};
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<std::uint64_t> deferred_{0};
};

}  // namespace reprise::server
