// Sessions: applies the commands of sessions (session.h) to the engine.
//
// A session is a line of commands. The first is applied; if it has to wait, for a claim, a hook or
// a look at the dead, the line stands until its answer comes, and the other sessions go on.
// Threads: the engine's only. Time: comes in.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/any_invocable.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/endings.h"
#include "broker/session.h"
#include "engine/engine.h"

namespace reprise {

class Sessions {
 public:
  struct Host {
    std::function<ClaimId()> next_claim;
    std::function<RequestId()> next_request;
    // The dead of a queue, longest dead first, behind `after`: at once, since they were there when
    // that one was found. Nothing: from the start, when all that was applied before is in storage.
    // Calls back on the engine's thread.
    using DeadFound = absl::AnyInvocable<void(Result<std::vector<Ended>>, Timestamp now)>;
    std::function<void(QueueNumber queue, std::optional<storage::EndingKey> after, std::size_t most,
                       DeadFound found)>
        find_dead;
    // Soon, on the engine's thread, after what came before.
    std::function<void(absl::AnyInvocable<void(Timestamp now)> task)> later;
  };
  Sessions(Engine& engine, Host host) : engine_(engine), host_(std::move(host)) {}

  void open(SessionId id, SessionOptions options);
  // Unknown ids are fine, here and below: a session may be closed with commands on their way.
  void submit(SessionId id, std::vector<session::Command> commands, Timestamp now);
  // From now on its reserves wait for nothing; the one that does is answered by the engine.
  void end_waits(SessionId id);
  void close(SessionId id, Timestamp now);

  // Answers of the engine to what sessions have asked. False: it was not one of them, and the
  // answer is as it was.
  bool take(Engine::ClaimAnswer& answer, Timestamp now);
  bool take(Engine::PushAnswer& answer, Timestamp now);
  bool take(Engine::FailAnswer& answer, Timestamp now);

  // What was answered since the last call, to be told when it is durable. First those whose reserve
  // has waited: a job is sooner with whoever works on it, and who pushed it hears a little later.
  struct Told {
    std::shared_ptr<session::Sink> sink;
    std::vector<session::Reply> replies;
  };
  std::vector<Told> take_replies();

  std::size_t size() const { return sessions_.size(); }

 private:
  struct Held {
    LeaseToken token;
    Timestamp deadline;
  };
  struct Session {
    SessionId id{};
    SessionOptions options;
    std::deque<session::Command> line;  // the first may have been begun
    bool waiting = false;               // the first has been, and its answer is to come
    bool never_waits = false;
    bool has_told = false;  // it is in told_first_ or told_
    absl::flat_hash_map<Seq, Held> held;
    std::vector<session::Reply> replies;
    // Of a reserve that waits.
    std::optional<ClaimId> claim;
    // Of a kick under way.
    std::uint64_t kicked = 0;
    std::size_t dead_asked_for = 0;
    std::string last_queue;  // where its jobs were found last
  };
  // Whether a command has been answered, or waits.
  enum class Step : std::uint8_t { answered, waits };

  Session* find(SessionId id);
  void run(Session& session, Timestamp now);
  void answer(Session& session, session::Reply reply);
  void answer_first(Session& session, session::Reply reply);
  // The first command has been answered: goes on with the next.
  void go_on(Session& session, Timestamp now);
  QueueName name(const Session& session, const std::string& queue) const;
  Status ensure_queue(const QueueName& queue, Timestamp now);
  std::optional<JobKey> locate(Session& session, Seq seq);

  Step apply(Session& session, session::Say& command, Timestamp now);
  Step apply(Session& session, session::UseQueue& command, Timestamp now);
  Step apply(Session& session, session::Put& command, Timestamp now);
  Step apply(Session& session, session::Reserve& command, Timestamp now);
  Step apply(Session& session, session::ReserveJob& command, Timestamp now);
  Step apply(Session& session, session::Delete& command, Timestamp now);
  Step apply(Session& session, session::Release& command, Timestamp now);
  Step apply(Session& session, session::Bury& command, Timestamp now);
  Step apply(Session& session, session::Touch& command, Timestamp now);
  Step apply(Session& session, session::KickJob& command, Timestamp now);
  Step apply(Session& session, session::PauseQueue& command, Timestamp now);
  Step apply(Session& session, session::Fail& command, Timestamp now);
  Step apply(Session& session, session::Kick& command, Timestamp now);
  Step apply(Session& session, session::FindJob& command, Timestamp now);
  Step apply(Session& session, session::FindNext& command, Timestamp now);
  Step apply(Session& session, session::FindQueue& command, Timestamp now);
  Step apply(Session& session, session::ListQueues& command, Timestamp now);

  // Reserve.
  ClaimCommand claim_command(const Session& session, const session::Reserve& reserve) const;
  void hold(Session& session, const std::vector<ClaimedJob>& jobs);
  // When its first lease ends, those that have ended left out.
  Timestamp first_deadline(Session& session, Timestamp now) const;

  Result<LeaseToken> token_of(const Session& session, Seq seq) const;
  Status drop(Session& session, Seq seq, Timestamp now);
  void find_dead(Session& session, QueueNumber queue, std::optional<storage::EndingKey> after,
                 std::uint64_t most);
  void kick_dead(SessionId id, Result<std::vector<Ended>> found, Timestamp now);
  // Some of them. True: that was all.
  bool kick_delayed(Session& session, session::Kick& command, Timestamp now);
  void kick_further(SessionId id, Timestamp now);
  std::optional<session::JobFound> look_at(Session& session, std::optional<JobKey> job,
                                           Timestamp now);
  session::QueueFacts facts_of(QueueStats stats, Timestamp now) const;

  Engine& engine_;
  const Host host_;
  absl::flat_hash_map<SessionId, std::unique_ptr<Session>> sessions_;
  absl::flat_hash_map<ClaimId, SessionId> claims_;
  absl::flat_hash_map<RequestId, SessionId> requests_;
  // Those with replies.
  std::vector<SessionId> told_first_;
  std::vector<SessionId> told_;
  // Scratch that keeps its memory.
  std::vector<AckItem> acks_;
  std::vector<std::size_t> ack_places_;
};

}  // namespace reprise
