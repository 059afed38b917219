// Sessions: clients whose commands are applied strictly one after the other, and whose leases end
// when they do. What a connection of the beanstalk protocol is to the broker.
//
// A session knows jobs by their seqs; the broker keeps the secrets of its leases. Commands come in
// batches and are applied in order; one that has to wait (a reserve that finds nothing, a put that
// asks a hook, a kick that reads the dead) holds up those behind it, of its session only. Each
// command has one reply, or several of which each answers a part; replies come in the order of the
// commands and after their changes are as durable as the mode promises.
//
// Consecutive commands of one kind are one command with several items: that is what makes a
// pipelining client fast.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "engine/commands.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

using SessionId = std::uint64_t;

namespace session {

// --- Commands -----------------------------------------------------------------------------------

// Comes back as it is, in its turn: what needs no broker but has its place among the replies.
struct Say {
  std::string text;
};
// Makes the queue if it is not there. → QueueReady
struct UseQueue {
  std::string queue;
};
// → PutDone. The queue is made if it is not there.
struct Put {
  std::string queue;
  std::vector<Result<NewJob>> jobs;
};
// `count` reserves, one after the other. → Reserved and NotReserved, as many as it takes to answer
// all of them.
struct Reserve {
  std::shared_ptr<const std::vector<std::string>> queues;  // not empty; made if they are not there
  std::uint32_t count = 1;
  std::optional<Duration> wait;  // each for so long; nothing: for as long as it takes
};
// Whatever it waits for. → Reserved with one job, or NotReserved because of not_found.
struct ReserveJob {
  Seq job{};
};
// All that end what a job is: → Settled, with as many items.
struct Delete {  // leased by this session, or by nobody
  std::vector<Seq> jobs;
};
struct Release {
  struct Item {
    Seq job{};
    Priority priority{};
    Duration delay{};
  };
  std::vector<Item> items;
};
struct Bury {
  struct Item {
    Seq job{};
    Priority priority{};
  };
  std::vector<Item> items;
};
struct Touch {
  std::vector<Seq> jobs;
};
// One that is dead or waits for its time becomes pending. → Settled
struct KickJob {
  Seq job{};
};
// No job of it is given out for so long; zero: from now on again. → Settled
struct PauseQueue {
  std::string queue;
  Duration pause{};
};
// → FailDone
struct Fail {
  Seq job{};
  std::string error;
};
// The dead of a queue, longest dead first; where there are none, those that wait for their time.
// → Kicked
struct Kick {
  std::string queue;
  std::uint64_t most = 0;
};
// → Found
struct FindJob {
  Seq job{};
};
enum class Which : std::uint8_t {
  ready,    // that a claim would give
  delayed,  // whose time comes first
  buried,   // dead for longest
};
struct FindNext {
  std::string queue;
  Which which{};
};
// → QueueFound
struct FindQueue {
  std::string queue;
};
// → AllQueues
struct ListQueues {};

using Command =
    std::variant<Say, UseQueue, Put, Reserve, ReserveJob, Delete, Release, Bury, Touch, KickJob,
                 PauseQueue, Fail, Kick, FindJob, FindNext, FindQueue, ListQueues>;

// --- Replies ------------------------------------------------------------------------------------

struct QueueReady {
  Status status;
};
struct PutDone {
  std::vector<Result<PushedJob>> results;
};
struct Reserved {
  std::vector<ClaimedJob> jobs;
};
enum class Why : std::uint8_t {
  timed_out,
  deadline_soon,  // one of its leases ends within a second
  not_found,
  no_room,  // as many claims wait as may
};
struct NotReserved {
  Why why{};
  std::uint32_t count = 1;
};
enum class How : std::uint8_t { deleted, released, buried, touched, kicked, paused };
struct Settled {
  How how{};
  std::vector<Status> items;
};
struct FailDone {
  Result<Failed> result;
  Timestamp now;
};
struct Kicked {
  std::uint64_t count = 0;
};
struct JobFound {
  Seq seq{};
  std::string queue;
  JobStatus status{};
  RecordPtr record;
  StatePtr state;  // null: fresh and pending, never leased
  Duration lease;  // how long a lease of it is
  Timestamp now;
};
struct Found {
  std::optional<JobFound> job;
};
struct QueueFacts {
  QueueStats stats;
  std::uint64_t urgent = 0;            // pending and fresh, with a priority below kUrgentBelow
  std::optional<Duration> pause;       // as it was asked for; nothing: it is not paused for a time
  std::optional<Duration> paused_for;  // that is left of it
};
inline constexpr Priority kUrgentBelow = 1024;
struct QueueFound {
  std::shared_ptr<const QueueFacts> queue;  // null: there is none
};
struct AllQueues {
  std::vector<QueueFacts> queues;  // by name
};

using Reply = std::variant<Say, QueueReady, PutDone, Reserved, NotReserved, Settled, FailDone,
                           Kicked, Found, QueueFound, AllQueues>;

// Where replies go. Called on one of the broker's threads, in order and never two at a time; it
// must be short: hand them on.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void deliver(std::vector<Reply> replies) = 0;
  // What was delivered, to this and other sinks, was all of a batch. Follows each deliver() sooner
  // or later.
  virtual void delivered() {}
};

}  // namespace session

struct SessionOptions {
  std::string ns{kDefaultNamespace};  // of all its queues
  std::string worker;                 // who it is; kept in the history of jobs
  std::shared_ptr<session::Sink> sink;
};

}  // namespace reprise
