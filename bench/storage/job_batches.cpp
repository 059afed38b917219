#include "job_batches.h"

#include "base/clock.h"
#include "base/ids.h"
#include "load_error.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace reprise::bench {
namespace {

constexpr std::size_t kPayloadBytes = 1024;
constexpr char kWorker[] = "bench-worker";

}  // namespace

JobBatches::JobBatches(std::uint32_t queues)
    : now_(SteadyWallClock().now()), payloads_(kPayloadBytes), totals_(queues) {
  server_.next_queue = queues + 1;
  server_.clock = now_;
}

storage::Batch JobBatches::make_queues() {
  for (QueueNumber number = 1; number <= totals_.size(); ++number) {
    const std::string suffix = number == 1 ? "" : "-" + std::to_string(number);
    changes_.changes.emplace_back(PutQueue{boxed(
        QueueRecord{.number = number, .name = {.name = kQueueName + suffix}, .created_at = now_})});
  }
  storage::Batch batch;
  seal(batch);
  return batch;
}

void JobBatches::push(std::uint64_t jobs, storage::Batch& out) {
  for (std::uint64_t i = 0; i < jobs; ++i) {
    const JobKey job = key_of(server_.next_seq++);
    ++totals_of(job).pushed;
    changes_.changes.emplace_back(PutJob{job, make_record(job.seq)});
  }
  changes_.payload_bytes = jobs * (stored_bytes_per_job() + 16);
  seal(out);
}

void JobBatches::lease(std::uint64_t jobs, storage::Batch& out) {
  if (next_lease_ + jobs > server_.next_seq) throw LoadError("leases of jobs not pushed yet");
  for (std::uint64_t i = 0; i < jobs; ++i) {
    const JobKey job = key_of(next_lease_++);
    ++totals_of(job).claimed;
    changes_.changes.emplace_back(PutState{job, make_lease(job.seq)});
  }
  seal(out);
}

void JobBatches::ack(std::uint64_t jobs, storage::Batch& out) {
  if (next_ack_ + jobs > next_lease_) throw LoadError("acks of jobs not leased yet");
  for (std::uint64_t i = 0; i < jobs; ++i) {
    const JobKey job = key_of(next_ack_++);
    ++totals_of(job).completed;
    changes_.changes.emplace_back(EraseJob{job});
  }
  seal(out);
}

std::uint64_t JobBatches::stored_bytes_per_job() const {
  // The same for all: the record's other fields are of fixed width.
  static const std::uint64_t bytes =
      storage::job_key(key_of(1)).size() + storage::encode_job(*make_record(1)).size();
  return bytes;
}

JobKey JobBatches::key_of(Seq seq) const {
  return {.queue = static_cast<QueueNumber>(1 + (seq - 1) % totals_.size()), .seq = seq};
}

RecordPtr JobBatches::make_record(Seq seq) const {
  auto record = std::make_shared<JobRecord>();
  record->pushed_at = now_;
  record->payload.reserve(kPayloadBytes);
  payloads_.append(record->payload, {.serial = seq});
  return record;
}

StatePtr JobBatches::make_lease(Seq seq) const {
  auto state = std::make_shared<JobState>();
  state->status = JobStatus::active;
  state->attempts = 1;
  state->lease_nonce = scramble(seq);
  state->lease_started_at = now_;
  state->lease_deadline = now_ + std::chrono::seconds(30);
  state->worker = kWorker;
  state->first_attempt_at = now_;
  return state;
}

// As the engine does once for each batch: the totals of the queues it touched, which are all, since
// a batch has more jobs than there are queues; and the server's record.
void JobBatches::seal(storage::Batch& out) {
  for (QueueNumber number = 1; number <= totals_.size(); ++number) {
    changes_.changes.emplace_back(PutTotals{number, boxed(totals_[number - 1])});
  }
  changes_.changes.emplace_back(PutServer{boxed(server_)});
  encode(changes_);
  out = std::move(changes_.encoded);
  changes_ = {};
}

}  // namespace reprise::bench
