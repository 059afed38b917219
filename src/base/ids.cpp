#include "base/ids.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"

namespace reprise {
namespace {

constexpr std::uint64_t kFirstFactor = 0xBF58476D1CE4E5B9ULL;
constexpr std::uint64_t kSecondFactor = 0x94D049BB133111EBULL;

// Every odd number has an inverse modulo 2^64. Newton's step doubles the bits that are right, and
// an odd number is its own inverse in the lowest three: 3, 6, 12, 24, 48, 96.
constexpr std::uint64_t inverse_factor(std::uint64_t odd) {
  std::uint64_t inverse = odd;
  for (int step = 0; step < 5; ++step) inverse *= 2 - odd * inverse;
  return inverse;
}
static_assert(kFirstFactor * inverse_factor(kFirstFactor) == 1);
static_assert(kSecondFactor * inverse_factor(kSecondFactor) == 1);

// The inverse of x ^ (x >> shift) for a shift above 21, where the third term has left the word.
constexpr std::uint64_t undo_xor_shift(std::uint64_t value, int shift) {
  return value ^ (value >> shift) ^ (value >> (2 * shift));
}

// Inline twins of scramble() and unscramble() for the loops that call them millions of times.
constexpr std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * kFirstFactor;
  value = (value ^ (value >> 27)) * kSecondFactor;
  return value ^ (value >> 31);
}

constexpr std::uint64_t unmix(std::uint64_t value) {
  value = undo_xor_shift(value, 31) * inverse_factor(kSecondFactor);
  value = undo_xor_shift(value, 27) * inverse_factor(kFirstFactor);
  return undo_xor_shift(value, 30);
}

constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr int kBitsPerChar = 5;
constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  const auto set = [&](char upper, std::uint8_t digit) {
    digits[static_cast<unsigned char>(upper)] = digit;
    if (upper >= 'A') digits[static_cast<unsigned char>(upper - 'A' + 'a')] = digit;
  };
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    set(kAlphabet[i], static_cast<std::uint8_t>(i));
  set('O', 0);
  set('I', 1);
  set('L', 1);
  return digits;
}
constexpr std::array<std::uint8_t, 256> kDigits = make_digits();

std::uint8_t digit_of(char c) { return kDigits[static_cast<unsigned char>(c)]; }

// The number that up to 13 characters spell. nullopt: a bad character, or more than 64 bits.
std::optional<std::uint64_t> decode_number(std::string_view text) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint8_t digit = digit_of(text[i]);
    if (digit == kNoDigit) return std::nullopt;
    // 13 characters are 65 bits: the first carries four.
    if (i == 0 && digit > 15) return std::nullopt;
    number = (number << kBitsPerChar) | digit;
  }
  return number;
}

std::vector<Seq> scan_seqs(std::uint64_t known, int unknown_bits, Seq seq_end, std::size_t limit) {
  std::vector<Seq> found;
  for (Seq seq = 1; seq < seq_end && found.size() < limit; ++seq) {
    if (mix(seq) >> unknown_bits == known) found.push_back(seq);
  }
  return found;
}

std::vector<Seq> scan_ids(std::uint64_t known, int unknown_bits, Seq seq_end, std::size_t limit) {
  std::vector<Seq> found;
  const std::uint64_t first = known << unknown_bits;
  const std::uint64_t count = std::uint64_t{1} << unknown_bits;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Seq seq = unmix(first + i);
    if (seq >= 1 && seq < seq_end) found.push_back(seq);
  }
  std::ranges::sort(found);
  if (found.size() > limit) found.resize(limit);
  return found;
}

constexpr std::size_t kTokenBytes = sizeof(QueueNumber) + sizeof(Seq) + sizeof(std::uint64_t);
constexpr std::size_t kTokenChars = kTokenBytes * 8 / kBitsPerChar;
static_assert(kTokenChars == 32 && kTokenBytes * 8 % kBitsPerChar == 0, "no padding needed");

std::string base32_encode(std::string_view bytes) {
  std::string text;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char byte : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(byte);
    for (held += 8; held >= kBitsPerChar; held -= kBitsPerChar) {
      text.push_back(kAlphabet[(bits >> (held - kBitsPerChar)) & 31]);
    }
  }
  return text;
}

std::optional<std::string> base32_decode(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::uint8_t digit = digit_of(c);
    if (digit == kNoDigit) return std::nullopt;
    bits = (bits << kBitsPerChar) | digit;
    held += kBitsPerChar;
    if (held >= 8) {
      held -= 8;
      bytes.push_back(static_cast<char>(bits >> held));
    }
  }
  return bytes;
}

}  // namespace

std::uint64_t scramble(std::uint64_t value) { return mix(value); }

std::uint64_t unscramble(std::uint64_t value) { return unmix(value); }

std::string encode_job_id(Seq seq) {
  std::string text(kJobIdChars, '0');
  std::uint64_t rest = mix(seq);
  for (auto c = text.rbegin(); c != text.rend(); ++c) {
    *c = kAlphabet[rest & 31];
    rest >>= kBitsPerChar;
  }
  return text;
}

std::optional<Seq> decode_job_id(std::string_view text) {
  if (text.size() != kJobIdChars) return std::nullopt;
  const auto number = decode_number(text);
  if (!number) return std::nullopt;
  return unmix(*number);
}

std::optional<std::vector<Seq>> seqs_with_id_prefix(std::string_view prefix, Seq seq_end,
                                                    std::size_t limit) {
  if (prefix.empty() || prefix.size() > kJobIdChars) return std::nullopt;
  const auto known = decode_number(prefix);
  if (!known) return std::nullopt;
  const int unknown_bits = static_cast<int>(kJobIdChars - prefix.size()) * kBitsPerChar;
  const bool fewer_ids = (std::uint64_t{1} << unknown_bits) < seq_end;
  return fewer_ids ? scan_ids(*known, unknown_bits, seq_end, limit)
                   : scan_seqs(*known, unknown_bits, seq_end, limit);
}

std::string encode_lease_token(const LeaseToken& token) {
  std::string bytes;
  append_big_endian(bytes, token.job.queue);
  append_big_endian(bytes, token.job.seq);
  append_big_endian(bytes, token.nonce);
  return base32_encode(bytes);
}

std::optional<LeaseToken> decode_lease_token(std::string_view text) {
  if (text.size() != kTokenChars) return std::nullopt;
  const auto bytes = base32_decode(text);
  if (!bytes) return std::nullopt;
  const char* next = bytes->data();
  LeaseToken token;
  token.job.queue = read_big_endian<QueueNumber>(next);
  next += sizeof(QueueNumber);
  token.job.seq = read_big_endian<Seq>(next);
  next += sizeof(Seq);
  token.nonce = read_big_endian<std::uint64_t>(next);
  return token;
}

}  // namespace reprise
