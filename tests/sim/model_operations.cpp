// Selections by hand and by filter, and what is remembered of them.
#include <algorithm>
#include <utility>

#include "sim/model.h"

namespace reprise::sim {
namespace {

Error error(Errc code) { return {code, ""}; }

AuditRecord audit_of(const Operation& operation) {
  const bool is_retry = operation.kind == OperationKind::retry;
  return {.number = operation.audit_number,
          .at = operation.started_at,
          .action = is_retry ? AuditAction::retry : AuditAction::purge,
          .queue = operation.name,
          .asked_by = operation.asked_by,
          .filter = operation.filter,
          .done = operation.done,
          .skipped = operation.skipped,
          .operation = operation.id};
}

}  // namespace

Result<SelectionReply> Model::retry(const SelectionCommand& command, Timestamp now) {
  return select(command, AuditAction::retry, &Model::retry_one, now);
}

Result<SelectionReply> Model::purge(const SelectionCommand& command, Timestamp now) {
  return select(command, AuditAction::purge, &Model::purge_by_hand, now);
}

Result<SelectionReply> Model::select(const SelectionCommand& command, AuditAction action,
                                     JobAction act, Timestamp now) {
  Queue* queue = find(command.queue);
  if (queue == nullptr) return error(Errc::queue_not_found);
  SelectionReply reply;
  AuditRecord audit{.action = action, .queue = command.queue, .asked_by = command.asked_by};
  for (const SelectedJob& job : command.jobs) {
    const std::string id = job.seq ? encode_job_id(*job.seq) : job.id;
    if (audit.ids.size() < 10) audit.ids.push_back(id);
    const Status done =
        job.seq ? (this->*act)(*queue, *job.seq, now) : Status(error(job.seq.error().code));
    if (done) {
      ++reply.done;
      continue;
    }
    if (!reply.first_refusal) reply.first_refusal = done.error();
    if (done.error().code == Errc::job_not_found) {
      reply.not_found.push_back(job.id);
    } else {
      reply.skipped.push_back(
          {.id = id, .status = job.seq ? status_of(*queue, *job.seq, now) : std::nullopt});
    }
  }
  audit.done = reply.done;
  audit.skipped = reply.skipped.size();
  audit.not_found = reply.not_found.size();
  write_audit(std::move(audit), now);
  return reply;
}

std::optional<JobStatus> Model::status_of(const Queue& queue, Seq seq, Timestamp now) {
  const auto found = queue.jobs.find(seq);
  if (found == queue.jobs.end()) return std::nullopt;
  return effective_status(&found->second.state, now);
}

Result<Operation> Model::start_operation(const StartOperationCommand& command, Timestamp now) {
  const Queue* queue = find(command.queue);
  if (queue == nullptr) return error(Errc::queue_not_found);
  if (command.kind == OperationKind::retry && disk_low_) return Error{Errc::disk_full, ""};
  Operation operation{.id = next_operation_++,
                      .kind = command.kind,
                      .queue = queue->record.number,
                      .name = command.queue,
                      .filter = command.filter,
                      .limit = command.limit,
                      .rate = command.rate,
                      .total = command.limit,
                      .asked_by = command.asked_by,
                      .started_at = now};
  JobFilter rest = command.filter;
  // Letters from other queues are selected too, and nobody has counted those.
  const bool only_dead = command.kind == OperationKind::purge || rest.status == JobStatus::dead ||
                         totals_of(*queue).moved_in == 0;
  if (rest.status == JobStatus::dead) rest.status.reset();
  if (only_dead && rest == JobFilter{}) {
    const std::uint64_t dead = totals_of(*queue).dead_now;
    operation.total = command.limit ? std::min(dead, *command.limit) : dead;
  }
  operation.audit_number = write_audit(audit_of(operation), now);
  operations_.emplace(operation.id, operation);
  return operation;
}

Result<Operation> Model::step_operation(const Engine::OperationStep& step, Timestamp now) {
  const auto found = operations_.find(step.id);
  if (found == operations_.end()) return error(Errc::operation_not_found);
  Operation& operation = found->second;
  if (operation.state != OperationState::running) return operation;
  if (!step.failed.empty()) {
    end_operation(operation, OperationState::failed, now);
    return operation;
  }
  Queue& queue = *find(operation.queue);
  for (const Seq seq : step.jobs) {
    if (operation.limit && operation.done >= *operation.limit) break;
    const Status done = operation.kind == OperationKind::retry
                            ? retry_one(queue, seq, now)
                            : purge_one(queue, seq, PurgeCause::purge);
    if (done) {
      ++operation.done;
    } else if (done.error().code == Errc::disk_full) {
      end_operation(operation, OperationState::failed, now);
      return operation;
    } else if (done.error().code != Errc::job_not_found) {
      ++operation.skipped;
      if (operation.first_skipped.size() < 10) {
        operation.first_skipped.push_back({.id = encode_job_id(seq),
                                           .status = status_of(queue, seq, now),
                                           .code = done.error().code});
      }
    }
  }
  operation.cursor = step.cursor;
  if (step.finished || (operation.limit && operation.done >= *operation.limit)) {
    end_operation(operation, OperationState::done, now);
  }
  return operation;
}

Result<Operation> Model::cancel_operation(OperationId id, const std::string& asked_by,
                                          Timestamp now) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return error(Errc::operation_not_found);
  Operation& operation = found->second;
  if (operation.state != OperationState::running) return error(Errc::wrong_status);
  end_operation(operation, OperationState::cancelled, now);
  write_audit({.action = AuditAction::cancel,
               .queue = operation.name,
               .asked_by = asked_by,
               .done = operation.done,
               .skipped = operation.skipped,
               .operation = id},
              now);
  return operation;
}

void Model::end_operation(Operation& operation, OperationState state, Timestamp now) {
  operation.state = state;
  operation.ended_at = now;
  audit_[operation.audit_number] = audit_of(operation);
}

std::uint64_t Model::write_audit(AuditRecord record, Timestamp now) {
  record.number = next_audit_++;
  record.at = now;
  audit_[record.number] = record;
  return record.number;
}

}  // namespace reprise::sim
