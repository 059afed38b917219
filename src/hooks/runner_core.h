// RunnerCore: what the runner's thread knows and does, driven by an epoll loop around it.
//
// A Line is a queue with hooks, or a script on trial: the calls that wait, and at most one host
// that they go to. A Host is a process set up with one set of scripts. The rules:
// - a call runs with the scripts it was submitted under, so a host with others is replaced first;
// - when a host ends, whatever the reason, each of its calls is either answered with that reason or
//   goes back into its line; a host that ends without either an answer or a culprit counts, and
//   after three of those in a row the line's calls are answered with host_lost. So every call is
//   answered.
//
// Code: runner_core.cpp has lines and turns, runner_hosts.cpp the life of a host,
// runner_deadlines.cpp what happens because time passes, runner_trials.cpp trials.
//
// Threads: one owner, which also owns the nursery (nursery_link.h). Nothing here waits, but for
// shut_down().
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "hooks/call_line.h"
#include "hooks/call_watch.h"
#include "hooks/hook_runner.h"
#include "hooks/host_link.h"
#include "hooks/log_window.h"
#include "hooks/nursery_keeper.h"

namespace reprise::hooks {

struct RunnerCounters {
  std::atomic<std::uint64_t> hosts{0};
  std::atomic<std::uint64_t> started{0};
  std::atomic<std::uint64_t> killed{0};
  std::atomic<std::uint64_t> lost{0};
};

class RunnerCore {
 public:
  // What an event in the epoll set is about, in the lower two bits of its tag; above is the host.
  enum class Source : std::uint64_t { owner = 0, nursery = 1, host_socket = 2, host_end = 3 };

  // All three must outlive it. Events of Source::owner are the owner's own.
  RunnerCore(const HookRunnerOptions& options, RunnerCounters& counters, int epoll_fd);

  void take_work(std::vector<HookWork> work);
  void take_trial(ScriptTrial trial, TrialDone done);
  void on_event(std::uint64_t tag, std::uint32_t events);
  // After everything that has happened was told: gives hosts what they can do next.
  void advance();
  // Enforces what is due; returns when to come again at the latest.
  Steady tick();
  // Hands over the results that have come since the last time.
  void flush_results();
  void shut_down();

 private:
  using LineId = std::uint64_t;  // a queue's number, or beyond those for a trial
  using HostNumber = std::uint32_t;
  static constexpr LineId kFirstTrialLine = LineId{1} << 32;
  // How long a queue may keep its host when others wait for one.
  static constexpr auto kShareOfHost = std::chrono::milliseconds(100);

  struct Trial {
    HookKind hook{};
    TrialDone done;
    bool usable = false;  // a host was set up with it
    Steady deadline{};    // for all of it
    std::vector<TrialResult> results;
    std::size_t unanswered = 0;
  };
  struct Line {
    explicit Line(LineId line) : id(line) {}
    const LineId id;
    ScriptsPtr scripts;  // for calls to come; none: no hooks
    CallLine calls;
    HostNumber host = 0;  // 0: none
    bool waits_for_turn = false;
    bool touched = false;
    std::uint32_t vain_hosts = 0;  // in a row: ended without an answer or a culprit
    LogWindow log{20};
    std::optional<std::pair<QueueName, HookKind>> left_out_of;  // the latest line left out
    std::unique_ptr<Trial> trial;
  };

  struct Batch {
    std::uint32_t number{};
    HookKind hook{};
    bool with_payloads = false;
    bool abandoned = false;
    std::vector<PendingCall> calls;
    std::size_t answered = 0;  // the first so many
  };
  enum class HostState : std::uint8_t { requested, setting_up, ready };
  // Why we end a host; of several the first.
  enum class End : std::uint8_t {
    by_itself,
    not_needed,
    abandoned,
    set_up_timeout,
    call_timeout,
    batch_timeout,
    nonsense,
  };
  struct Host {
    Host(HostNumber host, LineId owner) : number(host), line(owner) {}
    const HostNumber number;
    const LineId line;
    HostState state = HostState::requested;
    End end = End::by_itself;
    std::unique_ptr<HostLink> link;  // none while it is requested
    bool watched_for_room = false;   // to write
    ScriptsPtr scripts;
    std::array<std::string, kHookKindCount> problems;
    std::uint32_t batches = 0;
    std::deque<Batch> in_flight;
    std::optional<CallWatch> watch;
    std::optional<RunningCall> overdue;  // why it is killed
    Steady deadline{};                   // of the set-up, or of the first batch in flight
    Steady look_at{};                    // at the page, while a batch is in flight
    Steady ready_since{};
    Steady idle_since{};
    std::optional<Steady> ended_at;
    std::optional<int> wait_status;
    bool status_unknown = false;  // and will stay so

    bool is_idle() const {
      return state == HostState::ready && end == End::by_itself && in_flight.empty();
    }
  };

  // Lines (runner_core.cpp).
  void take(HookDefinition definition);
  void take(HookCall call);
  void take(const AbandonedHook& abandoned);
  void take(const ConfigChange& change);
  Line* find_line(LineId id);
  Line& touch(Line& line);
  void advance(Line& line);
  void feed(Line& line, Host& host);
  void send_batch(Line& line, Host& host);
  void refuse_unusable(Line& line, const Host& host);
  bool has_had_its_share(const Line& line, const Host& host) const;
  void want_host(Line& line);
  void serve_turns();
  Host* longest_idle_host();
  void drop_if_unused(Line& line);
  void answer(Line& line, const PendingCall& call, HookOutcome outcome,
              std::vector<std::string> log = {}, bool repeatable = false);
  void give_up(Line& line, const Scripts& scripts, const std::string& why);
  void tell_notice(std::string_view text);

  // Hosts (runner_hosts.cpp).
  Host* find_host(HostNumber number);
  void request_host(Line& line);
  void pump_nursery();
  void on_nursery(NurseryKeeper::HostStarted& event);
  void on_nursery(NurseryKeeper::HostFailed& event);
  void on_nursery(NurseryKeeper::HostEnded& event);
  void on_nursery(NurseryKeeper::NurseryLost& event);
  void set_up(Line& line, Host& host);
  void flush(Host& host);
  void on_socket(Host& host, std::uint32_t events);
  void on_end(HostNumber number);
  void read_messages(Host& host);
  bool take_message(Host& host, SetUpDone& done);
  bool take_message(Host& host, Results& results);
  void begin_batch_clock(Host& host);
  void kill(Host& host, End why);
  std::unique_ptr<Host> remove_host(HostNumber number);
  void settle(HostNumber number);
  static std::string describe(const Host& host);
  bool blame(Line& line, Host& host);
  bool blame_running(Host& host, const RunningCall& running, HookFault fault,
                     const std::string& what_it_did);
  void settle_in_vain(Line& line, const Host& host, const std::string& what_it_did);
  void host_was_in_vain(Line& line, const ScriptsPtr& scripts, const std::string& why);
  static Batch* find_unanswered(Host& host, const RunningCall& call);
  static Duration set_up_time(const HookLimits& limits);

  // Deadlines (runner_deadlines.cpp).
  Steady check(Host& host, Steady now);
  Steady check_work(Host& host, Steady now);
  // When a host that is busy must make room for another queue's.
  Steady share_ends(const Host& host) const;
  Steady tell_left_out(Steady now);

  // Trials (runner_trials.cpp).
  void start_trials();
  void finish_trial(Line& line, Result<std::vector<TrialResult>> result);
  void finish_late_trials(Steady now);
  bool finish_if_answered(Line& line);

  static std::uint64_t tag(Source source, HostNumber host) {
    return std::uint64_t{host} << 2 | static_cast<std::uint64_t>(source);
  }

  const HookRunnerOptions& options_;
  RunnerCounters& counters_;
  const int epoll_fd_;
  SystemRandom random_;
  NurseryKeeper keeper_;
  std::map<std::string, std::map<std::string, std::string>> config_;  // by namespace and key
  absl::flat_hash_map<LineId, std::unique_ptr<Line>> lines_;
  absl::flat_hash_map<HostNumber, std::unique_ptr<Host>> hosts_;
  HostNumber last_host_ = 0;
  std::size_t queue_hosts_ = 0;  // of hosts_, without those of trials
  std::deque<LineId> turns_;     // lines that wait until they may have a host
  std::vector<LineId> touched_;
  std::vector<LineId> with_lines_left_out_;
  std::vector<HookResult> results_;
  LogWindow notices_{10};

  struct WaitingTrial {
    ScriptTrial trial;
    TrialDone done;
  };
  std::deque<WaitingTrial> waiting_trials_;
  std::size_t running_trials_ = 0;
  LineId next_trial_line_ = kFirstTrialLine;
};

// "on_failure", for a message that begins with the hook's name.
std::string name_of(HookKind hook);

}  // namespace reprise::hooks
