#include "server/beanstalk_parser.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <utility>

#include "model/limits.h"

namespace reprise::server {
namespace {

using std::chrono::seconds;

constexpr std::size_t kEndBytes = 2;  // CR LF

struct VerbRow {
  std::string_view prefix;
  BeanstalkVerb verb;
  bool is_whole_line;  // nothing may follow
};

// The first prefix that fits decides, as in beanstalkd; so "reserve-with-timeout" without a number
// is a reserve with something after it. The most frequent come first where order allows.
constexpr std::array kVerbs = {
    VerbRow{"put ", BeanstalkVerb::put, false},
    VerbRow{"delete ", BeanstalkVerb::remove, false},
    VerbRow{"reserve-with-timeout ", BeanstalkVerb::reserve_with_timeout, false},
    VerbRow{"reserve-job ", BeanstalkVerb::reserve_job, false},
    VerbRow{"reserve", BeanstalkVerb::reserve, true},
    VerbRow{"release ", BeanstalkVerb::release, false},
    VerbRow{"touch ", BeanstalkVerb::touch, false},
    VerbRow{"bury ", BeanstalkVerb::bury, false},
    VerbRow{"fail ", BeanstalkVerb::fail, false},
    VerbRow{"use ", BeanstalkVerb::use, false},
    VerbRow{"watch ", BeanstalkVerb::watch, false},
    VerbRow{"ignore ", BeanstalkVerb::ignore, false},
    VerbRow{"peek ", BeanstalkVerb::peek, false},
    VerbRow{"peek-ready", BeanstalkVerb::peek_ready, true},
    VerbRow{"peek-delayed", BeanstalkVerb::peek_delayed, true},
    VerbRow{"peek-buried", BeanstalkVerb::peek_buried, true},
    VerbRow{"kick ", BeanstalkVerb::kick, false},
    VerbRow{"kick-job ", BeanstalkVerb::kick_job, false},
    VerbRow{"stats-job ", BeanstalkVerb::stats_job, false},
    VerbRow{"stats-tube ", BeanstalkVerb::stats_tube, false},
    VerbRow{"stats", BeanstalkVerb::stats, true},
    VerbRow{"list-tubes-watched", BeanstalkVerb::list_tubes_watched, true},
    VerbRow{"list-tube-used", BeanstalkVerb::list_tube_used, true},
    VerbRow{"list-tubes", BeanstalkVerb::list_tubes, true},
    VerbRow{"quit", BeanstalkVerb::quit, false},
    VerbRow{"pause-tube", BeanstalkVerb::pause_tube, false},
};
static_assert(kVerbs.size() == kBeanstalkVerbCount);

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void skip_blanks(std::string_view& words) {
  words.remove_prefix(std::min(words.find_first_not_of(' '), words.size()));
}

// Digits at the front of `words`. False: there are none, or too many for `most`.
bool read_digits(std::string_view& words, std::uint64_t& number, std::uint64_t most) {
  if (words.empty() || !is_digit(words.front())) return false;
  std::uint64_t value = 0;
  while (!words.empty() && is_digit(words.front())) {
    const auto digit = static_cast<std::uint64_t>(words.front() - '0');
    if (value > (most - digit) / 10) return false;
    value = value * 10 + digit;
    words.remove_prefix(1);
  }
  number = value;
  return true;
}

bool read_u64(std::string_view& words, std::uint64_t& number) {
  skip_blanks(words);
  return read_digits(words, number, std::numeric_limits<std::uint64_t>::max());
}

bool read_u32(std::string_view& words, std::uint32_t& number) {
  skip_blanks(words);
  std::uint64_t value = 0;
  if (!read_digits(words, value, std::numeric_limits<std::uint32_t>::max())) return false;
  number = static_cast<std::uint32_t>(value);
  return true;
}

bool read_seconds(std::string_view& words, Duration& duration) {
  std::uint32_t value = 0;
  if (!read_u32(words, value)) return false;
  duration = seconds(value);
  return true;
}

enum class Lenient : std::uint8_t { number, negative, nothing, too_large };

// As strtol reads it: any blanks, a sign, digits, and no matter what follows.
Lenient read_leniently(std::string_view words, std::uint64_t& number) {
  words.remove_prefix(std::min(words.find_first_not_of(" \t\n\v\f\r"), words.size()));
  const bool minus = words.starts_with('-');
  if (minus || words.starts_with('+')) words.remove_prefix(1);
  if (words.empty() || !is_digit(words.front())) return Lenient::nothing;
  if (!read_digits(words, number, std::numeric_limits<std::uint64_t>::max())) {
    return Lenient::too_large;
  }
  return minus && number > 0 ? Lenient::negative : Lenient::number;
}

// A timeout that is no number is none, and a negative one waits for ever, as in beanstalkd.
bool read_timeout(std::string_view words, std::optional<Duration>& wait) {
  std::uint64_t number = 0;
  const Lenient read = read_leniently(words, number);
  if (number > std::numeric_limits<std::uint32_t>::max()) return false;
  switch (read) {
    case Lenient::too_large:
      return false;
    case Lenient::negative:
      wait = std::nullopt;
      return true;
    case Lenient::nothing:
      wait = Duration::zero();
      return true;
    case Lenient::number:
      wait = seconds(number);
      return true;
  }
  return false;
}

bool read_bound(std::string_view words, std::uint64_t& bound) {
  switch (read_leniently(words, bound)) {
    case Lenient::number:
      return true;
    case Lenient::negative:  // wraps around in beanstalkd, so it means all
      bound = std::numeric_limits<std::uint64_t>::max();
      return true;
    case Lenient::nothing:
    case Lenient::too_large:
      return false;
  }
  return false;
}

bool read_tube(std::string_view name, std::string_view& tube) {
  if (!check_name("queue", name)) return false;
  tube = name;
  return true;
}

bool read_pause(std::string_view words, BeanstalkRequest& out) {
  skip_blanks(words);
  const std::size_t end = words.find(' ');
  if (end == std::string_view::npos || !read_tube(words.substr(0, end), out.tube)) return false;
  words.remove_prefix(end);
  return read_seconds(words, out.delay) && words.empty();
}

// What follows the verb, of those without a body.
bool read_words(std::string_view words, BeanstalkRequest& out) {
  switch (out.verb) {
    case BeanstalkVerb::peek:
    case BeanstalkVerb::reserve_job:
    case BeanstalkVerb::remove:
    case BeanstalkVerb::touch:
    case BeanstalkVerb::kick_job:
    case BeanstalkVerb::stats_job:
      return read_u64(words, out.job) && words.empty();
    case BeanstalkVerb::release:
      return read_u64(words, out.job) && read_u32(words, out.priority) &&
             read_seconds(words, out.delay) && words.empty();
    case BeanstalkVerb::bury:
      return read_u64(words, out.job) && read_u32(words, out.priority) && words.empty();
    case BeanstalkVerb::use:
    case BeanstalkVerb::watch:
    case BeanstalkVerb::ignore:
    case BeanstalkVerb::stats_tube:
      return read_tube(words, out.tube);
    case BeanstalkVerb::pause_tube:
      return read_pause(words, out);
    case BeanstalkVerb::kick:
      return read_bound(words, out.count);
    case BeanstalkVerb::reserve_with_timeout:
      return read_timeout(words, out.wait);
    case BeanstalkVerb::reserve:
      out.wait = std::nullopt;
      return true;
    case BeanstalkVerb::put:
    case BeanstalkVerb::fail:
    case BeanstalkVerb::peek_ready:
    case BeanstalkVerb::peek_delayed:
    case BeanstalkVerb::peek_buried:
    case BeanstalkVerb::stats:
    case BeanstalkVerb::list_tubes:
    case BeanstalkVerb::list_tube_used:
    case BeanstalkVerb::list_tubes_watched:
    case BeanstalkVerb::quit:
      return true;
  }
  return false;
}

// Where the line at the front of `text` ends, its CR LF included; 0: not in here.
std::size_t find_line_end(std::string_view text) {
  std::size_t from = 0;
  while (true) {
    const std::size_t found = text.find('\n', from);
    if (found == std::string_view::npos) return 0;
    if (found > 0 && text[found - 1] == '\r') return found + 1;
    from = found + 1;
  }
}

}  // namespace

std::string_view beanstalk_verb_name(BeanstalkVerb verb) {
  const auto* const row = std::ranges::find(kVerbs, verb, &VerbRow::verb);
  std::string_view name = row->prefix;
  if (name.ends_with(' ')) name.remove_suffix(1);
  return name;
}

bool BeanstalkParser::next(std::string_view& in, BeanstalkRequest& out) {
  if (std::exchange(line_is_used_up_, false)) line_.clear();
  while (true) {
    switch (state_) {
      case State::line:
        if (!take_line(in, out)) return false;
        if (state_ == State::line) return true;
        break;
      case State::rest_of_line:
        if (!take_rest_of_line(in)) return false;
        state_ = State::line;
        out.refusal = BeanstalkRefusal::bad_format;
        return true;
      case State::body:
        if (!take_body(in)) return false;
        state_ = State::body_end;
        missing_ = kEndBytes;
        end_is_right_ = true;
        break;
      case State::body_end:
        if (!take_body_end(in)) return false;
        state_ = State::line;
        finish_body(out);
        return true;
      case State::skipped_body:
        if (!take_skipped_body(in)) return false;
        state_ = State::line;
        out.verb = verb_;
        out.refusal = refusal_;
        return true;
    }
  }
}

bool BeanstalkParser::take_line(std::string_view& in, BeanstalkRequest& out) {
  if (line_.empty()) {
    const std::size_t end = find_line_end(in.substr(0, kMaxLineBytes));
    if (end > 0) {
      const std::string_view line = in.substr(0, end - kEndBytes);
      in.remove_prefix(end);
      parse_line(line, out);
      return true;
    }
  }
  // Byte by byte in effect, but only for the line that a read ended in.
  while (!in.empty()) {
    const std::size_t line_feed = in.find('\n');
    const std::size_t up_to = line_feed == std::string_view::npos ? in.size() : line_feed + 1;
    const std::size_t taken = std::min(up_to, kMaxLineBytes - line_.size());
    line_.append(in.substr(0, taken));
    in.remove_prefix(taken);
    if (line_.ends_with("\r\n")) {
      line_is_used_up_ = true;
      parse_line(std::string_view(line_).substr(0, line_.size() - kEndBytes), out);
      if (state_ != State::line) {
        line_.clear();
        line_is_used_up_ = false;
      }
      return true;
    }
    if (line_.size() == kMaxLineBytes) {
      after_cr_ = line_.back() == '\r';
      line_.clear();
      state_ = State::rest_of_line;
      return true;
    }
  }
  return false;
}

bool BeanstalkParser::take_rest_of_line(std::string_view& in) {
  if (in.empty()) return false;
  if (after_cr_ && in.front() == '\n') {
    in.remove_prefix(1);
    return true;
  }
  if (const std::size_t end = find_line_end(in); end > 0) {
    in.remove_prefix(end);
    return true;
  }
  after_cr_ = in.back() == '\r';
  in = {};
  return false;
}

bool BeanstalkParser::take_body(std::string_view& in) {
  const std::size_t taken = std::min<std::uint64_t>(missing_, in.size());
  if (body_.size() + taken > body_.capacity()) {
    // Twice what is there, but not beyond the end. Into a new string, because reserve() would take
    // more than it is asked for.
    const std::uint64_t whole = body_.size() + missing_;
    std::string grown;
    grown.reserve(std::min<std::uint64_t>(whole, std::max(body_.size() + taken, 2 * body_.size())));
    body_ = std::move(grown.append(body_));
  }
  body_.append(in.substr(0, taken));
  in.remove_prefix(taken);
  missing_ -= taken;
  return missing_ == 0;
}

bool BeanstalkParser::take_body_end(std::string_view& in) {
  while (missing_ > 0 && !in.empty()) {
    const char expected = missing_ == kEndBytes ? '\r' : '\n';
    if (in.front() != expected) end_is_right_ = false;
    in.remove_prefix(1);
    --missing_;
  }
  return missing_ == 0;
}

bool BeanstalkParser::take_skipped_body(std::string_view& in) {
  const std::size_t taken = std::min<std::uint64_t>(missing_, in.size());
  in.remove_prefix(taken);
  missing_ -= taken;
  return missing_ == 0;
}

// Refused, unless it is told to be right.
void BeanstalkParser::parse_line(std::string_view line, BeanstalkRequest& out) {
  out.refusal = BeanstalkRefusal::bad_format;
  if (line.find('\0') != std::string_view::npos) return;
  const auto* const row = std::ranges::find_if(
      kVerbs, [&](const VerbRow& candidate) { return line.starts_with(candidate.prefix); });
  if (row == kVerbs.end()) {
    out.refusal = BeanstalkRefusal::unknown_command;
    return;
  }
  out.verb = row->verb;
  const std::string_view words = line.substr(row->prefix.size());
  if (row->verb == BeanstalkVerb::put) return begin_put(words);
  if (row->verb == BeanstalkVerb::fail) return begin_fail(words);
  if (row->is_whole_line && !words.empty()) return;
  if (read_words(words, out)) out.refusal = BeanstalkRefusal::none;
}

void BeanstalkParser::begin_put(std::string_view words) {
  std::uint32_t size = 0;
  if (!read_u32(words, priority_) || !read_seconds(words, delay_) || !read_seconds(words, lease_) ||
      !read_u32(words, size)) {
    return;
  }
  lease_ = std::max<Duration>(lease_, seconds(1));
  verb_ = BeanstalkVerb::put;
  begin_body(size, limits_.max_payload_bytes, !words.empty());
}

void BeanstalkParser::begin_fail(std::string_view words) {
  std::uint32_t size = 0;
  if (!read_u64(words, job_) || !read_u32(words, size)) return;
  verb_ = BeanstalkVerb::fail;
  begin_body(size, limits_.max_error_bytes, !words.empty());
}

// The size counts before what follows it, as in beanstalkd.
void BeanstalkParser::begin_body(std::uint64_t size, std::uint64_t most, bool garbage_follows) {
  if (size > most) {
    refusal_ = BeanstalkRefusal::job_too_big;
    missing_ = size + kEndBytes;
    state_ = State::skipped_body;
  } else if (!garbage_follows) {
    missing_ = size;
    state_ = State::body;
  }
}

void BeanstalkParser::finish_body(BeanstalkRequest& out) {
  out.verb = verb_;
  std::string body = std::exchange(body_, std::string());
  if (!end_is_right_) {
    out.refusal = BeanstalkRefusal::expected_crlf;
    return;
  }
  out.refusal = BeanstalkRefusal::none;
  if (verb_ == BeanstalkVerb::fail) {
    out.job = job_;
    out.error = std::move(body);
    return;
  }
  out.new_job = NewJob{};  // the last one was moved away
  out.new_job.payload = std::move(body);
  out.new_job.payload_kind = PayloadKind::bytes;
  out.new_job.priority = priority_;
  out.new_job.delay = delay_;
  out.new_job.lease = lease_;
}

void BeanstalkParser::give_up_body() {
  if (state_ != State::body) return;
  body_ = std::string();
  refusal_ = BeanstalkRefusal::out_of_memory;
  missing_ += kEndBytes;
  state_ = State::skipped_body;
}

}  // namespace reprise::server
