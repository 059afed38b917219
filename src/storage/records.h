// Records: how the values of the model become bytes and come back.
// Every record is: version u8, body, CRC-32C u32 of all before it (docs/format.md, byte by byte).
// A decoder that meets another version, a wrong checksum or a body that does not add up returns
// Errc::corrupt; it never guesses.
//
// Changing a record: give it a new version, keep decoding the old one, add the old bytes to
// tests/compat, and write the new layout down in docs/format.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/config_entry.h"
#include "model/job.h"
#include "model/note.h"
#include "model/operation.h"
#include "model/queue.h"
#include "model/server_state.h"
#include "model/throttle.h"

namespace reprise::storage {

// The format of a whole data directory. A build refuses a directory with a newer one, and makes one
// of this format out of an older one if that is not before kOldestFormat.
inline constexpr std::uint32_t kFormatVersion = 5;
inline constexpr std::uint32_t kOldestFormat = 3;
inline bool reads_format(std::uint32_t version) {
  return version >= kOldestFormat && version <= kFormatVersion;
}
// "has format 2, this reprise reads formats 3 to 4"
std::string describe_other_format(std::uint32_t version);

std::string encode_job(const JobRecord& record);
// The same behind what `bytes` holds already, and how long it will be.
void encode_job(const JobRecord& record, std::string& bytes);
std::size_t encoded_job_size(const JobRecord& record);
Result<JobRecord> decode_job(std::string_view bytes);

// What a restart needs of a record, without reading its headers and payload. All of it stands at
// the front of the record; the checksum is not verified here but when the whole record is read.
struct JobOutline {
  Timestamp pushed_at;
  Timestamp expires_at;
  Priority priority{};
  Scheduling scheduling;
};
// `bytes`: the whole record, or so much of its front as job_outline_bytes() says.
Result<JobOutline> decode_job_outline(std::string_view bytes);
// How much of the front is mostly enough, and how much it must be for the record that begins so.
inline constexpr std::size_t kJobOutlineBytes = 64;
inline constexpr std::size_t kWholeRecord = SIZE_MAX;
std::size_t job_outline_bytes(std::string_view front);

// JobRecord::byte_size(), as the record says; it may be damaged elsewhere.
Result<std::uint64_t> decode_job_byte_size(std::string_view bytes);

std::string encode_state(const JobState& state);
// Appends to `bytes`.
void encode_state(const JobState& state, std::string& bytes);
Result<JobState> decode_state(std::string_view bytes);

// Of a dead or completed job, and of a death that a webhook is to be told of.
std::string encode_ended(const EndedJob& ended);
// The same behind what `bytes` holds already, with the state as encode_state() has it; and its
// size.
void encode_ended(const JobRecord& record, std::string_view encoded_state, std::string& bytes);
std::size_t encoded_ended_size(const JobRecord& record, std::string_view encoded_state);
Result<EndedJob> decode_ended(std::string_view bytes);

// What stands beside the time of an ending: enough to group the dead without reading them.
struct Ending {
  std::uint64_t fingerprint = 0;  // of the last error
  friend bool operator==(const Ending&, const Ending&) = default;
};
Ending ending_of(const EndedJob& ended);
std::string encode_ending(const Ending& ending);
Result<Ending> decode_ending(std::string_view bytes);

std::string encode_operation(const Operation& operation);
Result<Operation> decode_operation(std::string_view bytes);

std::string encode_audit(const AuditRecord& record);
Result<AuditRecord> decode_audit(std::string_view bytes);

std::string encode_key_entry(const KeyEntry& entry);
Result<KeyEntry> decode_key_entry(std::string_view bytes);

std::string encode_config(const ConfigEntry& entry);
Result<ConfigEntry> decode_config(std::string_view bytes);

std::string encode_note(const Note& note);
Result<Note> decode_note(std::string_view bytes);

std::string encode_throttle(const ThrottleRecord& record);
Result<ThrottleRecord> decode_throttle(std::string_view bytes);

std::string encode_queue(const QueueRecord& queue);
Result<QueueRecord> decode_queue(std::string_view bytes);

std::string encode_totals(const QueueTotals& totals);
Result<QueueTotals> decode_totals(std::string_view bytes);

std::string encode_server(const ServerState& server);
Result<ServerState> decode_server(std::string_view bytes);

// How far the base has come: what the journal need not be asked for any more.
struct CheckpointRecord {
  std::array<char, 16> directory{};  // the id of the data directory
  std::uint64_t covered_batch = 0;
  Seq seq_highest = 0;  // of all jobs that ever reached the base
  friend bool operator==(const CheckpointRecord&, const CheckpointRecord&) = default;
};
std::string encode_checkpoint(const CheckpointRecord& checkpoint);
Result<CheckpointRecord> decode_checkpoint(std::string_view bytes);

std::string encode_format_version(std::uint32_t version);
Result<std::uint32_t> decode_format_version(std::string_view bytes);

}  // namespace reprise::storage
