// Ids: how numbers become the text that people see.
// A job is a u64 `seq` inside; outside it is scramble(seq) in 13 characters of Crockford base32.
// scramble() is a bijection (splitmix64's finaliser), so an id decodes without an index, and a
// prefix is resolved by enumeration instead of by a search through storage.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise {

using Seq = std::uint64_t;          // a job, unique in one server; never reused
using QueueNumber = std::uint32_t;  // a queue, unique in one server; never reused

// Which job: what every stored key begins with.
struct JobKey {
  QueueNumber queue{};
  Seq seq{};
  friend auto operator<=>(const JobKey&, const JobKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const JobKey& key) {
    return H::combine(std::move(h), key.queue, key.seq);
  }
};

std::uint64_t scramble(std::uint64_t value);
std::uint64_t unscramble(std::uint64_t value);

// For hash tables of absl that are asked for one job after another in about the order of their
// seqs: sixteen neighbours stand side by side, so that they share lines of the processor's cache.
// Blocks of them are scattered, whatever seqs a queue has.
struct NeighbourHash {
  std::size_t operator()(JobKey key) const {
    constexpr std::uint64_t kBlock = 16;  // what the table looks at in one step
    constexpr int kTagBits = 7;           // the lowest; the place in the table is in those above
    constexpr std::uint64_t kTagMask = (std::uint64_t{1} << kTagBits) - 1;
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // odd, with its bits well mixed
    // One multiplication: a table that is in the processor's cache must not pay for the others.
    std::uint64_t block = ((std::uint64_t{key.queue} << 44) ^ (key.seq / kBlock)) * kSpread;
    block ^= block >> 32;
    const std::uint64_t place = (block & ~(kBlock - 1)) | (key.seq % kBlock);
    return place << kTagBits | ((block >> 48 ^ key.seq) & kTagMask);
  }
};

inline constexpr std::size_t kJobIdChars = 13;
inline constexpr std::size_t kShownIdChars = 8;

std::string encode_job_id(Seq seq);
// Takes any case and Crockford's look-alikes (O=0, I=L=1). nullopt: not 13 such characters, or
// more than 64 bits.
std::optional<Seq> decode_job_id(std::string_view text);

// All seqs in [1, seq_end) whose id starts with `prefix`, ascending, at most `limit`. Costs at most
// min(seq_end, 2^(64 - known bits)) steps of a few nanoseconds and touches no storage.
// nullopt: no id starts so: `prefix` is empty, too long, or has a character no id has there.
std::optional<std::vector<Seq>> seqs_with_id_prefix(std::string_view prefix, Seq seq_end,
                                                    std::size_t limit);

// A lease as the client holds it: which job, and the secret that fences it. 32 characters.
struct LeaseToken {
  JobKey job;
  std::uint64_t nonce{};
  friend bool operator==(const LeaseToken&, const LeaseToken&) = default;
};

std::string encode_lease_token(const LeaseToken& token);
std::optional<LeaseToken> decode_lease_token(std::string_view text);

}  // namespace reprise
