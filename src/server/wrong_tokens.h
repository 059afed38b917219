// WrongTokens: who has offered wrong access tokens, so that guessing is slow. An address may be
// wrong kAtOnce times in a row and once every kEvery after that; while it has used that up its
// tokens are not even looked at, right ones neither, or the limit would limit nothing. Other
// addresses are not concerned.
//
// Bounded: at most kMaxPeers addresses. Beyond that the one that has the least to answer for is
// forgotten. The addresses of one IPv6 network (/64) count as one: whoever has one has all of them.
// Threads: any. Time: never read here.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace reprise::server {

// Who an address counts as: an IPv4 address, or the network of an IPv6 one.
using Peer = std::uint64_t;
// `address` is one of IPv6, those of IPv4 mapped into it (::ffff:10.0.0.1).
Peer peer_of(const std::array<unsigned char, 16>& address);

class WrongTokens {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr int kAtOnce = 30;
  static constexpr std::chrono::seconds kEvery{1};
  static constexpr std::size_t kMaxPeers = 4096;

  // Whether tokens of this address are not to be looked at now.
  bool must_wait(Peer peer, Time now) const;
  void count(Peer peer, Time now);

  std::size_t peers() const { return size_.load(std::memory_order_relaxed); }

 private:
  void make_room(Time now);

  mutable std::mutex mutex_;
  // When an address has lived down all it did: each wrong token moves that kEvery further.
  // Protected by mutex_.
  absl::flat_hash_map<Peer, Time> clean_at_;
  // Of clean_at_, so that a server that nobody attacks takes no lock.
  std::atomic<std::size_t> size_{0};
};

}  // namespace reprise::server
