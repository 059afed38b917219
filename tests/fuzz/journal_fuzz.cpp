// Whatever bytes stand in the files of a data directory: segment headers, frames, the mutations in
// them and the chunks of the job index decode or are refused, and what decodes is the same after it
// was encoded and decoded again.
//
// An input is a letter for what it is, then its bytes; checksums are put right here.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "fuzz/fuzz.h"
#include "storage/batch.h"
#include "storage/durable/job_index.h"
#include "storage/journal/format.h"

namespace reprise::storage {
namespace {

constexpr std::uint32_t kSeed = 0x5EED;
constexpr ChunkKey kChunk{.queue = 3, .number = 5};

// Takes what it is told, and makes the same batch again.
class Repeat : public Batch::Visitor {
 public:
  void put(Keyspace keyspace, std::string_view key, std::string_view value) override {
    batch.put(keyspace, key, value);
  }
  void erase(Keyspace keyspace, std::string_view key) override { batch.erase(keyspace, key); }
  void erase_range(Keyspace keyspace, std::string_view begin, std::string_view end) override {
    batch.erase_range(keyspace, begin, end);
  }

  Batch batch;
};

void check_batch(std::string_view bytes, std::size_t count) {
  Repeat first;
  if (!Batch::visit(bytes, count, first)) return;
  Repeat second;
  first.batch.visit(second);
  REPRISE_CHECK(first.batch.bytes() == second.batch.bytes());
  REPRISE_CHECK(first.batch.count() <= count);  // ranges of nothing are left out
}

void check_segment_header(std::string_view fields) {
  std::string bytes("REPRISEJ");
  ByteWriter(bytes).fixed(crc32c(fields));
  bytes += fields;
  const auto header = journal::decode_segment_header(bytes);
  REPRISE_CHECK(header.has_value() == (bytes.size() == journal::kSegmentHeaderBytes) ||
                bytes.size() > journal::kSegmentHeaderBytes);
  if (header && bytes.size() == journal::kSegmentHeaderBytes) {
    REPRISE_CHECK(journal::encode_segment_header(*header) == bytes);
  }
}

// Frames one after the other, as recovery reads them.
void check_frames(std::string_view bytes) {
  for (std::size_t at = 0; (at = journal::find_frame(bytes, at)) < bytes.size();) {
    REPRISE_CHECK(at % journal::kFrameAlignment == 0);
    const auto frame = journal::decode_frame(bytes.substr(at), kSeed);
    if (!frame) {
      at += journal::kFrameAlignment;
      continue;
    }
    REPRISE_CHECK(frame->body.size() == frame->header.body_bytes);
    REPRISE_CHECK(journal::looks_like_frame(bytes.substr(at), frame->header.batch));
    REPRISE_CHECK(journal::encode_frame_header(frame->header, frame->body, kSeed) ==
                  bytes.substr(at, journal::kFrameHeaderBytes));
    // A frame of another life of the file is none.
    REPRISE_CHECK(!journal::decode_frame(bytes.substr(at), kSeed + 1));
    check_batch(frame->body, frame->header.mutations);
    at += journal::frame_bytes(frame->header.body_bytes);
  }
}

// Its bytes as the body of a whole frame.
std::string framed(std::string_view body, std::uint32_t mutations) {
  const journal::FrameHeader header{.body_bytes = static_cast<std::uint32_t>(body.size()),
                                    .mutations = mutations,
                                    .batch = 9,
                                    .synced_batch = 8};
  std::string bytes = journal::encode_frame_header(header, body, kSeed);
  bytes += body;
  bytes.resize(journal::frame_bytes(body.size()));
  return bytes;
}

void check_chunk(std::string_view body) {
  std::string bytes(body);
  ByteWriter(bytes).fixed(crc32c(bytes));
  const auto chunk = JobChunk::decode(kChunk, bytes);
  if (!chunk) {
    REPRISE_CHECK(chunk.error().code == Errc::corrupt && !chunk.error().detail.empty());
    return;
  }
  const std::string once = chunk->encode();
  auto again = JobChunk::decode(kChunk, once);
  REPRISE_CHECK(static_cast<bool>(again));
  REPRISE_CHECK(again->encode() == once);
  REPRISE_CHECK(again->seqs() == chunk->seqs());
  // Each job can be taken out and put back.
  for (const Seq seq : chunk->seqs()) {
    REPRISE_CHECK(chunk_of({kChunk.queue, seq}) == kChunk);
    auto entry = again->take(seq);
    REPRISE_CHECK(entry.has_value());
    again->set(seq, *std::move(entry));
  }
}

JobChunk chunk() {
  JobChunk chunk(kChunk);
  const Seq first = kChunk.first_seq();
  for (Seq low = 10; low < 200; ++low) chunk.set(first + low, {.priority = 1000});
  chunk.set(first + 1, {.priority = 3, .scheduling = {.fairness_key = "acme", .weight = 2}});
  JobState active;
  active.status = JobStatus::active;
  active.lease_nonce = 77;
  chunk.set(first + 2, {.expires_at = Timestamp(Duration(5)), .state = active});
  chunk.set(first + 3, {.damage = "its checksum does not match"});
  return chunk;
}

Batch batch() {
  Batch batch;
  batch.put(Keyspace::jobs, "key", "value");
  batch.erase(Keyspace::jobs, "key");
  batch.erase_range(Keyspace::jobs, "a", "b");
  return batch;
}

}  // namespace
}  // namespace reprise::storage

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise::storage;
  const auto [kind, rest] = reprise::fuzz::choice_of(data, size);
  if (kind == 'h') check_segment_header(rest);
  if (kind == 'f') check_frames(rest);
  if (kind == 'i') check_chunk(rest);
  if (kind == 'b' && !rest.empty()) {
    const auto count = static_cast<unsigned char>(rest.front());
    check_batch(rest.substr(1), count);
    check_frames(framed(rest.substr(1), count));
  }
  return 0;
}

std::vector<std::string> reprise::fuzz::seeds() {
  using namespace reprise::storage;
  std::string header = journal::encode_segment_header({.format = 4, .number = 2, .capacity = 4096});
  std::string index = chunk().encode();
  index.resize(index.size() - sizeof(std::uint32_t));
  const std::string frame = framed(batch().bytes(), 3);
  return {"h" + header.substr(12), "i" + index, "f" + frame + frame,
          "b\x03" + std::string(batch().bytes())};
}
