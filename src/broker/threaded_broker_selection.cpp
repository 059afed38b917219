// What people do with jobs that were given up, and deaths that are to be told.
#include <algorithm>
#include <utility>

#include "broker/job_reader.h"
#include "broker/selection.h"
#include "broker/threaded_broker_impl.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace reprise {
namespace {

using storage::Keyspace;

// One page of the audit records may be looked for among so many.
constexpr std::uint64_t kAuditRecordsLookedAt = 10'000;

bool is_asked_for(const AuditQuery& query, const AuditRecord& record) {
  return (query.ns.empty() || record.queue.ns == query.ns) &&
         (query.queue.empty() || record.queue.name == query.queue) &&
         (!query.action || record.action == *query.action);
}

// Newest first: records are numbered without gaps.
Result<AuditPage> read_audit(const storage::Storage& storage, const AuditQuery& query,
                             std::uint64_t end) {
  AuditPage page;
  std::uint64_t number = std::min(query.before.value_or(end), end);
  for (std::uint64_t looked_at = 0; number > 1 && looked_at < kAuditRecordsLookedAt; ++looked_at) {
    const auto bytes = storage.get(Keyspace::meta, storage::audit_key(number - 1));
    if (!bytes) return bytes.error();
    if (!*bytes) return page;  // older ones are gone
    const auto record = storage::decode_audit(**bytes);
    if (!record) return record.error();
    if (is_asked_for(query, *record)) {
      if (page.records.size() == query.limit) {
        page.before = number;
        return page;
      }
      page.records.push_back(*record);
    }
    --number;
  }
  return page;
}

Result<std::vector<PendingWebhook>> read_webhooks(const storage::Storage& storage,
                                                  const std::optional<WebhookKey>& after,
                                                  std::uint32_t limit) {
  std::string begin(storage::kWebhookPrefix);
  if (after) begin = storage::webhook_key(*after) + '\0';
  std::vector<PendingWebhook> found;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const auto parsed = storage::parse_webhook_key(key);
    auto ended = storage::decode_ended(value);
    // One that cannot be read is told to nobody; without a url its sender is done with it.
    if (parsed) {
      found.push_back({.key = *parsed});
      if (ended) {
        found.back().record = std::move(ended->record);
        found.back().state = std::move(ended->state);
      }
    }
    return found.size() < limit;
  };
  REPRISE_TRY(
      storage.scan(Keyspace::meta, begin, storage::prefix_end(storage::kWebhookPrefix), visit));
  return found;
}

}  // namespace

Housekeeper::Requests ThreadedBroker::housekeeping() {
  return {
      .step_operation =
          [this](Engine::OperationStep step, Done<Operation> done) {
            post<Operation>(std::move(done), 0, [this, step = std::move(step)](Timestamp at) {
              return core_->engine().step_operation(step, at);
            });
          },
      .keepings =
          [this](Done<std::vector<Engine::Keeping>> done) {
            post<std::vector<Engine::Keeping>>(
                std::move(done), 0, [this](Timestamp at) { return core_->engine().keepings(at); });
          },
      .let_go =
          [this](std::vector<Engine::EndedRef> jobs, Done<std::uint64_t> done) {
            post<std::uint64_t>(std::move(done), 0, [this, jobs = std::move(jobs)](Timestamp at) {
              core_->engine().let_go(jobs, at);
              return Result<std::uint64_t>(jobs.size());
            });
          }};
}

// Ids become jobs on the reader's thread, and are judged on the engine's.
void ThreadedBroker::select(SelectionRequest request, SelectionAction act,
                            Done<SelectionReply> done) {
  QueueName queue = request.queue;
  post_read<SelectionReply>(
      reader_, std::move(queue), std::move(done),
      [this, act, request = std::move(request)](ReadStart start, Done<SelectionReply> reply) {
        SelectionCommand command{.queue = request.queue, .asked_by = request.asked_by};
        const JobReader reader(storage_, start.queue);
        for (const std::string& id : request.ids) {
          command.jobs.push_back({id, reader.resolve(id, start.seq_end)});
        }
        post<SelectionReply>(std::move(reply), 0,
                             [this, act, command = std::move(command)](Timestamp at) {
                               return (core_->engine().*act)(command, at);
                             });
      });
}

void ThreadedBroker::retry(SelectionRequest request, Done<SelectionReply> done) {
  select(std::move(request), &Engine::retry, std::move(done));
}

void ThreadedBroker::purge(SelectionRequest request, Done<SelectionReply> done) {
  select(std::move(request), &Engine::purge, std::move(done));
}

void ThreadedBroker::start_operation(StartOperationCommand command, Duration wait,
                                     Done<Operation> done) {
  Done<Operation> started = [this, wait,
                             done = std::move(done)](Result<Operation> operation) mutable {
    if (!operation) return done(operation.error());
    housekeeper_->begin(*operation, wait, std::move(done));
  };
  post<Operation>(std::move(started), 0, [this, command = std::move(command)](Timestamp at) {
    return core_->engine().start_operation(command, at);
  });
}

void ThreadedBroker::preview(StartOperationCommand command, Done<SelectionPreview> done) {
  QueueName queue = command.queue;
  post_read<SelectionPreview>(
      scanner_, std::move(queue), std::move(done),
      [this, command = std::move(command)](ReadStart start, Done<SelectionPreview> reply) {
        const Operation as_if{.kind = command.kind,
                              .queue = start.queue,
                              .name = command.queue,
                              .filter = command.filter,
                              .limit = command.limit,
                              .started_at = now()};
        reply(preview_selection(storage_, as_if));
      });
}

void ThreadedBroker::error_groups(ErrorGroupsQuery query, Done<ErrorGroups> done) {
  QueueName queue = query.queue;
  post_read<ErrorGroups>(
      scanner_, std::move(queue), std::move(done),
      [this, query = std::move(query)](ReadStart start, Done<ErrorGroups> reply) {
        reply(group_errors(storage_, start.queue, query, now()));
      });
}

void ThreadedBroker::list_operations(Done<std::vector<Operation>> done) {
  post<std::vector<Operation>>(std::move(done), 0, [this](Timestamp) {
    std::vector<Operation> list;
    for (const auto& [id, operation] : core_->engine().operations()) list.push_back(operation);
    std::ranges::reverse(list);
    return Result<std::vector<Operation>>(std::move(list));
  });
}

void ThreadedBroker::show_operation(OperationId id, Done<Operation> done) {
  post<Operation>(std::move(done), 0,
                  [this, id](Timestamp) { return core_->engine().operation(id); });
}

void ThreadedBroker::cancel_operation(OperationId id, std::string asked_by, Done<Operation> done) {
  Done<Operation> then_tell = [this, done = std::move(done)](Result<Operation> operation) mutable {
    if (operation) housekeeper_->ended(*operation);
    done(std::move(operation));
  };
  post<Operation>(std::move(then_tell), 0, [this, id, by = std::move(asked_by)](Timestamp at) {
    return core_->engine().cancel_operation(id, by, at);
  });
}

void ThreadedBroker::audit(AuditQuery query, Done<AuditPage> done) {
  Done<std::uint64_t> after_commit = [this, query = std::move(query),
                                      done = std::move(done)](Result<std::uint64_t> end) mutable {
    if (!end) return done(end.error());
    read_on<AuditPage>(reader_, std::move(done),
                       [this, query = std::move(query), end = *end](Done<AuditPage> reply) {
                         reply(read_audit(storage_, query, end));
                       });
  };
  post<std::uint64_t>(std::move(after_commit), 0, [this](Timestamp) {
    return Result<std::uint64_t>(core_->engine().next_audit());
  });
}

void ThreadedBroker::pending_webhooks(std::optional<WebhookKey> after, std::uint32_t limit,
                                      Done<std::vector<PendingWebhook>> done) {
  using Page = std::vector<PendingWebhook>;
  read_on<Page>(reader_, std::move(done), [this, after, limit](Done<Page> reply) {
    auto page = read_webhooks(storage_, after, limit);
    if (!page) return reply(page.error());
    post<Page>(std::move(reply), 0, [this, found = *std::move(page)](Timestamp) mutable {
      for (PendingWebhook& webhook : found) {
        const QueueRecord* queue = core_->engine().queue_record(webhook.key.queue);
        if (queue == nullptr) continue;
        webhook.queue = queue->name;
        if (webhook.record != nullptr) webhook.url = queue->config.on_dead_webhook;
      }
      return Result<Page>(std::move(found));
    });
  });
}

void ThreadedBroker::finish_webhooks(std::vector<WebhookKey> keys, Done<std::uint64_t> done) {
  post<std::uint64_t>(std::move(done), 0, [this, keys = std::move(keys)](Timestamp) {
    core_->engine().finish_webhooks(keys);
    return Result<std::uint64_t>(keys.size());
  });
}

void ThreadedBroker::on_webhooks(std::function<void()> told) {
  const std::lock_guard lock(mutex_);
  told_webhooks_ = std::move(told);
}

}  // namespace reprise
