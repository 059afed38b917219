#include "peers/body_source.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <random>

#include "load_error.h"

namespace reprise::bench::peers {
namespace {

// serial, due, noise, serial
constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kNoiseAt = 2 * kNumberBytes;
constexpr std::size_t kFrameBytes = 3 * kNumberBytes;
constexpr unsigned kPoolBits = 22;

void append_number(std::string& out, std::uint64_t number) {
  out.append(std::bit_cast<std::array<char, kNumberBytes>>(number).data(), kNumberBytes);
}

std::uint64_t number_at(std::string_view body, std::size_t at) {
  std::uint64_t number = 0;
  std::memcpy(&number, body.data() + at, kNumberBytes);
  return number;
}

}  // namespace

BodySource::BodySource(std::size_t body_bytes) : body_bytes_(body_bytes) {
  if (body_bytes < kFrameBytes) {
    throw LoadError(fmt::format("--body-bytes: at least {}", kFrameBytes));
  }
  noise_bytes_ = body_bytes - kFrameBytes;
  std::mt19937_64 random(42);
  while (pool_.size() < (std::size_t{1} << kPoolBits) + noise_bytes_) {
    append_number(pool_, random());
  }
}

std::string_view BodySource::noise_of(std::uint64_t serial) const {
  // The golden ratio spreads neighbours over the pool: their noise does not overlap.
  const std::uint64_t at = (serial * 0x9E3779B97F4A7C15ULL) >> (64 - kPoolBits);
  return std::string_view(pool_).substr(at, noise_bytes_);
}

void BodySource::append(std::string& out, const Stamp& stamp) const {
  append_number(out, stamp.serial);
  append_number(out, static_cast<std::uint64_t>(stamp.due.time_since_epoch().count()));
  out += noise_of(stamp.serial);
  append_number(out, stamp.serial);
}

Stamp BodySource::check(std::string_view body) const {
  if (body.size() != body_bytes_) {
    throw LoadError(fmt::format("a body of {} bytes came back", body.size()));
  }
  const std::uint64_t serial = number_at(body, 0);
  if (number_at(body, body.size() - kNumberBytes) != serial ||
      body.substr(kNoiseAt, noise_bytes_) != noise_of(serial)) {
    throw LoadError(fmt::format("the body of job {} came back changed", serial));
  }
  const auto due = static_cast<std::int64_t>(number_at(body, kNumberBytes));
  return {serial, TimePoint(Nanoseconds(due))};
}

}  // namespace reprise::bench::peers
