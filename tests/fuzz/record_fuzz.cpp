// Whatever bytes stand in a keyspace: records decode or are refused as corrupt, and what decodes is
// the same after it was encoded and decoded again; so with keys.
//
// An input is a letter for the kind of record, then the record without its checksum, which is put
// right here: damage must reach the decoders.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "fuzz/fuzz.h"
#include "storage/keys.h"
#include "storage/record_frame.h"
#include "storage/records.h"
#include "storage/scheduling_bytes.h"

namespace reprise::storage {
namespace {

bool same(const EndedJob& a, const EndedJob& b) {
  return *a.record == *b.record && *a.state == *b.state;
}
template <std::equality_comparable T>
bool same(const T& a, const T& b) {
  return a == b;
}

template <class T>
void check_record(std::string_view bytes, Result<T> (*decode)(std::string_view),
                  std::string (*encode)(const T&)) {
  const auto decoded = decode(bytes);
  if (!decoded) {
    REPRISE_CHECK(decoded.error().code == Errc::corrupt && !decoded.error().detail.empty());
    return;
  }
  const std::string once = encode(*decoded);
  const auto again = decode(once);
  REPRISE_CHECK(static_cast<bool>(again));
  REPRISE_CHECK(same(*decoded, *again));
  REPRISE_CHECK(encode(*again) == once);
}

// What is read from the front of a record is what the whole of it says.
void check_outline(std::string_view bytes) {
  const auto outline = decode_job_outline(bytes);
  const auto byte_size = decode_job_byte_size(bytes);
  const auto job = decode_job(bytes);
  const std::string_view front = bytes.substr(0, std::min(bytes.size(), kJobOutlineBytes));
  const std::size_t wanted = std::max(front.size(), job_outline_bytes(front));
  if (!job) return;
  REPRISE_CHECK(outline && outline->pushed_at == job->pushed_at &&
                outline->expires_at == job->expires_at && outline->priority == job->priority &&
                outline->scheduling == job->scheduling);
  REPRISE_CHECK(byte_size && *byte_size == job->byte_size());
  const auto from_front = decode_job_outline(bytes.substr(0, std::min(bytes.size(), wanted)));
  REPRISE_CHECK(from_front && from_front->scheduling == job->scheduling);
  REPRISE_CHECK(encoded_job_size(*job) == encode_job(*job).size());
}

void check_scheduling(std::string_view bytes) {
  const auto scheduling = decode_scheduling(bytes);
  if (!scheduling) return;
  const auto again = decode_scheduling(encode_scheduling(*scheduling));
  REPRISE_CHECK(again && *again == *scheduling);
}

void check_keys(std::string_view key) {
  if (const auto job = parse_job_key(key)) REPRISE_CHECK(job_key(*job) == key);
  if (const auto ending = parse_ending_key(key)) REPRISE_CHECK(ending_key(*ending) == key);
  if (const auto webhook = parse_webhook_key(key)) REPRISE_CHECK(webhook_key(*webhook) == key);
  if (const auto queue = parse_totals_key(key)) REPRISE_CHECK(totals_key(*queue) == key);
  if (const auto parts = parse_idempotency_key(key)) {
    REPRISE_CHECK(idempotency_key(parts->queue, parts->key) == key);
  }
  if (key.find_first_not_of('\xFF') == std::string_view::npos) return;
  const std::string end = prefix_end(key);
  REPRISE_CHECK(end > key && end > std::string(key) + "\xFF\xFF");
}

std::string encode_one_job(const JobRecord& job) { return encode_job(job); }
std::string encode_version(const std::uint32_t& version) { return encode_format_version(version); }

void check(char kind, std::string_view bytes) {
  switch (kind) {
    case 'j':
      check_outline(bytes);
      return check_record(bytes, decode_job, encode_one_job);
    case 's':
      return check_record(bytes, decode_state, encode_state);
    case 'd':
      return check_record(bytes, decode_ended, encode_ended);
    case 'e':
      return check_record(bytes, decode_ending, encode_ending);
    case 'o':
      return check_record(bytes, decode_operation, encode_operation);
    case 'a':
      return check_record(bytes, decode_audit, encode_audit);
    case 'k':
      return check_record(bytes, decode_key_entry, encode_key_entry);
    case 'c':
      return check_record(bytes, decode_config, encode_config);
    case 'n':
      return check_record(bytes, decode_note, encode_note);
    case 't':
      return check_record(bytes, decode_throttle, encode_throttle);
    case 'q':
      return check_record(bytes, decode_queue, encode_queue);
    case 'T':
      return check_record(bytes, decode_totals, encode_totals);
    case 'S':
      return check_record(bytes, decode_server, encode_server);
    case 'p':
      return check_record(bytes, decode_checkpoint, encode_checkpoint);
    case 'f':
      return check_record(bytes, decode_format_version, encode_version);
    default:
      return;
  }
}

// One of a kind.

JobRecord job() {
  return {.priority = 7,
          .payload_kind = PayloadKind::bytes,
          .lease = Duration(300),
          .key = "key",
          .headers = {{"tenant", "a"}, {"trace", ""}},
          .scheduling = {.fairness_key = "fk", .weight = 300, .throttle_keys = {"t1", "t"}},
          .payload = "payload"};
}

JobState state() {
  JobState state;
  state.status = JobStatus::active;
  state.failures = 2;
  state.attempts = 300;
  state.worker = "w";
  state.last_error = "timeout";
  state.history = {{.number = 1, .worker = "w1", .error = "why", .error_type = "Net"}};
  state.origin_queue = "home";
  state.death_note = "note";
  return state;
}

QueueRecord queue() {
  QueueRecord queue;
  queue.name = {.ns = "shop", .name = "orders"};
  queue.config.ttl = std::chrono::hours(24);
  queue.config.retry = {.attempts = 3, .wait = Backoff{.jitter = 0.5}};
  queue.config.breaker = OutagePolicy{};
  queue.config.hooks[0] = "f";
  queue.config.vars = {"id", "at"};
  queue.config.defaults = R"({"n":1.0})";
  return queue;
}

Operation operation() {
  return {.name = {.ns = "shop", .name = "orders"},
          .filter = {.status = JobStatus::dead, .error = "time\"out"},
          .limit = 100,
          .rate = Rate{.count = 30},
          .first_skipped = {{.id = "a", .status = JobStatus::dead, .reason = "b"}},
          .cursor = "d1"};
}

std::string seed(char kind, std::string record) {
  record.resize(record.size() - kChecksumBytes);
  return kind + record;
}

}  // namespace
}  // namespace reprise::storage

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise::storage;
  const auto [kind, rest] = reprise::fuzz::choice_of(data, size);
  if (kind == 'K') {
    check_keys(rest);
  } else if (kind == 'A') {
    check_scheduling(rest);
  } else {
    check(kind, rest);
    std::string sealed(rest);
    reprise::ByteWriter(sealed).fixed(reprise::crc32c(sealed));
    check(kind, sealed);
  }
  return 0;
}

std::vector<std::string> reprise::fuzz::seeds() {
  using namespace reprise::storage;
  const EndedJob ended{.record = std::make_shared<const JobRecord>(job()),
                       .state = std::make_shared<const JobState>(state())};
  const AuditRecord audit{
      .queue = {.name = "orders"},
      .ids = {"a", "b"},
      .filter = JobFilter{.reason = DeathReason::final, .headers = {{"tenant", "a"}}}};
  return {seed('j', encode_job(job())),
          seed('j', encode_job(JobRecord{})),
          seed('s', encode_state(state())),
          seed('d', encode_ended(ended)),
          seed('e', encode_ending({.fingerprint = 9})),
          seed('o', encode_operation(operation())),
          seed('a', encode_audit(audit)),
          seed('k', encode_key_entry({.seq = 5})),
          seed('c', encode_config({.ns = "shop", .key = "rate", .value = "5/s"})),
          seed('n', encode_note({.key = "worker/shop/a", .value = "on"})),
          seed('t', encode_throttle({.throttle = {.ns = "shop", .key = "api", .burst = 3}})),
          seed('q', encode_queue(queue())),
          seed('T', encode_totals({.pushed = 300})),
          seed('S', encode_server({.next_seq = 300})),
          seed('p', encode_checkpoint({.covered_batch = 7})),
          seed('f', encode_format_version(kFormatVersion)),
          "A" + encode_scheduling(job().scheduling),
          "K" + job_key({3, 4}),
          "K" + ending_key({.queue = 3, .kind = EndKind::completed, .seq = 4}),
          "K" + webhook_key({.queue = 3, .seq = 4}),
          "K" + totals_key(3)};
}
