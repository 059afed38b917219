#include "storage/records.h"

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "base/json_writer.h"
#include "model/error_fingerprint.h"
#include "model/queue_config_json.h"
#include "storage/record_frame.h"
#include "storage/scheduling_bytes.h"

namespace reprise::storage {
namespace {

// With scheduling attributes behind the headers: 2; without any: 1. Only jobs with a lease of their
// own are written as 4.
constexpr RecordVersion kJobVersion = 4;
constexpr RecordVersion kJobWithoutLease = 3;
// Since format 3. Without the words and the version of a hook: 2.
constexpr RecordVersion kStateVersion = 3;
constexpr RecordVersion kOldestState = 2;
constexpr RecordVersion kTotalsVersion = 2;
constexpr RecordVersion kServerVersion = 2;

// Of a job record: version, pushed_at, expires_at, priority, byte_size, payload_kind.
constexpr std::size_t kJobFixedBytes = 1 + 8 + 8 + 4 + 8 + 1;
// The length of what follows them must be in the first bytes that are read.
static_assert(kJobOutlineBytes >= kJobFixedBytes + kVarintBytesMax);

// Job.

std::size_t encoded_size(const JobRecord& record, std::size_t attribute_bytes) {
  std::size_t size = kJobFixedBytes + bytes_size(attribute_bytes) + kChecksumBytes;
  size += bytes_size(record.key.size()) + bytes_size(record.payload.size());
  size += varint_size(record.headers.size());
  for (const auto& [name, value] : record.headers) {
    size += bytes_size(name.size()) + bytes_size(value.size());
  }
  if (record.lease) size += varint_size(static_cast<std::uint64_t>(record.lease->count()));
  return size;
}

Error damaged_job() { return corrupt_record("job", "its fields do not add up"); }

// The fields at fixed places, which all versions have; to be read on behind them.
struct JobFront {
  RecordVersion version{};
  JobOutline outline;
  std::uint64_t byte_size{};
};
Result<JobFront> read_job_front(ByteReader& in) {
  if (in.rest().size() < kJobFixedBytes + kChecksumBytes) {
    return corrupt_record("job", "it is too short");
  }
  JobFront front;
  front.version = in.fixed<RecordVersion>();
  if (front.version < kFirstVersion || front.version > kJobVersion) {
    return unknown_version("job", front.version, kJobVersion);
  }
  front.outline.pushed_at = Timestamp(Duration(in.fixed<std::int64_t>()));
  front.outline.expires_at = Timestamp(Duration(in.fixed<std::int64_t>()));
  front.outline.priority = in.fixed<Priority>();
  front.byte_size = in.fixed<std::uint64_t>();
  in.fixed<std::uint8_t>();  // payload_kind
  return front;
}

void skip_key_and_headers(ByteReader& in) {
  in.bytes();
  for (std::uint64_t left = in.varint(); left > 0 && !in.failed(); --left) {
    in.bytes();
    in.bytes();
  }
}

// As version 2 has them. nullopt: damaged.
std::optional<Scheduling> read_scheduling_2(ByteReader& in) {
  Scheduling scheduling;
  if (const std::string_view key = in.bytes(); !key.empty()) scheduling.fairness_key = key;
  const std::uint64_t weight = in.varint();
  scheduling.weight = static_cast<std::uint32_t>(weight);
  for (std::uint64_t left = in.varint(); left > 0 && !in.failed(); --left) {
    scheduling.throttle_keys.emplace_back(in.bytes());
  }
  if (in.failed() || weight != scheduling.weight) return std::nullopt;
  return scheduling;
}

using Checksum = RecordReader::Checksum;
Result<JobRecord> decode_job(std::string_view bytes, Checksum checksum);
Result<JobState> decode_state(std::string_view bytes, Checksum checksum);

// State.

constexpr std::size_t kVarint32BytesMax = 5;

std::size_t encoded_size_max(const JobState& state) {
  std::size_t size = kFrameBytes + 1 + 3 * kVarint32BytesMax + 7 * 8 + 2;
  size += bytes_size(state.worker.size()) + bytes_size(state.last_error.size());
  size += bytes_size(state.last_error_type.size()) + bytes_size(state.origin_queue.size());
  size += bytes_size(state.death_note.size()) + bytes_size(state.hook_version.size());
  size += varint_size(state.history.size());
  size += state.history.encoded().size();
  return size;
}

}  // namespace

std::string encode_job(const JobRecord& record) {
  std::string bytes;
  bytes.reserve(encoded_job_size(record));
  encode_job(record, bytes);
  return bytes;
}

std::size_t encoded_job_size(const JobRecord& record) {
  return encoded_size(record, encode_scheduling(record.scheduling).size());
}

void encode_job(const JobRecord& record, std::string& bytes) {
  const std::string attributes = encode_scheduling(record.scheduling);
  RecordWriter out(bytes, record.lease ? kJobVersion : kJobWithoutLease);
  out.time(record.pushed_at);
  out.time(record.expires_at);
  out.fixed(record.priority);
  out.fixed(record.byte_size());
  out.enumerator(record.payload_kind);
  out.bytes(attributes);
  out.bytes(record.key);
  out.varint(record.headers.size());
  for (const auto& [name, value] : record.headers) {
    out.bytes(name);
    out.bytes(value);
  }
  if (record.lease) out.varint(static_cast<std::uint64_t>(record.lease->count()));
  out.bytes(record.payload);
  out.seal();
}

Result<JobRecord> decode_job(std::string_view bytes) { return decode_job(bytes, Checksum::check); }

namespace {

Result<JobRecord> decode_job(std::string_view bytes, Checksum checksum) {
  auto in = RecordReader::open("job", bytes, kJobVersion, kFirstVersion, checksum);
  if (!in) return in.error();
  JobRecord record;
  record.pushed_at = in->time();
  record.expires_at = in->time();
  record.priority = in->fixed<Priority>();
  const auto byte_size = in->fixed<std::uint64_t>();
  record.payload_kind = in->enumerator(PayloadKind::bytes);
  std::optional<Scheduling> scheduling = Scheduling{};
  if (in->version() >= 3) scheduling = decode_scheduling(in->bytes());
  record.key = in->text();
  record.headers.resize(in->count());
  for (auto& [name, value] : record.headers) {
    name = in->text();
    value = in->text();
  }
  if (in->version() == 2) scheduling = read_scheduling_2(*in);
  if (!scheduling) return damaged_job();
  record.scheduling = *std::move(scheduling);
  if (in->version() >= 4) record.lease = Duration(static_cast<std::int64_t>(in->varint()));
  record.payload = in->text();
  REPRISE_TRY(in->finish());
  if (byte_size != record.byte_size()) return damaged_job();
  return record;
}

}  // namespace

std::size_t job_outline_bytes(std::string_view front) {
  ByteReader in(front);
  const auto fixed = read_job_front(in);
  if (!fixed || fixed->version == 1) return front.size();
  if (fixed->version == 2) return kWholeRecord;
  const std::uint64_t attributes = in.varint();
  const std::size_t before = front.size() - in.rest().size();
  return in.failed() || attributes > kWholeRecord - before ? kWholeRecord : before + attributes;
}

Result<JobOutline> decode_job_outline(std::string_view bytes) {
  ByteReader in(bytes);
  auto front = read_job_front(in);
  if (!front) return front.error();
  if (front->version == 1) return std::move(front->outline);
  if (front->version == 2) skip_key_and_headers(in);
  auto scheduling = front->version == 2 ? read_scheduling_2(in) : decode_scheduling(in.bytes());
  if (!scheduling || in.failed()) return damaged_job();
  front->outline.scheduling = *std::move(scheduling);
  return std::move(front->outline);
}

Result<std::uint64_t> decode_job_byte_size(std::string_view bytes) {
  ByteReader in(bytes);
  const auto front = read_job_front(in);
  if (!front) return front.error();
  return front->byte_size;
}

std::string encode_state(const JobState& state) {
  std::string bytes;
  bytes.reserve(encoded_size_max(state));
  encode_state(state, bytes);
  return bytes;
}

void encode_state(const JobState& state, std::string& bytes) {
  RecordWriter out(bytes, kStateVersion);
  out.enumerator(state.status);
  out.varint(state.failures);
  out.varint(state.attempts);
  out.varint(state.generation);
  out.time(state.due);
  out.fixed(state.lease_nonce);
  out.time(state.lease_started_at);
  out.time(state.lease_deadline);
  out.bytes(state.worker);
  out.time(state.first_attempt_at);
  out.bytes(state.last_error);
  out.bytes(state.last_error_type);
  out.varint(state.history.size());
  out.encoded(state.history.encoded());
  out.time(state.returned_at);
  out.bytes(state.origin_queue);
  out.enumerator(state.death_reason);
  out.enumerator(state.decided_by);
  out.bytes(state.death_note);
  out.bytes(state.hook_version);
  out.time(state.ended_at);
  out.seal();
}

Result<JobState> decode_state(std::string_view bytes) {
  return decode_state(bytes, Checksum::check);
}

namespace {

Result<JobState> decode_state(std::string_view bytes, Checksum checksum) {
  auto in = RecordReader::open("state", bytes, kStateVersion, kOldestState, checksum);
  if (!in) return in.error();
  JobState state;
  state.status = in->enumerator(JobStatus::completed);
  state.failures = in->varint32();
  state.attempts = in->varint32();
  state.generation = in->varint32();
  state.due = in->time();
  state.lease_nonce = in->fixed<std::uint64_t>();
  state.lease_started_at = in->time();
  state.lease_deadline = in->time();
  state.worker = in->text();
  state.first_attempt_at = in->time();
  state.last_error = in->text();
  state.last_error_type = in->text();
  auto history = AttemptHistory::read(*in, in->count());
  if (!history) return corrupt_record("state", "its fields do not add up");
  state.history = *std::move(history);
  state.returned_at = in->time();
  state.origin_queue = in->text();
  state.death_reason = in->enumerator(DeathReason::buried);
  state.decided_by = in->enumerator(DecidedBy::hook);
  if (in->version() >= 3) {
    state.death_note = in->text();
    state.hook_version = in->text();
  }
  state.ended_at = in->time();
  REPRISE_TRY(in->finish());
  return state;
}

}  // namespace

// It frames the job record and the state record as they stood in their own keyspaces,
// so a new version of either needs no new version here.
std::string encode_ended(const EndedJob& ended) {
  const std::string state = encode_state(*ended.state);
  std::string bytes;
  bytes.reserve(encoded_ended_size(*ended.record, state));
  encode_ended(*ended.record, state, bytes);
  return bytes;
}

std::size_t encoded_ended_size(const JobRecord& record, std::string_view encoded_state) {
  return kFrameBytes + bytes_size(encoded_job_size(record)) + bytes_size(encoded_state.size());
}

void encode_ended(const JobRecord& record, std::string_view encoded_state, std::string& bytes) {
  RecordWriter out(bytes, kFirstVersion);
  out.bytes(encoded_job_size(record), [&](std::string& at) { encode_job(record, at); });
  out.bytes(encoded_state);
  out.seal();
}

Result<EndedJob> decode_ended(std::string_view bytes) {
  auto in = RecordReader::open("ended job", bytes);
  if (!in) return in.error();
  const std::string_view job_bytes = in->bytes();
  const std::string_view state_bytes = in->bytes();
  REPRISE_TRY(in->finish());
  auto job = decode_job(job_bytes, Checksum::checked_with_frame);
  if (!job) return job.error();
  auto state = decode_state(state_bytes, Checksum::checked_with_frame);
  if (!state) return state.error();
  return EndedJob{.record = std::make_shared<const JobRecord>(*std::move(job)),
                  .state = std::make_shared<const JobState>(*std::move(state))};
}

Ending ending_of(const EndedJob& ended) {
  return {.fingerprint = error_fingerprint(ended.state->last_error, ended.state->last_error_type)};
}

std::string encode_ending(const Ending& ending) {
  RecordWriter out(kFrameBytes + 8);
  out.fixed(ending.fingerprint);
  return out.finish();
}

Result<Ending> decode_ending(std::string_view bytes) {
  auto in = RecordReader::open("ending", bytes);
  if (!in) return in.error();
  const Ending ending{.fingerprint = in->fixed<std::uint64_t>()};
  REPRISE_TRY(in->finish());
  return ending;
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

std::string encode_config(const ConfigEntry& entry) {
  RecordWriter out(kFrameBytes + bytes_size(entry.ns.size()) + bytes_size(entry.key.size()) +
                   bytes_size(entry.value.size()) + 8);
  out.bytes(entry.ns);
  out.bytes(entry.key);
  out.bytes(entry.value);
  out.time(entry.updated_at);
  return out.finish();
}

Result<ConfigEntry> decode_config(std::string_view bytes) {
  auto in = RecordReader::open("config", bytes);
  if (!in) return in.error();
  ConfigEntry entry{
      .ns = in->text(), .key = in->text(), .value = in->text(), .updated_at = in->time()};
  REPRISE_TRY(in->finish());
  return entry;
}

std::string encode_note(const Note& note) {
  RecordWriter out(kFrameBytes + bytes_size(note.key.size()) + bytes_size(note.value.size()));
  out.bytes(note.key);
  out.bytes(note.value);
  return out.finish();
}

Result<Note> decode_note(std::string_view bytes) {
  auto in = RecordReader::open("note", bytes);
  if (!in) return in.error();
  Note note{.key = in->text(), .value = in->text()};
  REPRISE_TRY(in->finish());
  return note;
}

std::string encode_throttle(const ThrottleRecord& record) {
  const Throttle& throttle = record.throttle;
  RecordWriter out(kFrameBytes + bytes_size(throttle.ns.size()) + bytes_size(throttle.key.size()) +
                   64);
  out.bytes(throttle.ns);
  out.bytes(throttle.key);
  out.varint(throttle.rate.count);
  out.varint(static_cast<std::uint64_t>(throttle.rate.per.count()));
  out.varint(throttle.burst);
  out.time(throttle.updated_at);
  out.varint(record.level.parts);
  out.time(record.level.at);
  return out.finish();
}

Result<ThrottleRecord> decode_throttle(std::string_view bytes) {
  auto in = RecordReader::open("throttle", bytes);
  if (!in) return in.error();
  ThrottleRecord record;
  Throttle& throttle = record.throttle;
  throttle.ns = in->text();
  throttle.key = in->text();
  throttle.rate.count = in->varint();
  throttle.rate.per = Duration(static_cast<Duration::rep>(in->varint()));
  throttle.burst = static_cast<std::uint32_t>(in->varint());
  throttle.updated_at = in->time();
  record.level.parts = in->varint();
  record.level.at = in->time();
  REPRISE_TRY(in->finish());
  if (throttle.rate.count == 0 || throttle.rate.per <= Duration::zero() || throttle.burst == 0) {
    return corrupt_record("throttle", "a rate or burst of nothing");
  }
  return record;
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
  if (!json) return corrupt_record("queue", json.error().detail);
  if (auto applied = apply_config_json(queue.config, *json, config); !applied) {
    return corrupt_record("queue", applied.error().detail);
  }
  return queue;
}

std::string encode_totals(const QueueTotals& totals) {
  constexpr std::size_t kVarint64BytesMax = 10;
  RecordWriter out(kFrameBytes + 21 * kVarint64BytesMax, kTotalsVersion);
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
  out.varint(totals.moved_in);
  out.varint(totals.moved_out);
  out.varint(totals.claimed_retry);
  out.varint(totals.retried);
  out.varint(totals.purged);
  out.varint(totals.dead_expired);
  out.varint(totals.dead_evicted);
  out.varint(totals.dead_now);
  out.varint(totals.completed_now);
  out.varint(totals.live_bytes);
  return out.finish();
}

Result<QueueTotals> decode_totals(std::string_view bytes) {
  auto in = RecordReader::open("totals", bytes, kTotalsVersion);
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
                           .moved_in = in->varint(),
                           .moved_out = in->varint(),
                           .claimed_retry = in->varint(),
                           .retried = in->varint(),
                           .purged = in->varint(),
                           .dead_expired = in->varint(),
                           .dead_evicted = in->varint(),
                           .dead_now = in->varint(),
                           .completed_now = in->varint(),
                           .live_bytes = in->varint()};
  REPRISE_TRY(in->finish());
  return totals;
}

std::string encode_server(const ServerState& server) {
  RecordWriter out(kFrameBytes + 8 + 4 + 8 + 8 + 8, kServerVersion);
  out.fixed(server.next_seq);
  out.fixed(server.next_queue);
  out.fixed(server.next_operation);
  out.fixed(server.next_audit);
  out.time(server.clock);
  return out.finish();
}

Result<ServerState> decode_server(std::string_view bytes) {
  auto in = RecordReader::open("server", bytes, kServerVersion);
  if (!in) return in.error();
  const ServerState server{.next_seq = in->fixed<Seq>(),
                           .next_queue = in->fixed<QueueNumber>(),
                           .next_operation = in->fixed<std::uint64_t>(),
                           .next_audit = in->fixed<std::uint64_t>(),
                           .clock = in->time()};
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

std::string describe_other_format(std::uint32_t version) {
  return "has format " + std::to_string(version) + ", this reprise reads formats " +
         std::to_string(kOldestFormat) + " to " + std::to_string(kFormatVersion);
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
