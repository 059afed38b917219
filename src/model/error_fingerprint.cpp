#include "model/error_fingerprint.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace reprise {
namespace {

constexpr std::string_view kNumber = "<n>";
constexpr std::string_view kId = "<id>";
constexpr std::string_view kQuoted = "<\u2026>";
constexpr std::string_view kBadByte = "\uFFFD";

// What a byte can be part of; one look at a table answers for all.
enum Class : std::uint8_t {
  kDigit = 1,
  kHexLetter = 2,
  kLetter = 4,     // any, hex ones too
  kCrockford = 8,  // of our ids and of ULIDs: digits and upper case without I, L, O, U
  kSpace = 16,     // and control characters
  kBeyondAscii = 32,
};

constexpr std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (unsigned c = 0; c < 256; ++c) {
    const bool digit = c >= '0' && c <= '9';
    const bool upper = c >= 'A' && c <= 'Z';
    const bool lower = c >= 'a' && c <= 'z';
    const bool look_alike = c == 'I' || c == 'L' || c == 'O' || c == 'U';
    unsigned bits = 0;
    if (digit) bits |= kDigit;
    if ((c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f')) bits |= kHexLetter;
    if (upper || lower) bits |= kLetter;
    if (digit || (upper && !look_alike)) bits |= kCrockford;
    if (c <= ' ' || c == 0x7F) bits |= kSpace;
    if (c >= 0x80) bits |= kBeyondAscii;
    classes[c] = static_cast<std::uint8_t>(bits);
  }
  return classes;
}
constexpr auto kClasses = make_classes();

bool is(char c, unsigned classes) {
  return (kClasses[static_cast<unsigned char>(c)] & classes) != 0;
}
constexpr unsigned kHex = kDigit | kHexLetter;
constexpr unsigned kAlnum = kDigit | kLetter;
// What makes an apostrophe beside it part of a word.
constexpr unsigned kWord = kAlnum | kBeyondAscii;

bool all(std::string_view text, unsigned classes) {
  return std::ranges::all_of(text, [classes](char c) { return is(c, classes); });
}

// How often letters give way to digits or digits to letters.
std::size_t changes(std::string_view run) {
  std::size_t count = 0;
  for (std::size_t i = 1; i < run.size(); ++i)
    count += is(run[i], kDigit) != is(run[i - 1], kDigit);
  return count;
}

// Does `text` begin with a UUID? Its first 8 characters are known to be a run of their own.
bool starts_with_uuid(std::string_view text) {
  constexpr std::string_view kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() < kShape.size()) return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] == '-' ? text[i] != '-' : !is(text[i], kHex)) return false;
  }
  return text.size() == kShape.size() || !is(text[kShape.size()], kAlnum);
}
constexpr std::size_t kUuidBytes = 36;

// Is the whole run of letters and digits an id? Of those with digits only, none is: "12345678"
// and "99" microseconds must be the same.
bool is_id(std::string_view run) {
  constexpr std::size_t kHexIdBytes = 8;
  constexpr std::size_t kLongIdBytes = 16;
  constexpr std::size_t kJobIdBytes = 13;
  constexpr std::size_t kUlidBytes = 26;
  if (run.size() < 3) return false;
  if (run[0] == '0' && (run[1] == 'x' || run[1] == 'X') && all(run.substr(2), kHex)) return true;
  if (run.size() < kHexIdBytes) return false;
  const std::size_t changed = changes(run);
  if (changed == 0) return false;
  if (all(run, kHex)) return true;
  if (run.size() >= kLongIdBytes && changed >= 3) return true;
  const bool id_of_ours = run.size() == kJobIdBytes && is(run[0], kHex);
  const bool ulid = run.size() == kUlidBytes && run[0] <= '7';
  return (id_of_ours || ulid) && all(run, kCrockford);
}

struct Quotes {
  std::string_view open;
  std::string_view close;
};
constexpr auto kQuotes = std::to_array<Quotes>({{"'", "'"},
                                                {"\"", "\""},
                                                {"`", "`"},
                                                {"\u2018", "\u2019"},
                                                {"\u201C", "\u201D"},
                                                {"\u00AB", "\u00BB"}});

// Reads an error front to back and writes its normal form.
class Normalizer {
 public:
  explicit Normalizer(std::string_view in) : in_(in) { out_.reserve(kNormalErrorChars + 56); }

  std::string run() {
    while (at_ < in_.size() && !full_) step();
    return std::move(out_);
  }

 private:
  void step();
  void take_space();
  void take_run();
  void take_number();
  void take_character();
  bool take_quoted();
  bool take_sign();

  std::size_t end_of(unsigned classes, std::size_t from) const {
    while (from < in_.size() && is(in_[from], classes)) ++from;
    return from;
  }
  bool next_is(std::size_t at, unsigned classes) const {
    return at < in_.size() && is(in_[at], classes);
  }
  bool may_open_quotes() const;
  std::size_t find_close(std::size_t kind, std::size_t from);
  // All or nothing: a piece that does not fit ends the normal form.
  void put(std::string_view piece, std::size_t chars);
  void put_letters(std::string_view letters);

  std::string_view in_;
  std::size_t at_ = 0;
  std::string out_;
  std::size_t chars_ = 0;
  bool space_waits_ = false;
  bool full_ = false;
  // Which quotes are known to be closed nowhere in the rest: looked for once, not at each.
  std::array<bool, kQuotes.size()> never_closed_{};
};

void Normalizer::put(std::string_view piece, std::size_t chars) {
  const std::size_t space = space_waits_ && chars_ > 0 ? 1 : 0;
  if (chars_ + space + chars > kNormalErrorChars) {
    full_ = true;
    return;
  }
  if (space != 0) out_.push_back(' ');
  out_.append(piece);
  chars_ += space + chars;
  space_waits_ = false;
}

void Normalizer::step() {
  const char c = in_[at_];
  if (is(c, kAlnum)) return take_run();
  if (is(c, kSpace)) return take_space();
  if ((c == '-' || c == '+') && take_sign()) return;
  if ((c == '\'' || c == '"' || c == '`' || is(c, kBeyondAscii)) && take_quoted()) return;
  take_character();
}

void Normalizer::take_space() {
  at_ = end_of(kSpace, at_);
  space_waits_ = true;
}

void Normalizer::take_character() {
  const std::string_view rest = in_.substr(at_);
  const std::size_t bytes = is(rest[0], kBeyondAscii) ? utf8_character_bytes(rest) : 1;
  put(bytes == 0 ? kBadByte : rest.substr(0, bytes), 1);
  at_ += std::max<std::size_t>(bytes, 1);
}

// Letters and digits in a row: an id, or a word with numbers in it.
void Normalizer::take_run() {
  const std::size_t end = end_of(kAlnum, at_);
  const std::string_view run = in_.substr(at_, end - at_);
  if (run.size() == 8 && starts_with_uuid(in_.substr(at_))) {
    at_ += kUuidBytes;
    return put(kId, kId.size());
  }
  if (is_id(run)) {
    at_ = end;
    return put(kId, kId.size());
  }
  // A number may reach beyond the run ("1.5"); what comes then is looked at as a run of its own.
  while (at_ < end && !full_) {
    if (is(in_[at_], kDigit)) {
      take_number();
      continue;
    }
    put_letters(in_.substr(at_, end_of(kLetter, at_) - at_));
  }
}

// As many as fit: one endless word must not leave nothing.
void Normalizer::put_letters(std::string_view letters) {
  const std::size_t space = space_waits_ && chars_ > 0 ? 1 : 0;
  const std::size_t room = kNormalErrorChars - std::min(chars_ + space, kNormalErrorChars);
  const std::string_view fitting = letters.substr(0, room);
  if (!fitting.empty()) put(fitting, fitting.size());
  full_ = full_ || fitting.size() < letters.size();
  at_ += letters.size();
}

void Normalizer::take_number() {
  at_ = end_of(kDigit, at_);
  while (at_ < in_.size() && in_[at_] == '.' && next_is(at_ + 1, kDigit)) {
    at_ = end_of(kDigit, at_ + 1);
  }
  if (at_ < in_.size() && (in_[at_] == 'e' || in_[at_] == 'E')) {
    std::size_t exponent = at_ + 1;
    if (exponent < in_.size() && (in_[exponent] == '-' || in_[exponent] == '+')) ++exponent;
    const std::size_t end = end_of(kDigit, exponent);
    if (end > exponent && !next_is(end, kLetter)) at_ = end;
  }
  put(kNumber, kNumber.size());
}

// A sign belongs to its number where it cannot be a dash.
bool Normalizer::take_sign() {
  if (!next_is(at_ + 1, kDigit)) return false;
  constexpr std::string_view kBeforeSign = "([{<>=,:;";
  const char before = at_ > 0 ? in_[at_ - 1] : ' ';
  if (!is(before, kSpace) && kBeforeSign.find(before) == kBeforeSign.npos) return false;
  ++at_;
  take_run();
  return true;
}

// Not at the end of a word: there it is an apostrophe, or inches. b'…' and its like are quotes.
// Typographic ones say by themselves that they open.
bool Normalizer::may_open_quotes() const {
  const char c = in_[at_];
  if (at_ == 0 || is(c, kBeyondAscii)) return true;
  if (!is(in_[at_ - 1], c == '\'' ? kWord : kAlnum)) return true;
  constexpr std::string_view kPrefixes = "bru";
  const bool prefix = kPrefixes.find(in_[at_ - 1]) != kPrefixes.npos;
  return prefix && (at_ == 1 || !is(in_[at_ - 2], kWord));
}

// Where the closing quotes begin, or npos.
std::size_t Normalizer::find_close(std::size_t kind, std::size_t from) {
  const std::string_view close = kQuotes[kind].close;
  const bool apostrophe = close == "'" || close == "\u2019";
  for (std::size_t i = from; i < in_.size(); ++i) {
    if (in_[i] == '\\') {
      ++i;
      continue;
    }
    if (in_[i] != close[0] || !in_.substr(i).starts_with(close)) continue;
    if (!apostrophe || !next_is(i + close.size(), kWord)) return i;
  }
  never_closed_[kind] = true;
  return in_.npos;
}

bool Normalizer::take_quoted() {
  const std::string_view rest = in_.substr(at_);
  const auto* quotes =
      std::ranges::find_if(kQuotes, [rest](const Quotes& q) { return rest.starts_with(q.open); });
  if (quotes == kQuotes.end() || !may_open_quotes()) return false;
  const auto kind = static_cast<std::size_t>(quotes - kQuotes.begin());
  if (never_closed_[kind]) return false;
  const std::size_t close = find_close(kind, at_ + quotes->open.size());
  if (close == in_.npos) return false;
  at_ = close + quotes->close.size();
  constexpr std::size_t kQuotedChars = 5;  // with the quotes
  std::string piece(quotes->open);
  put(piece.append(kQuoted).append(quotes->close), kQuotedChars);
  return true;
}

constexpr std::uint64_t kFnvOffset = 0xCBF29CE484222325;
constexpr std::uint64_t kFnvPrime = 0x100000001B3;

std::uint64_t fnv1a(std::uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * kFnvPrime;
  return hash;
}

constexpr std::size_t kFingerprintChars = 16;

}  // namespace

std::string normalize_error(std::string_view error) { return Normalizer(error).run(); }

std::uint64_t error_fingerprint(std::string_view error, std::string_view error_type) {
  const std::uint64_t of_text = fnv1a(kFnvOffset, normalize_error(error));
  // No normal form holds a zero byte, so text and type cannot run into each other.
  return fnv1a(fnv1a(of_text, std::string_view("\0", 1)), error_type);
}

std::string format_fingerprint(std::uint64_t fingerprint) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text(kFingerprintChars, '0');
  for (auto c = text.rbegin(); c != text.rend(); ++c, fingerprint >>= 4) {
    *c = kHexDigits[fingerprint & 15];
  }
  return text;
}

std::optional<std::uint64_t> parse_fingerprint(std::string_view text) {
  if (text.size() != kFingerprintChars || !all(text, kHex)) return std::nullopt;
  std::uint64_t fingerprint = 0;
  std::from_chars(text.data(), text.data() + text.size(), fingerprint, 16);
  return fingerprint;
}

}  // namespace reprise
