// BodySource: the jobs' bodies, and whether they come back as they went.
//
// A body is random bytes between two copies of its serial, a function of its stamp alone: so a
// second process can check what a first one pushed. Unlike PayloadSource's it is no text: the
// protocols here carry any bytes, CR LF among them, and nothing of it can be compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "payload_source.h"

namespace reprise::bench::peers {

class BodySource {
 public:
  // Throws LoadError when `body_bytes` is too small for a stamp.
  explicit BodySource(std::size_t body_bytes);

  std::size_t body_bytes() const { return body_bytes_; }
  void append(std::string& out, const Stamp& stamp) const;
  // Throws LoadError when it is not a body that append() writes.
  Stamp check(std::string_view body) const;

 private:
  std::string_view noise_of(std::uint64_t serial) const;

  std::size_t body_bytes_;
  std::size_t noise_bytes_ = 0;
  std::string pool_;
};

}  // namespace reprise::bench::peers
