// PayloadSource: the jobs' payloads, and whether they come back as they went.
//
// A payload is a JSON object of exactly `payload_bytes` bytes, a function of its stamp alone: so a
// second process can check what a first one pushed. Their texts are random and differ from job to
// job, since a store may compress neighbours that look alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "clock.h"

namespace reprise::bench {

struct Stamp {
  std::uint64_t serial{};  // which job, counted from 0 in each queue
  TimePoint due{};         // when its push was due; of this process's clock
};

class PayloadSource {
 public:
  static constexpr std::string_view kOpening = R"({"serial":")";

  // Throws LoadError when `payload_bytes` is too small for a stamp.
  explicit PayloadSource(std::size_t payload_bytes);

  std::size_t payload_bytes() const { return payload_bytes_; }
  void append(std::string& out, const Stamp& stamp) const;
  // nullopt: not a payload that append() writes.
  std::optional<Stamp> check(std::string_view payload) const;

 private:
  std::string_view text_of(std::uint64_t serial) const;

  std::size_t payload_bytes_;
  std::size_t text_bytes_ = 0;
  std::string pool_;  // random characters that JSON need not escape
};

}  // namespace reprise::bench
