#include "server/wrong_tokens.h"

#include <algorithm>

namespace reprise::server {

// No network looks like an IPv4 address here: addresses below 1::/16 are reserved.
Peer peer_of(const std::array<unsigned char, 16>& address) {
  constexpr std::array<unsigned char, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  const bool is_mapped = std::equal(kMapped.begin(), kMapped.end(), address.begin());
  const auto* const begin = is_mapped ? address.begin() + kMapped.size() : address.begin();
  const auto* const end = is_mapped ? address.end() : address.begin() + 8;
  Peer peer = 0;
  for (const auto* byte = begin; byte != end; ++byte) peer = (peer << 8) | *byte;
  return peer;
}

bool WrongTokens::must_wait(Peer peer, Time now) const {
  if (peers() == 0) return false;
  const std::lock_guard lock(mutex_);
  const auto found = clean_at_.find(peer);
  return found != clean_at_.end() && found->second > now + (kAtOnce - 1) * kEvery;
}

void WrongTokens::count(Peer peer, Time now) {
  const std::lock_guard lock(mutex_);
  if (clean_at_.size() >= kMaxPeers && !clean_at_.contains(peer)) make_room(now);
  Time& clean_at = clean_at_.try_emplace(peer, now).first->second;
  clean_at = std::max(clean_at, now) + kEvery;
  size_.store(clean_at_.size(), std::memory_order_relaxed);
}

void WrongTokens::make_room(Time now) {
  absl::erase_if(clean_at_, [&](const auto& entry) { return entry.second <= now; });
  if (clean_at_.size() < kMaxPeers) return;
  clean_at_.erase(
      std::ranges::min_element(clean_at_, {}, [](const auto& entry) { return entry.second; }));
}

}  // namespace reprise::server
