#include "peers/redis_lua_protocol.h"

#include <algorithm>
#include <array>

namespace reprise::bench::peers {
namespace {

constexpr std::uint64_t kMostKicked = 1000;

// In the order of RedisLuaProtocol::Script. KEYS[1] is the queue, ARGV[1] a body, a job or a count.
constexpr std::array<std::string_view, 6> kScripts = {
    R"(
local id = redis.call('INCR', KEYS[1] .. ':last')
redis.call('HSET', KEYS[1] .. ':job:' .. id, 'body', ARGV[1], 'attempts', 0)
redis.call('RPUSH', KEYS[1] .. ':ready', id)
return id)",
    R"(
local jobs = {}
local ids = redis.call('LPOP', KEYS[1] .. ':ready', ARGV[1])
if not ids then return jobs end
local ends = redis.call('TIME')[1] + 3600
for _, id in ipairs(ids) do
  local key = KEYS[1] .. ':job:' .. id
  redis.call('HINCRBY', key, 'attempts', 1)
  redis.call('ZADD', KEYS[1] .. ':leases', ends, id)
  jobs[#jobs + 1] = id
  jobs[#jobs + 1] = redis.call('HGET', key, 'body')
end
return jobs)",
    R"(
if redis.call('ZREM', KEYS[1] .. ':leases', ARGV[1]) == 0 then return 0 end
return redis.call('DEL', KEYS[1] .. ':job:' .. ARGV[1]))",
    R"(
if redis.call('ZREM', KEYS[1] .. ':leases', ARGV[1]) == 0 then return 0 end
redis.call('RPUSH', KEYS[1] .. ':ready', ARGV[1])
return 1)",
    R"(
if redis.call('ZREM', KEYS[1] .. ':leases', ARGV[1]) == 0 then return 0 end
redis.call('RPUSH', KEYS[1] .. ':dead', ARGV[1])
return 1)",
    R"(
local ids = redis.call('LPOP', KEYS[1] .. ':dead', ARGV[1])
if not ids then return 0 end
redis.call('RPUSH', KEYS[1] .. ':ready', unpack(ids))
return #ids)"};

}  // namespace

void RedisLuaProtocol::greet() {
  for (const std::string_view script : kScripts) greeting({"SCRIPT", "LOAD", script});
}

void RedisLuaProtocol::on_greeting(const RedisReply& reply) {
  std::string& call = calls_.emplace_back();
  append_redis_head(call, 5);
  for (const std::string_view word : {std::string_view("EVALSHA"), reply[0].text,
                                      std::string_view("1"), std::string_view(queue())}) {
    append_redis_word(call, word);
  }
}

void RedisLuaProtocol::run(Script script, std::string_view argument, Meaning meaning,
                           std::size_t jobs) {
  output_ += calls_[script];
  append_redis_word(output_, argument);
  expect(meaning, jobs);
}

void RedisLuaProtocol::push(const BodySource& bodies, const Stamp& stamp) {
  output_ += calls_[kPush];
  append_redis_length(output_, bodies.body_bytes());
  bodies.append(output_, stamp);
  output_ += "\r\n";
  expect(Meaning::pushed);
}

void RedisLuaProtocol::claim(std::size_t jobs, bool) {
  run(kClaim, std::to_string(jobs), Meaning::jobs, jobs);
}

void RedisLuaProtocol::ack(std::string_view job) { run(kAck, job, Meaning::ended); }
void RedisLuaProtocol::release(std::string_view job) { run(kRelease, job, Meaning::ended); }
void RedisLuaProtocol::bury(std::string_view job) { run(kBury, job, Meaning::ended); }

void RedisLuaProtocol::kick(std::uint64_t jobs) {
  run(kKick, std::to_string(std::min(jobs, kMostKicked)), Meaning::kicked);
}

// [id, body, id, body, …]
std::size_t RedisLuaProtocol::on_jobs(const RedisReply& reply, PeerReplies& replies) {
  std::size_t jobs = 0;
  for (std::size_t at = 1; at + 2 <= reply.size(); at += 2) {
    replies.on_claimed(reply[at].text, reply[at + 1].text);
    jobs++;
  }
  return jobs;
}

}  // namespace reprise::bench::peers
