// BeanstalkParser: the byte stream of a beanstalk client, cut into requests.
//
// It takes any split of the stream and looks at each byte once. A body goes straight into the
// payload of its job; its memory grows with what has come, never with what was announced.
// What cannot be understood comes out as a refusal, at the place and with as much input skipped as
// in beanstalkd 1.12 (docs/beanstalk.md).
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/time.h"
#include "engine/commands.h"
#include "model/job.h"

namespace reprise::server {

enum class BeanstalkVerb : std::uint8_t {
  put,
  peek,
  peek_ready,
  peek_delayed,
  peek_buried,
  reserve,
  reserve_with_timeout,
  reserve_job,
  remove,  // "delete"
  release,
  use,
  watch,
  ignore,
  bury,
  kick,
  kick_job,
  touch,
  fail,
  stats,
  stats_job,
  stats_tube,
  list_tubes,
  list_tube_used,
  list_tubes_watched,
  pause_tube,
  quit,
};
inline constexpr std::size_t kBeanstalkVerbCount = 26;

// As clients write it: "reserve-with-timeout".
std::string_view beanstalk_verb_name(BeanstalkVerb verb);

enum class BeanstalkRefusal : std::uint8_t {
  none,
  bad_format,
  unknown_command,
  // These are known to be a put or a fail: `verb` says which.
  expected_crlf,
  job_too_big,
  out_of_memory,
};

// Only what its verb has is set.
struct BeanstalkRequest {
  BeanstalkRefusal refusal{};
  BeanstalkVerb verb{};
  Seq job{};
  Priority priority{};
  Duration delay{};              // of release, and the pause of pause-tube
  std::optional<Duration> wait;  // of reserve; nothing: for as long as it takes
  std::uint64_t count = 0;       // of kick
  std::string_view tube;         // until the next call of next()
  NewJob new_job;                // of put
  std::string error;             // of fail
};

struct BeanstalkLimits {
  std::uint64_t max_payload_bytes = 0;
  std::uint64_t max_error_bytes = 0;
};

class BeanstalkParser {
 public:
  // With its CR LF.
  static constexpr std::size_t kMaxLineBytes = 224;

  explicit BeanstalkParser(BeanstalkLimits limits) : limits_(limits) {}

  // Takes bytes off the front of `in` until a request is whole, and true; or all of them, and
  // false.
  bool next(std::string_view& in, BeanstalkRequest& out);

  // Memory in a body that has not come to its end.
  std::size_t partial_bytes() const { return body_.capacity() > kSmallBody ? body_.size() : 0; }
  // Forgets the body that is coming: it is skipped, and its request is refused as out_of_memory.
  void give_up_body();

 private:
  enum class State : std::uint8_t {
    line,
    rest_of_line,  // of one that is too long
    body,
    body_end,  // the CR LF after it
    skipped_body,
  };
  static constexpr std::size_t kSmallBody = 64;

  // Each takes what it can. False: all input is used up.
  bool take_line(std::string_view& in, BeanstalkRequest& out);
  bool take_rest_of_line(std::string_view& in);
  bool take_body(std::string_view& in);
  bool take_body_end(std::string_view& in);
  bool take_skipped_body(std::string_view& in);

  // In another state than `line` afterwards: its body is still to come.
  void parse_line(std::string_view line, BeanstalkRequest& out);
  void begin_put(std::string_view words);
  void begin_fail(std::string_view words);
  void begin_body(std::uint64_t size, std::uint64_t most, bool garbage_follows);
  void finish_body(BeanstalkRequest& out);

  const BeanstalkLimits limits_;
  State state_ = State::line;
  // The begin of a line that the input ended in; or a whole one, that `tube` of the last request
  // may point into.
  std::string line_;
  bool line_is_used_up_ = false;
  bool after_cr_ = false;  // rest_of_line: the last byte was a CR
  // From the line of a put or fail to the end of its body.
  BeanstalkVerb verb_{};
  BeanstalkRefusal refusal_{};
  Seq job_{};
  Priority priority_{};
  Duration delay_{};
  Duration lease_{};
  std::uint64_t missing_ = 0;  // bytes of the body, or of what is skipped, with its end
  bool end_is_right_ = true;
  std::string body_;
};

}  // namespace reprise::server
