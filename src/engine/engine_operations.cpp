// Selections by hand and by filter, and the records of who asked for them.
#include <algorithm>
#include <utility>

#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

constexpr std::ptrdiff_t kRunningOperationsMax = 100;
constexpr std::ptrdiff_t kEndedOperationsKept = 100;
constexpr std::uint64_t kAuditRecordsKept = 10'000;

SkippedJob skipped_job(std::string id, const Error& why) {
  return {.id = std::move(id), .status = std::nullopt, .code = why.code, .reason = why.detail};
}

bool is_running(const std::pair<const OperationId, Operation>& entry) {
  return entry.second.state == OperationState::running;
}

// How many jobs there are to do at most. What a filter leaves of the dead is not known before they
// have been looked at, nor how many came to this queue from others.
std::optional<std::uint64_t> total_of(const StartOperationCommand& command,
                                      const QueueState& queue) {
  const bool only_dead = command.kind == OperationKind::purge ||
                         command.filter.status == JobStatus::dead || queue.totals.moved_in == 0;
  JobFilter beside_status = command.filter;
  beside_status.status.reset();
  const bool all_dead = command.filter.status != JobStatus::failed && beside_status == JobFilter{};
  if (only_dead && all_dead) {
    return std::min(queue.totals.dead_now, command.limit.value_or(queue.totals.dead_now));
  }
  return command.limit;
}

}  // namespace

Result<SelectionReply> Engine::retry(const SelectionCommand& command, Timestamp now) {
  return select(command, AuditAction::retry, &Engine::retry_one, now);
}

Result<SelectionReply> Engine::purge(const SelectionCommand& command, Timestamp now) {
  return select(command, AuditAction::purge, &Engine::purge_by_hand, now);
}

Status Engine::purge_by_hand(QueueState& queue, Seq seq, Timestamp now) {
  return purge_one(queue, seq, PurgeCause::purge, now);
}

Result<SelectionReply> Engine::select(const SelectionCommand& command, AuditAction action,
                                      JobAction act, Timestamp now) {
  QueueState* queue = lookup(command.queue);
  if (queue == nullptr) return queue_not_found(command.queue);
  SelectionReply reply;
  AuditRecord audit{.action = action, .queue = command.queue, .asked_by = command.asked_by};
  for (const SelectedJob& job : command.jobs) {
    const Status done = job.seq ? (this->*act)(*queue, *job.seq, now) : Status(job.seq.error());
    if (audit.ids.size() < kAuditIdsTold) {
      audit.ids.push_back(job.seq ? encode_job_id(*job.seq) : job.id);
    }
    if (done) {
      ++reply.done;
      continue;
    }
    if (!reply.first_refusal) reply.first_refusal = done.error();
    if (done.error().code == Errc::job_not_found) {
      reply.not_found.push_back(job.id);
    } else {
      SkippedJob skipped = skipped_job(job.seq ? encode_job_id(*job.seq) : job.id, done.error());
      if (job.seq) skipped.status = status_of({queue->record.number, *job.seq}, now);
      reply.skipped.push_back(std::move(skipped));
    }
  }
  audit.done = reply.done;
  audit.skipped = reply.skipped.size();
  audit.not_found = reply.not_found.size();
  write_audit(std::move(audit), now);
  return reply;
}

Result<Operation> Engine::start_operation(const StartOperationCommand& command, Timestamp now) {
  const QueueState* queue = lookup(command.queue);
  if (queue == nullptr) return queue_not_found(command.queue);
  if (command.kind == OperationKind::retry) REPRISE_TRY(check_disk_for_retry());
  if (std::ranges::count_if(operations_, is_running) >= kRunningOperationsMax) {
    return Error{Errc::too_many_operations, "too many operations are running (at most " +
                                                std::to_string(kRunningOperationsMax) +
                                                "); wait for some, or cancel them"};
  }
  Operation operation{.id = server_.next_operation++,
                      .kind = command.kind,
                      .queue = queue->record.number,
                      .name = command.queue,
                      .filter = command.filter,
                      .limit = command.limit,
                      .rate = command.rate,
                      .asked_by = command.asked_by,
                      .started_at = now};
  server_changed_ = true;
  operation.total = total_of(command, *queue);
  operation.audit_number = write_audit(audit_of(operation), now);
  ledger_.put_operation(operation);
  operations_.emplace(operation.id, operation);
  return operation;
}

Result<Operation> Engine::step_operation(const OperationStep& step, Timestamp now) {
  const auto found = operations_.find(step.id);
  if (found == operations_.end()) {
    return Error{Errc::operation_not_found, "no operation " + std::to_string(step.id)};
  }
  Operation& operation = found->second;
  if (operation.state != OperationState::running) return operation;
  if (!step.failed.empty()) {
    end_operation(operation, OperationState::failed, step.failed, now);
    return operation;
  }
  QueueState& queue = *by_number_.at(operation.queue);
  for (const Seq seq : step.jobs) {
    if (operation.left() == 0) break;
    const Status done = operation.kind == OperationKind::retry
                            ? retry_one(queue, seq, now)
                            : purge_one(queue, seq, PurgeCause::purge, now);
    if (done) {
      ++operation.done;
    } else if (done.error().code == Errc::disk_full) {
      end_operation(operation, OperationState::failed, done.error().detail, now);
      return operation;
    } else if (done.error().code != Errc::job_not_found) {
      note_skipped(operation, seq, done.error(), now);
    }
  }
  operation.cursor = step.cursor;
  if (step.finished || operation.left() == 0) {
    end_operation(operation, OperationState::done, {}, now);
  } else {
    ledger_.put_operation(operation);
  }
  return operation;
}

void Engine::note_skipped(Operation& operation, Seq seq, const Error& why, Timestamp now) {
  ++operation.skipped;
  if (operation.first_skipped.size() >= kSkippedTold) return;
  SkippedJob skipped = skipped_job(encode_job_id(seq), why);
  skipped.status = status_of({operation.queue, seq}, now);
  operation.first_skipped.push_back(std::move(skipped));
}

Result<Operation> Engine::cancel_operation(OperationId id, const std::string& asked_by,
                                           Timestamp now) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) {
    return Error{Errc::operation_not_found, "no operation " + std::to_string(id)};
  }
  Operation& operation = found->second;
  if (operation.state != OperationState::running) {
    return Error{Errc::wrong_status, "operation " + std::to_string(id) + " is " +
                                         std::string(operation_state_name(operation.state)) +
                                         ", there is nothing to cancel"};
  }
  end_operation(operation, OperationState::cancelled, {}, now);
  write_audit({.action = AuditAction::cancel,
               .queue = operation.name,
               .asked_by = asked_by,
               .done = operation.done,
               .skipped = operation.skipped,
               .operation = id},
              now);
  return operation;
}

Result<Operation> Engine::operation(OperationId id) const {
  const auto found = operations_.find(id);
  if (found != operations_.end()) return found->second;
  return Error{Errc::operation_not_found, "no operation " + std::to_string(id)};
}

// Its audit record gets its counts. The operation itself stays for a while, to be looked at.
void Engine::end_operation(Operation& operation, OperationState state, std::string error,
                           Timestamp now) {
  operation.state = state;
  operation.error = std::move(error);
  operation.ended_at = now;
  ledger_.put_operation(operation);
  // One that is no longer kept must not come back: nobody would erase it again.
  const bool is_kept = operation.audit_number + kAuditRecordsKept >= server_.next_audit;
  if (is_kept) ledger_.put_audit(audit_of(operation));
  forget_old_operations();
}

// Those that ended longest ago; never the one that has just ended.
void Engine::forget_old_operations() {
  const auto age = [](const auto& entry) {
    return std::pair(is_running(entry) ? kNever : entry.second.ended_at, entry.first);
  };
  const auto running = std::ranges::count_if(operations_, is_running);
  while (std::ssize(operations_) - running > kEndedOperationsKept) {
    const auto oldest = std::ranges::min_element(operations_, {}, age);
    ledger_.erase_operation(oldest->first);
    operations_.erase(oldest);
  }
}

AuditRecord Engine::audit_of(const Operation& operation) const {
  return {
      .number = operation.audit_number,
      .at = operation.started_at,
      .action = operation.kind == OperationKind::retry ? AuditAction::retry : AuditAction::purge,
      .queue = operation.name,
      .asked_by = operation.asked_by,
      .filter = operation.filter,
      .done = operation.done,
      .skipped = operation.skipped,
      .operation = operation.id};
}

std::uint64_t Engine::write_audit(AuditRecord record, Timestamp now) {
  record.number = server_.next_audit++;
  record.at = now;
  server_changed_ = true;
  ledger_.put_audit(record);
  if (record.number > kAuditRecordsKept) ledger_.erase_audit(record.number - kAuditRecordsKept);
  return record.number;
}

}  // namespace reprise
