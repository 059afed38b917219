#include "storage/records.h"

#include <algorithm>
#include <bit>
#include <concepts>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "model/queue_config_json.h"

namespace reprise::storage {
namespace {

constexpr std::uint8_t kRecordVersion = 1;  // of every kind of record so far
constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t);
constexpr std::size_t kFrameBytes = sizeof(kRecordVersion) + kChecksumBytes;
// Of a job record: version, pushed_at, expires_at, priority, byte_size, payload_kind.
constexpr std::size_t kJobFixedBytes = 1 + 8 + 8 + 4 + 8 + 1;
static_assert(kJobOutlineBytes == kJobFixedBytes + kChecksumBytes);

Error corrupt(std::string_view kind, std::string_view problem) {
  std::string detail;
  detail.append("the stored ").append(kind).append(" record is damaged: ").append(problem);
  return Error{Errc::corrupt, std::move(detail)};
}

Error unknown_version(std::string_view kind, unsigned version) {
  return corrupt(kind, "it has version " + std::to_string(version) + ", this build reads version " +
                           std::to_string(kRecordVersion));
}

// Sizes, so that a record is allocated once.

std::size_t varint_size(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

std::size_t bytes_size(std::size_t length) { return varint_size(length) + length; }

// Writes one record: the frame is its business, the body the caller's.
class RecordWriter {
 public:
  explicit RecordWriter(std::size_t record_bytes) {
    out_.reserve(record_bytes);
    fixed(kRecordVersion);
  }
  template <std::integral T>
  void fixed(T value) {
    ByteWriter(out_).fixed(value);
  }
  void varint(std::uint64_t value) { ByteWriter(out_).varint(value); }
  void bytes(std::string_view value) { ByteWriter(out_).bytes(value); }
  void time(Timestamp value) { fixed(value.time_since_epoch().count()); }
  template <class Enum>
  void enumerator(Enum value) {
    fixed(static_cast<std::uint8_t>(value));
  }
  std::string finish() {
    fixed(crc32c(out_));
    return std::move(out_);
  }

 private:
  std::string out_;
};

// Reads one record's body. Like ByteReader it may be read to the end and asked once, in finish().
class RecordReader : public ByteReader {
 public:
  static Result<RecordReader> open(std::string_view kind, std::string_view record) {
    if (record.size() < kFrameBytes) return corrupt(kind, "it is too short");
    const std::string_view covered = record.substr(0, record.size() - kChecksumBytes);
    ByteReader checksum(record.substr(covered.size()));
    if (checksum.fixed<std::uint32_t>() != crc32c(covered)) {
      return corrupt(kind, "its checksum does not match");
    }
    const auto version = static_cast<std::uint8_t>(covered.front());
    if (version != kRecordVersion) return unknown_version(kind, version);
    return RecordReader(kind, covered.substr(1));
  }

  Timestamp time() { return Timestamp(Duration(fixed<std::int64_t>())); }
  std::uint32_t varint32() {
    const std::uint64_t value = varint();
    in_range_ &= value <= 0xFFFFFFFFU;
    return static_cast<std::uint32_t>(value);
  }
  template <class Enum>
  Enum enumerator(Enum last) {
    const auto value = fixed<std::uint8_t>();
    in_range_ &= value <= static_cast<std::uint8_t>(last);
    return static_cast<Enum>(value);
  }
  std::string text() { return std::string(bytes()); }
  // A count of things that take a byte each at least: damage cannot make it huge.
  std::size_t count() {
    const std::uint64_t value = varint();
    if (value <= rest().size()) return value;
    in_range_ = false;
    return 0;
  }

  Status finish() const {
    if (done() && in_range_) return ok();
    return corrupt(kind_, "its fields do not add up");
  }

 private:
  RecordReader(std::string_view kind, std::string_view body) : ByteReader(body), kind_(kind) {}

  std::string_view kind_;
  bool in_range_ = true;
};

// Job.

std::size_t encoded_size(const JobRecord& record) {
  std::size_t size = kJobFixedBytes + kChecksumBytes;
  size += bytes_size(record.key.size()) + bytes_size(record.payload.size());
  size += varint_size(record.headers.size());
  for (const auto& [name, value] : record.headers) {
    size += bytes_size(name.size()) + bytes_size(value.size());
  }
  return size;
}

// State.

constexpr std::size_t kVarint32BytesMax = 5;

std::size_t encoded_size_max(const Attempt& attempt) {
  return kVarint32BytesMax + 8 + 8 + 1 + bytes_size(attempt.worker.size()) +
         bytes_size(attempt.error.size());
}

std::size_t encoded_size_max(const JobState& state) {
  std::size_t size = kFrameBytes + 1 + 2 * kVarint32BytesMax + 6 * 8 + 2;
  size += bytes_size(state.worker.size()) + bytes_size(state.last_error.size());
  size += varint_size(state.history.size());
  for (const Attempt& attempt : state.history) size += encoded_size_max(attempt);
  return size;
}

void write_attempt(RecordWriter& out, const Attempt& attempt) {
  out.varint(attempt.number);
  out.time(attempt.started_at);
  out.time(attempt.ended_at);
  out.enumerator(attempt.outcome);
  out.bytes(attempt.worker);
  out.bytes(attempt.error);
}

// Fields are read in the order in which they are written here: the braces fix that order.
Attempt read_attempt(RecordReader& in) {
  return Attempt{.number = in.varint32(),
                 .started_at = in.time(),
                 .ended_at = in.time(),
                 .outcome = in.enumerator(AttemptOutcome::released),
                 .worker = in.text(),
                 .error = in.text()};
}

}  // namespace

std::string encode_job(const JobRecord& record) {
  RecordWriter out(encoded_size(record));
  out.time(record.pushed_at);
  out.time(record.expires_at);
  out.fixed(record.priority);
  out.fixed(record.byte_size());
  out.enumerator(record.payload_kind);
  out.bytes(record.key);
  out.varint(record.headers.size());
  for (const auto& [name, value] : record.headers) {
    out.bytes(name);
    out.bytes(value);
  }
  out.bytes(record.payload);
  return out.finish();
}

Result<JobRecord> decode_job(std::string_view bytes) {
  auto in = RecordReader::open("job", bytes);
  if (!in) return in.error();
  JobRecord record;
  record.pushed_at = in->time();
  record.expires_at = in->time();
  record.priority = in->fixed<Priority>();
  const auto byte_size = in->fixed<std::uint64_t>();
  record.payload_kind = in->enumerator(PayloadKind::bytes);
  record.key = in->text();
  record.headers.resize(in->count());
  for (auto& [name, value] : record.headers) {
    name = in->text();
    value = in->text();
  }
  record.payload = in->text();
  REPRISE_TRY(in->finish());
  if (byte_size != record.byte_size()) return corrupt("job", "its fields do not add up");
  return record;
}

Result<JobOutline> decode_job_outline(std::string_view bytes) {
  if (bytes.size() < kJobOutlineBytes) return corrupt("job", "it is too short");
  ByteReader in(bytes);
  const auto version = in.fixed<std::uint8_t>();
  if (version != kRecordVersion) return unknown_version("job", version);
  JobOutline outline;
  outline.pushed_at = Timestamp(Duration(in.fixed<std::int64_t>()));
  outline.expires_at = Timestamp(Duration(in.fixed<std::int64_t>()));
  outline.priority = in.fixed<Priority>();
  outline.byte_size = in.fixed<std::uint64_t>();
  return outline;
}

std::string encode_state(const JobState& state) {
  RecordWriter out(encoded_size_max(state));
  out.enumerator(state.status);
  out.varint(state.failures);
  out.varint(state.attempts);
  out.time(state.due);
  out.fixed(state.lease_nonce);
  out.time(state.lease_started_at);
  out.time(state.lease_deadline);
  out.bytes(state.worker);
  out.time(state.first_attempt_at);
  out.bytes(state.last_error);
  out.varint(state.history.size());
  for (const Attempt& attempt : state.history) write_attempt(out, attempt);
  out.enumerator(state.death_reason);
  out.enumerator(state.decided_by);
  out.time(state.died_at);
  return out.finish();
}

Result<JobState> decode_state(std::string_view bytes) {
  auto in = RecordReader::open("state", bytes);
  if (!in) return in.error();
  JobState state;
  state.status = in->enumerator(JobStatus::completed);
  state.failures = in->varint32();
  state.attempts = in->varint32();
  state.due = in->time();
  state.lease_nonce = in->fixed<std::uint64_t>();
  state.lease_started_at = in->time();
  state.lease_deadline = in->time();
  state.worker = in->text();
  state.first_attempt_at = in->time();
  state.last_error = in->text();
  const std::size_t attempts = in->count();
  state.history.reserve(std::min(attempts, kHistoryKept));
  for (std::size_t i = 0; i < attempts; ++i) state.history.push_back(read_attempt(*in));
  state.death_reason = in->enumerator(DeathReason::corrupt);
  state.decided_by = in->enumerator(DecidedBy::client);
  state.died_at = in->time();
  REPRISE_TRY(in->finish());
  return state;
}

// A dead record frames the job record and the state record as they stood in their own keyspaces,
// so a new version of either needs no new version here.
std::string encode_dead(const DeadJob& dead) {
  const std::string job = encode_job(*dead.record);
  const std::string state = encode_state(*dead.state);
  RecordWriter out(kFrameBytes + bytes_size(job.size()) + bytes_size(state.size()));
  out.bytes(job);
  out.bytes(state);
  return out.finish();
}

Result<DeadJob> decode_dead(std::string_view bytes) {
  auto in = RecordReader::open("dead", bytes);
  if (!in) return in.error();
  const std::string_view job_bytes = in->bytes();
  const std::string_view state_bytes = in->bytes();
  REPRISE_TRY(in->finish());
  auto job = decode_job(job_bytes);
  if (!job) return job.error();
  auto state = decode_state(state_bytes);
  if (!state) return state.error();
  return DeadJob{.record = std::make_shared<const JobRecord>(*std::move(job)),
                 .state = std::make_shared<const JobState>(*std::move(state))};
}

std::string encode_key_entry(const KeyEntry& entry) {
  RecordWriter out(kFrameBytes + 16);
  out.fixed(entry.seq);
  out.time(entry.expires_at);
  return out.finish();
}

Result<KeyEntry> decode_key_entry(std::string_view bytes) {
  auto in = RecordReader::open("key", bytes);
  if (!in) return in.error();
  const KeyEntry entry{.seq = in->fixed<Seq>(), .expires_at = in->time()};
  REPRISE_TRY(in->finish());
  return entry;
}

std::string encode_queue(const QueueRecord& queue) {
  JsonWriter json;
  write_config_json(json, queue.config);
  const std::string_view config = json.text();
  RecordWriter out(kFrameBytes + 4 + 1 + 8 + bytes_size(queue.name.ns.size()) +
                   bytes_size(queue.name.name.size()) + bytes_size(config.size()));
  out.fixed(queue.number);
  out.bytes(queue.name.ns);
  out.bytes(queue.name.name);
  out.fixed(static_cast<std::uint8_t>(queue.paused));
  out.time(queue.created_at);
  out.bytes(config);
  return out.finish();
}

Result<QueueRecord> decode_queue(std::string_view bytes) {
  auto in = RecordReader::open("queue", bytes);
  if (!in) return in.error();
  QueueRecord queue;
  queue.number = in->fixed<QueueNumber>();
  queue.name.ns = in->text();
  queue.name.name = in->text();
  queue.paused = in->enumerator(std::uint8_t{1}) != 0;
  queue.created_at = in->time();
  const std::string_view config = in->bytes();
  REPRISE_TRY(in->finish());
  const auto json = Json::parse(config);
  if (!json) return corrupt("queue", json.error().detail);
  if (auto applied = apply_config_json(queue.config, *json); !applied) {
    return corrupt("queue", applied.error().detail);
  }
  return queue;
}

std::string encode_totals(const QueueTotals& totals) {
  constexpr std::size_t kVarint64BytesMax = 10;
  RecordWriter out(kFrameBytes + 13 * kVarint64BytesMax);
  out.varint(totals.pushed);
  out.varint(totals.duplicates);
  out.varint(totals.claimed);
  out.varint(totals.completed);
  out.varint(totals.failed);
  out.varint(totals.released);
  out.varint(totals.lease_expired);
  out.varint(totals.expired);
  out.varint(totals.died);
  out.varint(totals.dropped);
  out.varint(totals.corrupt);
  out.varint(totals.dead_now);
  out.varint(totals.live_bytes);
  return out.finish();
}

Result<QueueTotals> decode_totals(std::string_view bytes) {
  auto in = RecordReader::open("totals", bytes);
  if (!in) return in.error();
  const QueueTotals totals{.pushed = in->varint(),
                           .duplicates = in->varint(),
                           .claimed = in->varint(),
                           .completed = in->varint(),
                           .failed = in->varint(),
                           .released = in->varint(),
                           .lease_expired = in->varint(),
                           .expired = in->varint(),
                           .died = in->varint(),
                           .dropped = in->varint(),
                           .corrupt = in->varint(),
                           .dead_now = in->varint(),
                           .live_bytes = in->varint()};
  REPRISE_TRY(in->finish());
  return totals;
}

std::string encode_server(const ServerState& server) {
  RecordWriter out(kFrameBytes + 8 + 4 + 8);
  out.fixed(server.next_seq);
  out.fixed(server.next_queue);
  out.time(server.clock);
  return out.finish();
}

Result<ServerState> decode_server(std::string_view bytes) {
  auto in = RecordReader::open("server", bytes);
  if (!in) return in.error();
  const ServerState server{
      .next_seq = in->fixed<Seq>(), .next_queue = in->fixed<QueueNumber>(), .clock = in->time()};
  REPRISE_TRY(in->finish());
  return server;
}

std::string encode_checkpoint(const CheckpointRecord& checkpoint) {
  RecordWriter out(kFrameBytes + checkpoint.directory.size() + 8 + 8);
  for (const char byte : checkpoint.directory) out.fixed(byte);
  out.fixed(checkpoint.covered_batch);
  out.fixed(checkpoint.seq_highest);
  return out.finish();
}

Result<CheckpointRecord> decode_checkpoint(std::string_view bytes) {
  auto in = RecordReader::open("checkpoint", bytes);
  if (!in) return in.error();
  CheckpointRecord checkpoint;
  for (char& byte : checkpoint.directory) byte = in->fixed<char>();
  checkpoint.covered_batch = in->fixed<std::uint64_t>();
  checkpoint.seq_highest = in->fixed<Seq>();
  REPRISE_TRY(in->finish());
  return checkpoint;
}

std::string encode_format_version(std::uint32_t version) {
  RecordWriter out(kFrameBytes + sizeof(version));
  out.fixed(version);
  return out.finish();
}

Result<std::uint32_t> decode_format_version(std::string_view bytes) {
  auto in = RecordReader::open("format", bytes);
  if (!in) return in.error();
  const auto version = in->fixed<std::uint32_t>();
  REPRISE_TRY(in->finish());
  return version;
}

}  // namespace reprise::storage
