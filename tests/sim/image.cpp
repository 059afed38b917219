#include "sim/image.h"

#include <algorithm>

#include "sim/describe.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace reprise::sim {
namespace {

using storage::Keyspace;

// Decodes every pair of one keyspace with `take`, which returns a Status.
template <class Take>
Status read_all(const storage::Storage& storage, Keyspace keyspace, const Take& take,
                std::string_view prefix = {}) {
  Status result = ok();
  const std::string end = prefix.empty() ? std::string() : storage::prefix_end(prefix);
  const Status scanned = storage.scan(keyspace, prefix, end, [&](auto key, auto value) {
    result = take(key, value);
    return result.has_value();
  });
  REPRISE_TRY(scanned);
  return result;
}

// Keeps a decoded value under its key, or passes the error on.
template <class Map, class Value>
Status keep(Map& map, const typename Map::key_type& key, Result<Value> value) {
  if (!value) return value.error();
  map.emplace(key, std::move(*value));
  return ok();
}

Status read_meta(const storage::Storage& storage, Image& image) {
  const auto bytes = storage.get(Keyspace::meta, storage::kServerKey);
  if (!bytes) return bytes.error();
  if (*bytes) {
    const auto server = storage::decode_server(**bytes);
    if (!server) return server.error();
    image.next_seq = server->next_seq;
    image.next_queue = server->next_queue;
    image.next_operation = server->next_operation;
    image.next_audit = server->next_audit;
  }
  for (const auto& [name, queue] : image.queues) {
    const auto totals = storage.get(Keyspace::meta, storage::totals_key(queue.number));
    if (!totals) return totals.error();
    if (!*totals) continue;
    REPRISE_TRY(keep(image.totals, queue.number, storage::decode_totals(**totals)));
  }
  const auto take_operation = [&](auto, auto value) -> Status {
    const auto operation = storage::decode_operation(value);
    if (!operation) return operation.error();
    image.operations.emplace(operation->id, without_words(*operation));
    return ok();
  };
  const auto take_audit = [&](auto, auto value) -> Status {
    const auto record = storage::decode_audit(value);
    if (!record) return record.error();
    image.audit.emplace(record->number, *record);
    return ok();
  };
  const auto take_webhook = [&](auto key, auto value) -> Status {
    const auto dead = storage::decode_ended(value);
    if (!dead) return dead.error();
    const auto webhook = storage::parse_webhook_key(key).value();
    image.webhooks.emplace(webhook, std::pair(*dead->record, *dead->state));
    return ok();
  };
  const auto take_config = [&](auto, auto value) -> Status {
    const auto entry = storage::decode_config(value);
    if (!entry) return entry.error();
    image.config.emplace(std::pair(entry->ns, entry->key), *entry);
    return ok();
  };
  const auto take_throttle = [&](auto, auto value) -> Status {
    const auto record = storage::decode_throttle(value);
    if (!record) return record.error();
    image.throttles.emplace(std::pair(record->throttle.ns, record->throttle.key),
                            StoredThrottle{*record});
    return ok();
  };
  REPRISE_TRY(read_all(storage, Keyspace::meta, take_throttle, storage::kThrottlePrefix));
  REPRISE_TRY(read_all(storage, Keyspace::meta, take_operation, storage::kOperationPrefix));
  REPRISE_TRY(read_all(storage, Keyspace::meta, take_config, storage::kConfigPrefix));
  REPRISE_TRY(read_all(storage, Keyspace::meta, take_audit, storage::kAuditPrefix));
  return read_all(storage, Keyspace::meta, take_webhook, storage::kWebhookPrefix);
}

Status read_jobs(const storage::Storage& storage, Image& image) {
  const auto job = [](std::string_view key) { return storage::parse_job_key(key).value(); };
  REPRISE_TRY(read_all(storage, Keyspace::jobs, [&](auto key, auto value) {
    return keep(image.records, job(key), storage::decode_job(value));
  }));
  REPRISE_TRY(read_all(storage, Keyspace::states, [&](auto key, auto value) {
    return keep(image.states, job(key), storage::decode_state(value));
  }));
  const auto keep_ended = [&](auto& jobs) {
    return [&](auto key, auto value) -> Status {
      const auto ended = storage::decode_ended(value);
      if (!ended) return ended.error();
      jobs.emplace(job(key), std::pair(*ended->record, *ended->state));
      return ok();
    };
  };
  REPRISE_TRY(read_all(storage, Keyspace::dead, keep_ended(image.dead)));
  REPRISE_TRY(read_all(storage, Keyspace::completed, keep_ended(image.completed)));
  return read_all(storage, Keyspace::endings, [&](auto key, auto value) {
    return keep(image.endings, storage::parse_ending_key(key).value(),
                storage::decode_ending(value));
  });
}

// The first key at which two maps differ, told with `text`.
template <class Map, class KeyText>
std::string first_difference(std::string_view what, const Map& got, const Map& want,
                             const KeyText& key_text) {
  const auto tell = [&](const auto& key, std::string_view got_text, std::string_view want_text) {
    return std::string(what) + " " + key_text(key) + ": stored " + std::string(got_text) +
           ", expected " + std::string(want_text);
  };
  for (const auto& [key, value] : want) {
    const auto found = got.find(key);
    if (found == got.end()) return tell(key, "nothing", describe(value));
    if (!(found->second == value)) return tell(key, describe(found->second), describe(value));
  }
  for (const auto& [key, value] : got) {
    if (!want.contains(key)) return tell(key, describe(value), "nothing");
  }
  return {};
}

}  // namespace

std::string describe(const StoredThrottle& stored) { return describe(stored.record); }

bool operator==(const StoredThrottle& a, const StoredThrottle& b) {
  if (a.record.throttle != b.record.throttle) return false;
  const Throttle& throttle = a.record.throttle;
  const Timestamp at = std::max(a.record.level.at, b.record.level.at);
  const auto parts_then = [&](const ThrottleLevel& level) {
    const auto passed = static_cast<std::uint64_t>((at - level.at).count());
    const auto full = static_cast<std::uint64_t>(throttle.rate.per.count()) * throttle.burst;
    return std::min(level.parts + passed * throttle.rate.count, full);
  };
  return parts_then(a.record.level) == parts_then(b.record.level);
}

Result<Image> read_image(const storage::Storage& storage) {
  Image image;
  REPRISE_TRY(read_all(storage, Keyspace::queues, [&](auto, auto value) -> Status {
    const auto queue = storage::decode_queue(value);
    if (!queue) return queue.error();
    image.queues.emplace(queue->name, *queue);
    return ok();
  }));
  REPRISE_TRY(read_meta(storage, image));
  REPRISE_TRY(read_jobs(storage, image));
  REPRISE_TRY(read_all(storage, Keyspace::keys, [&](auto key, auto value) {
    const auto parts = storage::parse_idempotency_key(key).value();
    return keep(image.keys, {parts.queue, std::string(parts.key)},
                storage::decode_key_entry(value));
  }));
  return image;
}

Operation without_words(Operation operation) {
  operation.error.clear();
  for (SkippedJob& skipped : operation.first_skipped) skipped.reason.clear();
  return operation;
}

Image image_of(const Model& model) {
  Image image{.operations = model.operations(),
              .audit = model.audit(),
              .webhooks = model.webhooks(),
              .config = model.config(),
              .next_seq = model.next_seq(),
              .next_queue = model.next_queue(),
              .next_operation = model.next_operation(),
              .next_audit = model.next_audit()};
  for (const auto& [name, bucket] : model.throttles()) {
    image.throttles.emplace(
        name, StoredThrottle{{bucket.throttle, {.parts = bucket.least, .at = bucket.at}}});
  }
  for (const auto& [name, queue] : model.queues()) {
    const QueueNumber number = queue.record.number;
    image.queues.emplace(name, queue.record);
    image.totals.emplace(number, Model::totals_of(queue));
    for (const auto& [key, entry] : queue.keys) image.keys.emplace(std::pair(number, key), entry);
    for (const auto& [seq, job] : queue.jobs) {
      if (!is_alive(job)) {
        const bool dead = job.state.status == JobStatus::dead;
        const auto kind = dead ? storage::EndKind::dead : storage::EndKind::completed;
        const EndedJob ended{std::make_shared<const JobRecord>(job.record),
                             std::make_shared<const JobState>(job.state)};
        (dead ? image.dead : image.completed)
            .emplace(JobKey{number, seq}, std::pair(job.record, job.state));
        image.endings.emplace(storage::EndingKey{number, kind, job.state.ended_at, seq},
                              storage::ending_of(ended));
        continue;
      }
      image.records.emplace(JobKey{number, seq}, job.record);
      if (job.state != JobState{}) image.states.emplace(JobKey{number, seq}, job.state);
    }
  }
  return image;
}

std::string difference(const Image& got, const Image& want) {
  const auto job_text = [](JobKey key) { return describe(key); };
  const auto number_text = [](std::uint64_t number) { return "#" + std::to_string(number); };
  for (const std::string& found : {
           first_difference("queue", got.queues, want.queues,
                            [](const QueueName& name) { return describe(name); }),
           first_difference("record of job", got.records, want.records, job_text),
           first_difference("state of job", got.states, want.states, job_text),
           first_difference("dead job", got.dead, want.dead, job_text),
           first_difference("completed job", got.completed, want.completed, job_text),
           first_difference("ending", got.endings, want.endings,
                            [](const storage::EndingKey& key) {
                              return describe(JobKey{key.queue, key.seq}) + " kind " +
                                     std::to_string(static_cast<int>(key.kind));
                            }),
           first_difference("operation", got.operations, want.operations, number_text),
           first_difference("audit record", got.audit, want.audit, number_text),
           first_difference("webhook", got.webhooks, want.webhooks,
                            [](const WebhookKey& key) {
                              return describe(JobKey{key.queue, key.seq});
                            }),
           first_difference("config", got.config, want.config,
                            [](const auto& key) { return key.first + "/" + key.second; }),
           first_difference("throttle", got.throttles, want.throttles,
                            [](const auto& key) { return key.first + "/" + key.second; }),
           first_difference(
               "key", got.keys, want.keys,
               [](const auto& key) { return "#" + std::to_string(key.first) + "/" + key.second; }),
           first_difference("totals of queue", got.totals, want.totals, number_text),
       }) {
    if (!found.empty()) return found;
  }
  if (got.next_seq != want.next_seq) {
    return "next id: stored " + std::to_string(got.next_seq) + ", expected " +
           std::to_string(want.next_seq);
  }
  if (got.next_queue != want.next_queue) return "next queue number";
  if (got.next_operation != want.next_operation) return "next operation";
  if (got.next_audit != want.next_audit) return "next audit record";
  return {};
}

}  // namespace reprise::sim
