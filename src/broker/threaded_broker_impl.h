// ThreadedBroker's ways to put work in line; for its own .cpp files.
#pragma once

#include <memory>
#include <utility>

#include "broker/threaded_broker.h"

namespace reprise {

template <class T, class Apply>
void ThreadedBroker::post(Done<T> done, std::size_t bytes, Apply apply) {
  // Shared, because a refused task is destroyed with all it holds and the caller is still owed its
  // answer.
  auto shared_done = std::make_shared<Done<T>>(std::move(done));
  Task task = [this, shared_done, apply = std::move(apply)](Timestamp now) mutable {
    reply_with_batch<T>(std::move(*shared_done), apply(now));
  };
  if (const Status admitted = admit({std::move(task), bytes}); !admitted) {
    (*shared_done)(admitted.error());
  }
}

template <class T>
void ThreadedBroker::reply_with_batch(Done<T> done, Result<T> result) {
  open_replies_.emplace_back(
      [done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
}

template <class T, class Apply>
void ThreadedBroker::post_waiting(Done<T> done, std::size_t bytes,
                                  absl::flat_hash_map<RequestId, Done<T>>& waiting, Apply apply) {
  auto shared_done = std::make_shared<Done<T>>(std::move(done));
  Task task = [this, shared_done, &waiting, apply = std::move(apply)](Timestamp now) mutable {
    const RequestId id = next_request_++;
    if (auto reply = apply(id, now)) {
      reply_with_batch<T>(std::move(*shared_done), std::move(*reply));
    } else {
      waiting.emplace(id, std::move(*shared_done));
    }
  };
  if (const Status admitted = admit({std::move(task), bytes}); !admitted) {
    (*shared_done)(admitted.error());
  }
}

template <class T>
void ThreadedBroker::answer_waiting(absl::flat_hash_map<RequestId, Done<T>>& waiting, RequestId id,
                                    Result<T> result) {
  const auto found = waiting.find(id);
  if (found == waiting.end()) return;
  reply_with_batch<T>(std::move(found->second), std::move(result));
  waiting.erase(found);
}

template <class T, class Read>
void ThreadedBroker::read_on(WorkerThread& reader, Done<T> done, Read read) {
  // Shared for the same reason.
  auto shared_done = std::make_shared<Done<T>>(std::move(done));
  const bool posted = reader.post(
      [shared_done, read = std::move(read)]() mutable { read(std::move(*shared_done)); });
  if (!posted) (*shared_done)(Error{Errc::overloaded, "too many reads are waiting"});
}

template <class T, class Read>
void ThreadedBroker::post_read(WorkerThread& reader, QueueName queue, Done<T> done, Read read) {
  Done<ReadStart> started = [this, &reader, done = std::move(done),
                             read = std::move(read)](Result<ReadStart> start) mutable {
    if (!start) return done(start.error());
    read_on<T>(reader, std::move(done),
               [read = std::move(read), start = *start](Done<T> reply) mutable {
                 read(start, std::move(reply));
               });
  };
  post<ReadStart>(std::move(started), 0,
                  [this, queue = std::move(queue)](Timestamp) -> Result<ReadStart> {
                    const auto number = core_->engine().find_queue(queue);
                    if (!number) return number.error();
                    return ReadStart{*number, core_->engine().next_seq()};
                  });
}

}  // namespace reprise
