#include "storage/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "support/hex.h"

namespace reprise::storage {
namespace {

using namespace std::chrono_literals;
using test::from_hex;
using test::to_hex;
using testing::HasSubstr;

Timestamp at(std::int64_t microseconds) { return Timestamp(Duration(microseconds)); }

// One example of each kind, with every field different from its default.

JobRecord example_job() {
  return {.pushed_at = at(0x0102030405060708),
          .expires_at = at(0x1112131415161718),
          .priority = 0x21222324,
          .payload_kind = PayloadKind::bytes,
          .key = "key",
          .headers = {{"tenant", "a"}, {"trace", ""}},
          .scheduling = {.fairness_key = "fk", .weight = 300, .throttle_keys = {"t1", "t"}},
          .payload = "payload"};
}

JobRecord example_leased_job() {
  JobRecord job = example_job();
  job.lease = Duration(300);
  return job;
}

JobState example_state() {
  JobState state;
  state.status = JobStatus::active;
  state.failures = 2;
  state.attempts = 300;
  state.generation = 3;
  state.due = at(1);
  state.lease_nonce = 0x3132333435363738;
  state.lease_started_at = at(2);
  state.lease_deadline = at(3);
  state.worker = "w";
  state.first_attempt_at = at(4);
  state.last_error = "timeout";
  state.last_error_type = "Net";
  state.history = {{.number = 1,
                    .started_at = at(5),
                    .ended_at = at(6),
                    .outcome = AttemptOutcome::lease_expired,
                    .worker = "w1",
                    .error = ""},
                   {.number = 299,
                    .generation = 2,
                    .started_at = at(7),
                    .ended_at = at(8),
                    .outcome = AttemptOutcome::failed,
                    .worker = "",
                    .error = "timeout",
                    .error_type = "T"}};
  state.returned_at = at(12);
  state.origin_queue = "home";
  state.death_reason = DeathReason::hook_error;
  state.decided_by = DecidedBy::hook;
  state.death_note = "note";
  state.hook_version = "012345abcdef";
  state.ended_at = at(-1);
  return state;
}

EndedJob example_dead() {
  return {.record = std::make_shared<const JobRecord>(example_job()),
          .state = std::make_shared<const JobState>(example_state())};
}

QueueRecord example_queue() {
  QueueRecord queue;
  queue.number = 7;
  queue.name = {.ns = "shop", .name = "orders"};
  queue.config.lease = 45s;
  queue.config.ttl = 24h;
  queue.config.retry = {.attempts = 3, .wait = 30s};
  queue.config.max_jobs = 1000;
  queue.config.max_bytes = std::numeric_limits<std::uint64_t>::max();
  queue.config.key_window = 1h;
  queue.config.hooks[static_cast<std::size_t>(HookKind::on_failure)] = "f";
  queue.config.on_hook_error = OnHookError::dlq;
  queue.config.hook_timeout_ms = 5;
  queue.config.hook_memory_bytes = 128 << 10;
  queue.config.vars = {"id", "at"};
  queue.config.defaults = R"({"n":1.0})";
  queue.paused = true;
  queue.created_at = at(9);
  return queue;
}

QueueTotals example_totals() {
  return {.pushed = 1,
          .duplicates = 2,
          .claimed = 3,
          .completed = 4,
          .failed = 5,
          .released = 6,
          .lease_expired = 7,
          .expired = 8,
          .died = 9,
          .dropped = 300,
          .corrupt = 10,
          .moved_in = 11,
          .moved_out = 12,
          .claimed_retry = 13,
          .retried = 14,
          .purged = 15,
          .dead_expired = 16,
          .dead_evicted = 17,
          .dead_now = std::numeric_limits<std::uint64_t>::max(),
          .completed_now = 18,
          .live_bytes = 1'000'000};
}

ConfigEntry example_config() {
  return {.ns = "shop", .key = "rate", .value = "5/s", .updated_at = at(15)};
}

ThrottleRecord example_throttle() {
  return {.throttle = {.ns = "shop",
                       .key = "api",
                       .rate = {.count = 30, .per = 60s},
                       .burst = 300,
                       .updated_at = at(16)},
          .level = {.parts = 90'000'000, .at = at(17)}};
}

const Note kExampleNote{.key = "worker/shop/a", .value = "on"};
const KeyEntry kExampleEntry{.seq = 0x0102030405060708, .expires_at = at(10)};
const ServerState kExampleServer{
    .next_seq = 1000, .next_queue = 8, .next_operation = 9, .next_audit = 10, .clock = at(11)};

Operation example_operation() {
  return {.id = 7,
          .kind = OperationKind::purge,
          .queue = 3,
          .name = {.ns = "shop", .name = "orders"},
          .filter = {.status = JobStatus::dead, .error = "time\"out", .older_than = 7s},
          .limit = 100,
          .rate = Rate{.count = 30, .per = 60s},
          .total = 90,
          .asked_by = "ops",
          .audit_number = 12,
          .started_at = at(13),
          .state = OperationState::failed,
          .done = 5,
          .skipped = 2,
          .first_skipped =
              {{.id = "a", .status = JobStatus::dead, .code = Errc::wrong_status, .reason = "b"},
               {.id = "c", .code = Errc::ambiguous_id, .reason = "d"}},
          .cursor = "d1",
          .ended_at = at(14),
          .error = "why"};
}

AuditRecord example_audit() {
  return {.number = 12,
          .at = at(13),
          .action = AuditAction::cancel,
          .queue = {.ns = "shop", .name = "orders"},
          .asked_by = "ops",
          .ids = {"a", "b"},
          .filter = JobFilter{.reason = DeathReason::final, .headers = {{"tenant", "a"}}},
          .done = 1,
          .skipped = 2,
          .not_found = 3,
          .operation = 4};
}

// Every kind of record, with a decoder that tells only whether it decodes, and why not.
struct RecordKind {
  std::string name;
  std::string example;
  std::function<Status(std::string_view)> decode;

  friend std::ostream& operator<<(std::ostream& out, const RecordKind& kind) {
    return out << kind.name;
  }
};

template <class T>
std::function<Status(std::string_view)> only_status(Result<T> (*decode)(std::string_view)) {
  return [decode](std::string_view bytes) -> Status {
    const auto result = decode(bytes);
    if (!result) return result.error();
    return ok();
  };
}

std::vector<RecordKind> record_kinds() {
  return {
      {"Job", encode_job(example_leased_job()), only_status(decode_job)},
      {"State", encode_state(example_state()), only_status(decode_state)},
      {"Dead", encode_ended(example_dead()), only_status(decode_ended)},
      {"Ending", encode_ending({.fingerprint = 0x0102030405060708}), only_status(decode_ending)},
      {"Operation", encode_operation(example_operation()), only_status(decode_operation)},
      {"Audit", encode_audit(example_audit()), only_status(decode_audit)},
      {"KeyEntry", encode_key_entry(kExampleEntry), only_status(decode_key_entry)},
      {"Config", encode_config(example_config()), only_status(decode_config)},
      {"Note", encode_note(kExampleNote), only_status(decode_note)},
      {"Throttle", encode_throttle(example_throttle()), only_status(decode_throttle)},
      {"Queue", encode_queue(example_queue()), only_status(decode_queue)},
      {"Totals", encode_totals(example_totals()), only_status(decode_totals)},
      {"Server", encode_server(kExampleServer), only_status(decode_server)},
      {"FormatVersion", encode_format_version(1), only_status(decode_format_version)}};
}

// `record` with its checksum made right again.
std::string resealed(std::string record) {
  record.resize(record.size() - 4);
  ByteWriter(record).fixed(crc32c(record));
  return record;
}

class EveryRecord : public testing::TestWithParam<RecordKind> {
 protected:
  void expect_corrupt(std::string_view bytes) {
    const auto status = GetParam().decode(bytes);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Errc::corrupt);
  }
};

TEST_P(EveryRecord, DecodesWhenWhole) { EXPECT_TRUE(GetParam().decode(GetParam().example)); }

TEST_P(EveryRecord, IsRefusedWithAnyBitFlipped) {
  std::string bytes = GetParam().example;
  for (char& byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      byte = static_cast<char>(byte ^ (1 << bit));
      expect_corrupt(bytes);
      byte = static_cast<char>(byte ^ (1 << bit));
    }
  }
}

TEST_P(EveryRecord, IsRefusedWhenCutOrLonger) {
  const std::string& bytes = GetParam().example;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    expect_corrupt(std::string_view(bytes).substr(0, length));
  }
  expect_corrupt(bytes + '\0');
}

// A body that is wrong though its checksum is right: what only a bug can write.
TEST_P(EveryRecord, IsRefusedWhenItsFieldsDoNotAddUp) {
  const std::string& bytes = GetParam().example;
  for (std::size_t length = 6; length < bytes.size(); ++length) {
    expect_corrupt(resealed(bytes.substr(0, length)));
  }
  expect_corrupt(resealed(bytes + '\0'));
}

TEST_P(EveryRecord, OfAnotherVersionIsRefusedByName) {
  std::string bytes = GetParam().example;
  const int known = bytes.front();
  bytes.front() = 9;
  const auto status = GetParam().decode(resealed(bytes));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::corrupt);
  EXPECT_THAT(status.error().detail, HasSubstr("version 9"));
  EXPECT_THAT(status.error().detail, HasSubstr("version " + std::to_string(known)));
}

TEST_P(EveryRecord, SurvivesAnyChangeOfOneByteWithoutHarm) {
  const std::string& bytes = GetParam().example;
  for (std::size_t i = 1; i + 4 < bytes.size(); ++i) {
    for (const int value : {0x00, 0x7F, 0x80, 0xFF}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      (void)GetParam().decode(resealed(changed));  // right or wrong, but no crash and no huge size
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryRecord, testing::ValuesIn(record_kinds()),
                         [](const auto& kind) { return kind.param.name; });

// The bytes themselves. When one of these fails, data that users have can no longer be read:
// docs/format.md says how to change a record.

TEST(GoldenBytes, Job) {
  EXPECT_EQ(to_hex(encode_job(example_job())),
            "03"                  // version
            "0807060504030201"    // pushed_at
            "1817161514131211"    // expires_at
            "24232221"            // priority
            "1b00000000000000"    // byte_size
            "01"                  // payload_kind
            "0a"                  // length of the attributes
            "02666b"              // fairness_key
            "ac02"                // weight
            "0274310174"          // throttle keys t1, t
            "036b6579"            // key
            "02"                  // 2 headers
            "0674656e616e740161"  // tenant: a
            "05747261636500"      // trace: (empty)
            "077061796c6f6164"    // payload
            "2b3ee86f");          // checksum
}

TEST(GoldenBytes, JobWithALeaseOfItsOwn) {
  EXPECT_EQ(to_hex(encode_job({.pushed_at = at(1), .lease = Duration(300), .payload = "{}"})),
            "04"                // version
            "0100000000000000"  // pushed_at
            "ffffffffffffff7f"  // expires_at: never
            "e8030000"          // priority
            "0200000000000000"  // byte_size
            "00"                // payload_kind
            "00"                // no attributes
            "00"                // no key
            "00"                // no headers
            "ac02"              // lease
            "027b7d"            // payload
            "de51994a");        // checksum
}

TEST(GoldenBytes, JobWithDefaultAttributes) {
  EXPECT_EQ(to_hex(encode_job({.pushed_at = at(1), .payload = "{}"})),
            "03"                // version
            "0100000000000000"  // pushed_at
            "ffffffffffffff7f"  // expires_at: never
            "e8030000"          // priority
            "0200000000000000"  // byte_size
            "00"                // payload_kind
            "00"                // no attributes
            "00"                // no key
            "00"                // no headers
            "027b7d"            // payload
            "af2a1347");        // checksum
}

TEST(GoldenBytes, State) {
  EXPECT_EQ(to_hex(encode_state(example_state())),
            "03"                // version
            "02"                // status
            "02"                // failures
            "ac02"              // attempts
            "03"                // generation
            "0100000000000000"  // due
            "3837363534333231"  // lease_nonce
            "0200000000000000"  // lease_started_at
            "0300000000000000"  // lease_deadline
            "0177"              // worker
            "0400000000000000"  // first_attempt_at
            "0774696d656f7574"  // last_error
            "034e6574"          // last_error_type
            "02"                // 2 attempts
            // number, generation, started, ended, outcome, worker, error, error_type
            "010105000000000000000600000000000000010277310000"
            "ab02020700000000000000080000000000000000000774696d656f75740154"
            "0c00000000000000"            // returned_at
            "04686f6d65"                  // origin_queue
            "08"                          // death_reason
            "02"                          // decided_by
            "046e6f7465"                  // death_note
            "0c303132333435616263646566"  // hook_version
            "ffffffffffffffff"            // ended_at
            "9a9fa68d");                  // checksum
}

TEST(GoldenBytes, Ended) {
  EXPECT_EQ(to_hex(encode_ended(example_dead())),
            "01"  // version
            "4a"  // length of the job record
            "0308070605040302011817161514131211242322211b00000000000000010a02666bac0202743101"
            "74036b6579020674656e616e74016105747261636500077061796c6f61642b3ee86f"
            "a101"  // length of the state record
            "030202ac020301000000000000003837363534333231020000000000000003000000000000000177"
            "04000000000000000774696d656f7574034e65740201010500000000000000060000000000000001"
            "0277310000ab02020700000000000000080000000000000000000774696d656f757401540c000000"
            "0000000004686f6d650802046e6f74650c303132333435616263646566ffffffffffffffff9a9fa6"
            "8d"
            "ac190b6c");  // checksum
}

TEST(GoldenBytes, Config) {
  EXPECT_EQ(to_hex(encode_config(example_config())),
            "01"                // version
            "0473686f70"        // namespace
            "0472617465"        // key
            "03352f73"          // value
            "0f00000000000000"  // updated_at
            "f368e031");        // checksum
}

TEST(GoldenBytes, Note) {
  EXPECT_EQ(to_hex(encode_note(kExampleNote)),
            "01"                            // version
            "0d776f726b65722f73686f702f61"  // key
            "026f6e"                        // value
            "2df03664");                    // checksum
}

TEST(GoldenBytes, Throttle) {
  EXPECT_EQ(to_hex(encode_throttle(example_throttle())),
            "01"                // version
            "0473686f70"        // namespace
            "03617069"          // key
            "1e"                // rate: 30
            "808ece1c"          // in 60 seconds
            "ac02"              // burst
            "1000000000000000"  // updated_at
            "8095f52a"          // level: parts
            "1100000000000000"  // as of
            "7dcbeaa5");        // checksum
}

TEST(ThrottleBytes, AreRefusedWithARateOrBurstOfNothing) {
  for (const auto& take : {+[](Throttle& throttle) { throttle.rate.count = 0; },
                           +[](Throttle& throttle) { throttle.rate.per = 0s; },
                           +[](Throttle& throttle) { throttle.burst = 0; }}) {
    ThrottleRecord record = example_throttle();
    take(record.throttle);
    const auto decoded = decode_throttle(encode_throttle(record));
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code, Errc::corrupt);
  }
}

// What older builds have written.

// With the attributes behind the headers.
constexpr std::string_view kJobVersion2 =
    "0208070605040302011817161514131211242322211b0000000000000001036b6579020674656e61"
    "6e7401610574726163650002666bac02020274310174077061796c6f616477b46504";
constexpr std::string_view kJobVersion1 =
    "010807060504030201181716151413121124232221160000000000000001036b6579020674656e61"
    "6e74016105747261636500077061796c6f61648cc2bb26";
constexpr std::string_view kStateVersion2 =
    "020202ac02030100000000000000383736353433323102000000000000000300000000000000017704"
    "000000000000000774696d656f7574034e6574020101050000000000000006000000000000000102"
    "77310000ab02020700000000000000080000000000000000000774696d656f757401540c00000000"
    "00000004686f6d650201ffffffffffffffffbd90e34e";

JobRecord example_job_1() {
  JobRecord job = example_job();
  job.scheduling = {};
  return job;
}

JobState example_state_2() {
  JobState state = example_state();
  state.death_reason = DeathReason::final;
  state.decided_by = DecidedBy::client;
  state.death_note.clear();
  state.hook_version.clear();
  return state;
}

TEST(OldBytes, OfAJobAreReadWithTheAttributesThatItNeverHad) {
  const std::string bytes = from_hex(kJobVersion1);
  const auto job = decode_job(bytes);
  ASSERT_TRUE(job) << job.error().detail;
  EXPECT_EQ(*job, example_job_1());
  const auto outline = decode_job_outline(bytes);
  ASSERT_TRUE(outline) << outline.error().detail;
  EXPECT_EQ(outline->priority, example_job_1().priority);
  EXPECT_EQ(outline->scheduling, Scheduling{});
  EXPECT_LE(job_outline_bytes(bytes.substr(0, kJobOutlineBytes)), kJobOutlineBytes);
  EXPECT_EQ(*decode_job_byte_size(bytes), example_job_1().byte_size());
}

TEST(OldBytes, OfAJobWithAttributesBehindItsHeadersAreRead) {
  const std::string bytes = from_hex(kJobVersion2);
  const auto job = decode_job(bytes);
  ASSERT_TRUE(job) << job.error().detail;
  EXPECT_EQ(*job, example_job());
  EXPECT_EQ(job_outline_bytes(bytes.substr(0, kJobOutlineBytes)), kWholeRecord);
  const auto outline = decode_job_outline(bytes);
  ASSERT_TRUE(outline) << outline.error().detail;
  EXPECT_EQ(outline->expires_at, example_job().expires_at);
  EXPECT_EQ(outline->scheduling, example_job().scheduling);
  EXPECT_EQ(*decode_job_byte_size(bytes), example_job().byte_size());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_job(bytes.substr(0, length)));
    EXPECT_FALSE(decode_job(resealed(bytes.substr(0, std::max<std::size_t>(length, 6)))));
  }
  constexpr std::size_t kAttributesEnd = 62;
  for (std::size_t length = 0; length < kAttributesEnd; ++length) {
    EXPECT_FALSE(decode_job_outline(bytes.substr(0, length))) << length;
  }
}

TEST(OldBytes, OfAStateAreRead) {
  const auto state = decode_state(from_hex(kStateVersion2));
  ASSERT_TRUE(state) << state.error().detail;
  EXPECT_EQ(*state, example_state_2());
}

TEST(OldBytes, OfADeadJobAreRead) {
  const std::string hex =
      "013f" + std::string(kJobVersion1) + "8f01" + std::string(kStateVersion2) + "f941b1c7";
  const auto dead = decode_ended(from_hex(hex));
  ASSERT_TRUE(dead) << dead.error().detail;
  EXPECT_EQ(*dead->record, example_job_1());
  EXPECT_EQ(*dead->state, example_state_2());
}

TEST(OldBytes, OfAQueueAreReadWithoutWhatCameLater) {
  const auto queue = decode_queue(
      from_hex("01070000000473686f70066f72646572730109000000000000009f027b226c65617365223a223435"
               "73222c2274746c223a223164222c227265747279223a7b22617474656d707473223a332c22636f6f"
               "6c646f776e223a22333073227d2c226665746368223a7b2272657472795f7368617265223a302e32"
               "2c2272657472795f696e5f666c69676874223a6e756c6c7d2c226d61785f6a6f6273223a31303030"
               "2c226d61785f6279746573223a31383434363734343037333730393535313631352c226b65795f77"
               "696e646f77223a223168222c22646561645f6c65747465725f7175657565223a6e756c6c2c226b65"
               "65705f64656164223a6e756c6c2c226d61785f64656164223a6e756c6c2c226b6565705f636f6d70"
               "6c65746564223a6e756c6c2c226f6e5f646561645f776562686f6f6b223a6e756c6c7d4a24a8cb"));
  ASSERT_TRUE(queue) << queue.error().detail;
  QueueRecord without_hooks = example_queue();
  without_hooks.config.hooks = {};
  without_hooks.config.on_hook_error = OnHookError::retry;
  without_hooks.config.hook_timeout_ms.reset();
  without_hooks.config.hook_memory_bytes.reset();
  without_hooks.config.vars.clear();
  without_hooks.config.defaults.clear();
  EXPECT_EQ(*queue, without_hooks);
}

TEST(OldBytes, OfAStateBeforeItsOldestVersionAreRefused) {
  std::string bytes = from_hex(kStateVersion2);
  bytes.front() = 1;
  const auto state = decode_state(resealed(bytes));
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, Errc::corrupt);
}

TEST(GoldenBytes, Ending) {
  EXPECT_EQ(to_hex(encode_ending({.fingerprint = 0x0102030405060708})),
            "01"                // version
            "0807060504030201"  // fingerprint
            "7d0e0ae5");        // checksum
}

// JSON inside a frame: what counts is that every field comes back.
TEST(Operations, ComeBackWhole) {
  EXPECT_EQ(*decode_operation(encode_operation(example_operation())), example_operation());
  EXPECT_EQ(*decode_audit(encode_audit(example_audit())), example_audit());
  AuditRecord no_filter = example_audit();
  no_filter.filter.reset();
  EXPECT_EQ(*decode_audit(encode_audit(no_filter)), no_filter);
}

TEST(GoldenBytes, KeyEntry) {
  EXPECT_EQ(to_hex(encode_key_entry(kExampleEntry)),
            "01"                // version
            "0807060504030201"  // seq
            "0a00000000000000"  // expires_at
            "e61249ff");        // checksum
}

TEST(GoldenBytes, Queue) {
  EXPECT_EQ(to_hex(encode_queue(example_queue())),
            "01"                // version
            "07000000"          // number
            "0473686f70"        // namespace
            "066f7264657273"    // name
            "01"                // paused
            "0900000000000000"  // created_at
            "ec03"              // length of the config, which is JSON
            "7b226c65617365223a22343573222c2274746c223a223164222c227265747279223a7b22617474656d70"
            "7473223a332c22636f6f6c646f776e223a22333073227d2c226665746368223a7b2272657472795f7368"
            "617265223a302e322c2272657472795f696e5f666c69676874223a6e756c6c7d2c22636f6e6375727265"
            "6e6379223a6e756c6c2c22636f6e63757272656e63795f7065725f6b6579223a6e756c6c2c2262726561"
            "6b6572223a6e756c6c2c226d61785f6a6f6273223a313030302c226d61785f6279746573223a31383434"
            "363734343037333730393535313631352c226b65795f77696e646f77223a223168222c22646561645f6c"
            "65747465725f7175657565223a6e756c6c2c226b6565705f64656164223a6e756c6c2c226d61785f6465"
            "6164223a6e756c6c2c226b6565705f636f6d706c65746564223a6e756c6c2c226f6e5f646561645f7765"
            "62686f6f6b223a6e756c6c2c226f6e5f656e7175657565223a6e756c6c2c226f6e5f6661696c75726522"
            "3a2266222c226f6e5f686f6f6b5f6572726f72223a22646c71222c22686f6f6b5f74696d656f75745f6d"
            "73223a352c22686f6f6b5f6d656d6f72795f6279746573223a3133313037322c2276617273223a5b2269"
            "64222c226174225d2c2264656661756c7473223a7b226e223a312e307d7d"
            "f1862f3e");  // checksum
}

TEST(GoldenBytes, Totals) {
  EXPECT_EQ(to_hex(encode_totals(example_totals())),
            "02"                    // version
            "010203040506070809"    // pushed to died
            "ac02"                  // dropped
            "0a"                    // corrupt
            "0b0c0d0e0f1011"        // moved_in to dead_evicted
            "ffffffffffffffffff01"  // dead_now
            "12"                    // completed_now
            "c0843d"                // live_bytes
            "4506eeb2");            // checksum
}

TEST(GoldenBytes, Server) {
  EXPECT_EQ(to_hex(encode_server(kExampleServer)),
            "02"                // version
            "e803000000000000"  // next_seq
            "08000000"          // next_queue
            "0900000000000000"  // next_operation
            "0a00000000000000"  // next_audit
            "0b00000000000000"  // clock
            "ae9c6fd7");        // checksum
}

TEST(GoldenBytes, FormatVersion) {
  EXPECT_EQ(to_hex(encode_format_version(1)),
            "01"          // version
            "01000000"    // format
            "21b326a0");  // checksum
}

// Round trips of random values.

class RandomRecords {
 public:
  explicit RandomRecords(std::uint64_t seed) : random_(seed) {}

  JobRecord job() {
    JobRecord record;
    record.pushed_at = time();
    record.expires_at = random_.below(2) == 0 ? kNever : time();
    record.priority = static_cast<Priority>(number());
    record.payload_kind = static_cast<PayloadKind>(random_.below(2));
    if (random_.below(2) == 0) record.lease = Duration(static_cast<std::int64_t>(number()));
    record.key = bytes(20);
    record.headers.resize(random_.below(4));
    for (auto& [name, value] : record.headers) {
      name = bytes(10);
      value = bytes(200);
    }
    if (random_.below(2) == 0) record.scheduling.fairness_key = "f" + bytes(20);
    record.scheduling.weight = static_cast<std::uint32_t>(number());
    record.scheduling.throttle_keys.resize(random_.below(4));
    for (std::string& key : record.scheduling.throttle_keys) key = bytes(20);
    record.payload = bytes(5000);
    return record;
  }

  JobState state() {
    JobState state;
    state.status = static_cast<JobStatus>(random_.below(kJobStatusCount));
    state.failures = static_cast<std::uint32_t>(number());
    state.attempts = static_cast<std::uint32_t>(number());
    state.generation = static_cast<std::uint32_t>(number());
    state.due = time();
    state.lease_nonce = number();
    state.lease_started_at = time();
    state.lease_deadline = time();
    state.worker = bytes(20);
    state.first_attempt_at = time();
    state.last_error = bytes(300);
    state.last_error_type = bytes(20);
    state.returned_at = time();
    state.origin_queue = bytes(20);
    for (std::uint64_t i = random_.below(kHistoryKept + 1); i > 0; --i) {
      state.history.push_back(attempt());
    }
    state.death_reason = static_cast<DeathReason>(random_.below(9));
    state.decided_by = static_cast<DecidedBy>(random_.below(3));
    state.death_note = bytes(200);
    state.hook_version = bytes(12);
    state.ended_at = time();
    return state;
  }

  QueueRecord queue() {
    QueueRecord queue;
    queue.number = static_cast<QueueNumber>(number());
    queue.name = {.ns = std::to_string(number()), .name = std::to_string(number())};
    queue.config.lease = 1s * (1 + random_.below(3600));
    if (random_.below(2) == 0) queue.config.ttl = 1ms * (1 + random_.below(100000));
    queue.config.retry.attempts = static_cast<std::uint32_t>(number());
    queue.config.retry.wait = 1ms * random_.below(100000);
    if (random_.below(2) == 0) queue.config.max_jobs = 1 + number() / 2;
    if (random_.below(2) == 0) queue.config.max_bytes = 1 + number() / 2;
    if (random_.below(2) == 0) queue.config.defaults = R"({"a":1.0,"b":[1e2,"x y"]})";
    queue.paused = random_.below(2) == 0;
    queue.created_at = time();
    return queue;
  }

  QueueTotals totals() {
    return {.pushed = number(),
            .duplicates = number(),
            .claimed = number(),
            .completed = number(),
            .failed = number(),
            .released = number(),
            .lease_expired = number(),
            .expired = number(),
            .died = number(),
            .dropped = number(),
            .corrupt = number(),
            .moved_in = number(),
            .moved_out = number(),
            .claimed_retry = number(),
            .retried = number(),
            .purged = number(),
            .dead_expired = number(),
            .dead_evicted = number(),
            .dead_now = number(),
            .completed_now = number(),
            .live_bytes = number()};
  }

  // Of all magnitudes.
  std::uint64_t number() { return random_.next_u64() >> random_.below(64); }
  Timestamp time() { return at(static_cast<std::int64_t>(number())); }
  std::string bytes(std::uint64_t size_max) {
    std::string text(random_.below(size_max + 1), '\0');
    for (char& byte : text) byte = static_cast<char>(random_.next_u64());
    return text;
  }

 private:
  Attempt attempt() {
    Attempt attempt;
    attempt.number = static_cast<std::uint32_t>(number());
    attempt.started_at = time();
    attempt.ended_at = time();
    attempt.outcome = static_cast<AttemptOutcome>(random_.below(3));
    attempt.worker = bytes(20);
    attempt.error = bytes(300);
    return attempt;
  }

  SeededRandom random_;
};

class RoundTrip : public testing::Test {
 protected:
  static constexpr int kRounds = 300;
  RandomRecords random_{20260131};
};

TEST_F(RoundTrip, Job) {
  for (int i = 0; i < kRounds; ++i) {
    const JobRecord record = random_.job();
    const std::string encoded = encode_job(record);
    const auto decoded = decode_job(encoded);
    ASSERT_TRUE(decoded) << decoded.error().detail;
    EXPECT_EQ(*decoded, record);
    EXPECT_EQ(encoded.capacity(), std::max(encoded.size(), std::string().capacity()))
        << "allocated more than once or too much";
  }
}

TEST_F(RoundTrip, JobOutlineIsTheRecordsFront) {
  for (int i = 0; i < kRounds; ++i) {
    const JobRecord record = random_.job();
    const std::string bytes = encode_job(record);
    const std::size_t needed = job_outline_bytes(bytes.substr(0, kJobOutlineBytes));
    ASSERT_LE(needed, bytes.size());
    const auto outline = decode_job_outline(bytes.substr(0, std::max(needed, kJobOutlineBytes)));
    ASSERT_TRUE(outline) << outline.error().detail;
    EXPECT_EQ(outline->pushed_at, record.pushed_at);
    EXPECT_EQ(outline->expires_at, record.expires_at);
    EXPECT_EQ(outline->priority, record.priority);
    EXPECT_EQ(outline->scheduling, record.scheduling);
    EXPECT_EQ(*decode_job_byte_size(bytes), record.byte_size());
  }
}

TEST_F(RoundTrip, State) {
  for (int i = 0; i < kRounds; ++i) {
    const JobState state = random_.state();
    const auto decoded = decode_state(encode_state(state));
    ASSERT_TRUE(decoded) << decoded.error().detail;
    EXPECT_EQ(*decoded, state);
  }
}

TEST_F(RoundTrip, Dead) {
  for (int i = 0; i < kRounds; ++i) {
    const EndedJob dead{.record = std::make_shared<const JobRecord>(random_.job()),
                        .state = std::make_shared<const JobState>(random_.state())};
    const auto decoded = decode_ended(encode_ended(dead));
    ASSERT_TRUE(decoded) << decoded.error().detail;
    EXPECT_EQ(*decoded->record, *dead.record);
    EXPECT_EQ(*decoded->state, *dead.state);
  }
}

TEST_F(RoundTrip, Queue) {
  EXPECT_EQ(*decode_queue(encode_queue(example_queue())), example_queue());
  for (int i = 0; i < kRounds; ++i) {
    const QueueRecord queue = random_.queue();
    const auto decoded = decode_queue(encode_queue(queue));
    ASSERT_TRUE(decoded) << decoded.error().detail;
    EXPECT_EQ(*decoded, queue);
  }
}

TEST_F(RoundTrip, SmallRecords) {
  for (int i = 0; i < kRounds; ++i) {
    const QueueTotals totals = random_.totals();
    EXPECT_EQ(*decode_totals(encode_totals(totals)), totals);
    const KeyEntry entry{.seq = random_.number(), .expires_at = random_.time()};
    EXPECT_EQ(*decode_key_entry(encode_key_entry(entry)), entry);
    const ConfigEntry config{.ns = random_.bytes(20),
                             .key = random_.bytes(20),
                             .value = random_.bytes(5000),
                             .updated_at = random_.time()};
    EXPECT_EQ(*decode_config(encode_config(config)), config);
    const Note note{.key = random_.bytes(300), .value = random_.bytes(5000)};
    EXPECT_EQ(*decode_note(encode_note(note)), note);
    const ThrottleRecord throttle{
        .throttle = {.ns = random_.bytes(20),
                     .key = random_.bytes(200),
                     .rate = {.count = 1 + random_.number() / 2,
                              .per = Duration(1 + static_cast<std::int64_t>(random_.number() / 4))},
                     .burst = 1 + static_cast<std::uint32_t>(random_.number() >> 33),
                     .updated_at = random_.time()},
        .level = {.parts = random_.number(), .at = random_.time()}};
    EXPECT_EQ(*decode_throttle(encode_throttle(throttle)), throttle);
    const ServerState server{.next_seq = random_.number(),
                             .next_queue = static_cast<QueueNumber>(random_.number()),
                             .clock = random_.time()};
    EXPECT_EQ(*decode_server(encode_server(server)), server);
    const auto version = static_cast<std::uint32_t>(random_.number());
    EXPECT_EQ(*decode_format_version(encode_format_version(version)), version);
  }
}

// byte_size is stored for the outline; a record in which it lies would break quotas.
TEST(JobRecordBytes, AreRefusedWhenTheStoredSizeIsNotTheRealOne) {
  constexpr std::size_t kByteSizeOffset = 21;
  std::string bytes = encode_job(example_job());
  bytes[kByteSizeOffset] ^= 1;
  EXPECT_FALSE(decode_job(resealed(bytes)));
}

TEST(QueueRecordBytes, AreRefusedWithAConfigThatThisBuildDoesNotKnow) {
  std::string bytes = encode_queue(example_queue());
  const auto field = bytes.find("\"lease\"");
  ASSERT_NE(field, std::string::npos);
  bytes.replace(field, 7, "\"leash\"");
  const auto decoded = decode_queue(resealed(bytes));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Errc::corrupt);
  EXPECT_THAT(decoded.error().detail, HasSubstr("leash"));
}

}  // namespace
}  // namespace reprise::storage
