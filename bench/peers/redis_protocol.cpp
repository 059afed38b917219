#include "peers/redis_protocol.h"

#include <fmt/format.h>

#include <charconv>

#include "load_error.h"

namespace reprise::bench::peers {
namespace {

// One that is there already is as good as a new one.
constexpr std::string_view kGroupExists = "BUSYGROUP";

}  // namespace

void RedisProtocol::command(Meaning meaning, std::initializer_list<std::string_view> words,
                            std::size_t jobs) {
  append_redis_head(output_, words.size());
  for (const std::string_view word : words) append_redis_word(output_, word);
  expect(meaning, jobs);
}

void RedisProtocol::greeting(std::initializer_list<std::string_view> words) {
  command(Meaning::greeting, words);
  greetings_++;
}

std::size_t RedisProtocol::read(std::string_view input, PeerReplies& replies) {
  std::size_t used = 0;
  while (const std::size_t bytes = reply_.read(input.substr(used))) {
    if (expected_.empty()) throw LoadError("a reply nobody asked for");
    const RedisPart& first = reply_[0];
    if (first.type == '-' && !first.text.starts_with(kGroupExists)) {
      throw LoadError(fmt::format("redis: {}", first.text));
    }
    const Expected expected = expected_.front();
    expected_.pop_front();
    handle(expected, replies);
    used += bytes;
  }
  return used;
}

void RedisProtocol::handle(const Expected& expected, PeerReplies& replies) {
  const std::string_view text = reply_[0].text;
  switch (expected.meaning) {
    case Meaning::greeting:
      greetings_--;
      on_greeting(reply_);
      break;
    case Meaning::pushed:
      replies.on_pushed();
      break;
    case Meaning::jobs: {
      const std::size_t got = on_jobs(reply_, replies);
      if (got < expected.jobs) replies.on_none(expected.jobs - got);
      break;
    }
    case Meaning::half_ended:
    case Meaning::ended:
      if (text != "1") throw LoadError("redis knows nothing of a job that was claimed");
      if (expected.meaning == Meaning::ended) replies.on_ended();
      break;
    case Meaning::kicked: {
      std::uint64_t jobs = 0;
      std::from_chars(text.data(), text.data() + text.size(), jobs);
      replies.on_kicked(jobs);
      break;
    }
  }
}

}  // namespace reprise::bench::peers
