// Records: how the values of the model become bytes and come back.
// Every record is: version u8, body, CRC-32C u32 of all before it (docs/format.md, byte by byte).
// A decoder that meets another version, a wrong checksum or a body that does not add up returns
// Errc::corrupt; it never guesses.
//
// Changing a record: give it a new version, keep decoding the old one, add the old bytes to
// tests/compat, and write the new layout down in docs/format.md.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/job.h"
#include "model/operation.h"
#include "model/queue.h"
#include "model/server_state.h"

namespace reprise::storage {

// The format of a whole data directory. A build refuses a directory with a newer one.
inline constexpr std::uint32_t kFormatVersion = 3;

std::string encode_job(const JobRecord& record);
Result<JobRecord> decode_job(std::string_view bytes);

// What a restart needs of a record, without reading its headers and payload. The fields stand at
// fixed places at the front of the record; the checksum is not verified here but when the whole
// record is read.
struct JobOutline {
  Timestamp pushed_at;
  Timestamp expires_at;
  Priority priority{};
  std::uint64_t byte_size{};  // JobRecord::byte_size()
};
// How much of the record's front is enough.
inline constexpr std::size_t kJobOutlineBytes = 34;
Result<JobOutline> decode_job_outline(std::string_view bytes);

std::string encode_state(const JobState& state);
Result<JobState> decode_state(std::string_view bytes);

// Of a dead or completed job, and of a death that a webhook is to be told of.
std::string encode_ended(const EndedJob& ended);
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
