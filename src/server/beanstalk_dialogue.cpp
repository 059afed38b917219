#include "server/beanstalk_dialogue.h"

#include <algorithm>
#include <ranges>
#include <utility>
#include <variant>

#include "base/check.h"
#include "server/beanstalk_writer.h"

namespace reprise::server {
namespace {

// Of the tubes that are known to be there; beyond it all are asked for again.
constexpr std::size_t kMadeKept = 1000;

constexpr std::uint64_t kMaxRequestsUnderWay = 4096;
// Each may bring a body as large as bodies can be, and all of them at once.
constexpr std::uint64_t kMaxBodiesUnderWay = 256;
constexpr std::uint64_t kMaxBytesUnderWay = 1 << 20;

std::string lines(std::string_view line, std::uint64_t count) {
  std::string text;
  for (std::uint64_t i = 0; i < count; ++i) text += line;
  return text;
}

}  // namespace

BeanstalkDialogue::BeanstalkDialogue(BeanstalkHub& hub, BeanstalkLimits limits)
    : hub_(hub),
      parser_(limits),
      watched_(std::make_shared<const std::vector<std::string>>(1, std::string(kDefaultTube))) {}

std::string_view BeanstalkDialogue::receive(std::string_view bytes) {
  while (!has_quit_ && !is_full() && parser_.next(bytes, request_)) handle(request_);
  return has_quit_ ? std::string_view() : bytes;
}

bool BeanstalkDialogue::is_full() const {
  return requests_under_way_ >= kMaxRequestsUnderWay || bodies_under_way_ >= kMaxBodiesUnderWay ||
         bytes_under_way_ >= kMaxBytesUnderWay;
}

void BeanstalkDialogue::handle(BeanstalkRequest& request) {
  const bool understood = request.refusal != BeanstalkRefusal::bad_format &&
                          request.refusal != BeanstalkRefusal::unknown_command;
  if (understood) hub_.count(request.verb);
  if (request.refusal != BeanstalkRefusal::none) {
    return answer_here(beanstalk_refusal_line(request.refusal));
  }
  ask(request);
}

void BeanstalkDialogue::ask(BeanstalkRequest& request) {
  switch (request.verb) {
    case BeanstalkVerb::put:
      return put(std::move(request.new_job));
    case BeanstalkVerb::reserve:
    case BeanstalkVerb::reserve_with_timeout:
      return reserve(request.wait);
    case BeanstalkVerb::reserve_job:
      is_worker_ = true;
      // It never waits, so it is not one of those that may hold things up.
      return add(session::ReserveJob{request.job}, {.kind = Kind::reserve_job});
    case BeanstalkVerb::remove:
      return settle(&session::Delete::jobs, request.job);
    case BeanstalkVerb::release:
      return settle(&session::Release::items,
                    session::Release::Item{request.job, request.priority, request.delay});
    case BeanstalkVerb::bury:
      return settle(&session::Bury::items, session::Bury::Item{request.job, request.priority});
    case BeanstalkVerb::touch:
      return settle(&session::Touch::jobs, request.job);
    case BeanstalkVerb::kick_job:
      return add(session::KickJob{request.job}, {.kind = Kind::settle});
    case BeanstalkVerb::fail:
      return add(session::Fail{request.job, std::exchange(request.error, {})},
                 {.kind = Kind::fail});
    case BeanstalkVerb::kick:
      return add(session::Kick{used_, request.count}, {.kind = Kind::kick});
    case BeanstalkVerb::peek:
      return add(session::FindJob{request.job}, {.kind = Kind::peek});
    case BeanstalkVerb::peek_ready:
      return find_next(session::Which::ready);
    case BeanstalkVerb::peek_delayed:
      return find_next(session::Which::delayed);
    case BeanstalkVerb::peek_buried:
      return find_next(session::Which::buried);
    case BeanstalkVerb::stats_job:
      return add(session::FindJob{request.job}, {.kind = Kind::stats_job});
    case BeanstalkVerb::stats_tube:
      return add(session::FindQueue{std::string(request.tube)},
                 {.kind = Kind::stats_tube,
                  .tube = std::string(request.tube),
                  .census = hub_.tube_census(std::string(request.tube))});
    case BeanstalkVerb::pause_tube:
      return add(session::PauseQueue{std::string(request.tube), request.delay},
                 {.kind = Kind::pause, .tube = std::string(request.tube)});
    case BeanstalkVerb::stats:
      return add(session::ListQueues{}, {.kind = Kind::stats});
    case BeanstalkVerb::list_tubes:
      return add(session::ListQueues{}, {.kind = Kind::list_tubes});
    case BeanstalkVerb::list_tube_used:
    case BeanstalkVerb::list_tubes_watched: {
      std::string text;
      request.verb == BeanstalkVerb::list_tube_used ? append_using(text, used_)
                                                    : append_tubes(text, *watched_);
      return answer_here(text);
    }
    case BeanstalkVerb::use:
      return use(request.tube);
    case BeanstalkVerb::watch:
      return watch(request.tube);
    case BeanstalkVerb::ignore:
      return ignore(request.tube);
    case BeanstalkVerb::quit:
      has_quit_ = true;
      return;
  }
}

void BeanstalkDialogue::put(NewJob job) {
  is_producer_ = true;
  if (hub_.draining()) return answer_here(kBeanstalkDraining);
  const std::uint64_t bytes = job.payload.size();
  auto* open = mergeable<session::Put>();
  if (open != nullptr && open->queue == used_) {
    open->jobs.emplace_back(std::move(job));
    return count_merged(bytes);
  }
  session::Put command{.queue = used_, .jobs = {}};
  command.jobs.emplace_back(std::move(job));
  add(std::move(command), {.kind = Kind::put, .bytes = bytes});
}

void BeanstalkDialogue::reserve(std::optional<Duration> wait) {
  is_worker_ = true;
  auto* open = mergeable<session::Reserve>();
  if (open != nullptr && open->queues == watched_ && open->wait == wait) {
    ++open->count;
    return count_merged();
  }
  add(session::Reserve{.queues = watched_, .count = 1, .wait = wait},
      {.kind = Kind::reserve, .tubes = watched_});
}

template <class Command, class Item>
void BeanstalkDialogue::settle(std::vector<Item> Command::*items, Item item) {
  if (auto* open = mergeable<Command>(); open != nullptr) {
    (open->*items).push_back(item);
    return count_merged();
  }
  Command command;
  (command.*items).push_back(item);
  add(std::move(command), {.kind = Kind::settle});
}

void BeanstalkDialogue::use(std::string_view tube) {
  used_ = tube;
  std::string answer;
  append_using(answer, tube);
  use_queue(used_, std::move(answer));
}

void BeanstalkDialogue::watch(std::string_view tube) {
  if (std::ranges::find(*watched_, tube) == watched_->end()) {
    auto more = *watched_;
    more.emplace_back(tube);
    watched_ = std::make_shared<const std::vector<std::string>>(std::move(more));
  }
  std::string answer;
  append_watching(answer, watched_->size());
  use_queue(std::string(tube), std::move(answer));
}

void BeanstalkDialogue::ignore(std::string_view tube) {
  const auto found = std::ranges::find(*watched_, tube);
  if (found != watched_->end()) {
    if (watched_->size() == 1) return answer_here(kBeanstalkNotIgnored);
    auto rest = *watched_;
    // The last one takes its place, as in beanstalkd.
    std::swap(rest[static_cast<std::size_t>(found - watched_->begin())], rest.back());
    rest.pop_back();
    watched_ = std::make_shared<const std::vector<std::string>>(std::move(rest));
  }
  std::string answer;
  append_watching(answer, watched_->size());
  answer_here(answer);
}

void BeanstalkDialogue::use_queue(std::string tube, std::string answer) {
  if (made_.contains(tube)) return answer_here(answer);
  session::UseQueue command{tube};
  add(std::move(command), {.kind = Kind::use, .text = std::move(answer), .tube = std::move(tube)});
}

void BeanstalkDialogue::find_next(session::Which which) {
  add(session::FindNext{used_, which}, {.kind = Kind::peek});
}

void BeanstalkDialogue::answer_here(std::string_view text) {
  last_is_open_ = false;
  if (expected_.empty()) {
    output_ += text;
    return;
  }
  ++requests_under_way_;
  if (expected_.back().kind == Kind::own) {
    ++expected_.back().requests;
    expected_.back().text += text;
  } else {
    expected_.push_back({.kind = Kind::own, .text = std::string(text)});
  }
}

void BeanstalkDialogue::add(session::Command command, Expected expected) {
  commands_.push_back(std::move(command));
  last_is_open_ = true;
  ++requests_under_way_;
  if (may_bring_body(expected.kind)) ++bodies_under_way_;
  bytes_under_way_ += expected.bytes;
  expected_.push_back(std::move(expected));
}

template <class Command>
Command* BeanstalkDialogue::mergeable() {
  if (commands_.empty() || !last_is_open_) return nullptr;
  return std::get_if<Command>(&commands_.back());
}

void BeanstalkDialogue::count_merged(std::uint64_t bytes) {
  ++requests_under_way_;
  if (may_bring_body(expected_.back().kind)) ++bodies_under_way_;
  bytes_under_way_ += bytes;
  ++expected_.back().requests;
  expected_.back().bytes += bytes;
}

void BeanstalkDialogue::refuse_commands() {
  has_quit_ = true;
  auto expected = expected_.rbegin();
  for (std::size_t left = commands_.size(); left > 0; ++expected) {
    if (expected->kind == Kind::own) continue;
    const bool is_put = expected->kind == Kind::put;
    if (may_bring_body(expected->kind)) bodies_under_way_ -= expected->requests;
    expected->text =
        lines(is_put ? kBeanstalkDraining : kBeanstalkInternalError, expected->requests);
    expected->kind = Kind::own;
    --left;
  }
  commands_.clear();
  send_own_answers();
}

void BeanstalkDialogue::take(const session::Reply& reply) {
  REPRISE_CHECK(!expected_.empty());
  std::visit([&](const auto& one) { take_reply(one); }, reply);
}

void BeanstalkDialogue::take_reply(const session::Say& reply) {
  output_ += reply.text;
  answered(1);
}

void BeanstalkDialogue::take_reply(const session::QueueReady& reply) {
  Expected& first = expected_.front();
  if (reply.status) {
    output_ += first.text;
    if (made_.size() >= kMadeKept) made_.clear();
    made_.insert(std::move(first.tube));
  } else {
    output_ += beanstalk_error_line(reply.status.error().code, false);
  }
  answered(1);
}

void BeanstalkDialogue::take_reply(const session::PutDone& reply) {
  append_beanstalk(output_, reply);
  answered(reply.results.size());
}

void BeanstalkDialogue::take_reply(const session::Reserved& reply) {
  append_beanstalk(output_, reply);
  answered(reply.jobs.size());
}

void BeanstalkDialogue::take_reply(const session::NotReserved& reply) {
  append_beanstalk(output_, reply);
  answered(reply.count);
}

void BeanstalkDialogue::take_reply(const session::Settled& reply) {
  append_beanstalk(output_, reply);
  if (reply.how == session::How::paused && reply.items.front()) {
    hub_.count_pause(expected_.front().tube);
  }
  answered(reply.items.size());
}

void BeanstalkDialogue::take_reply(const session::FailDone& reply) {
  append_beanstalk(output_, reply);
  answered(1);
}

void BeanstalkDialogue::take_reply(const session::Kicked& reply) {
  append_beanstalk(output_, reply);
  answered(1);
}

void BeanstalkDialogue::take_reply(const session::Found& reply) {
  expected_.front().kind == Kind::stats_job ? append_stats_job(output_, reply)
                                            : append_found(output_, reply);
  answered(1);
}

void BeanstalkDialogue::take_reply(const session::QueueFound& reply) {
  const Expected& asked = expected_.front();
  BeanstalkTubeCensus census = hub_.tube_census(asked.tube);
  // What the client has sent since is not to be seen here.
  census.using_it = asked.census.using_it;
  census.watching = asked.census.watching;
  append_stats_tube(output_, reply, census);
  answered(1);
}

void BeanstalkDialogue::take_reply(const session::AllQueues& reply) {
  if (expected_.front().kind == Kind::stats) {
    append_stats(output_, reply, hub_.census());
  } else {
    append_tubes(output_, reply);
  }
  answered(1);
}

void BeanstalkDialogue::answered(std::uint64_t requests) {
  Expected& first = expected_.front();
  REPRISE_CHECK(requests <= first.requests);
  if (may_bring_body(first.kind)) bodies_under_way_ -= requests;
  first.requests -= requests;
  requests_under_way_ -= requests;
  if (first.requests > 0) return;
  pop_expected();
  send_own_answers();
}

void BeanstalkDialogue::pop_expected() {
  requests_under_way_ -= expected_.front().requests;
  bytes_under_way_ -= expected_.front().bytes;
  expected_.pop_front();
}

void BeanstalkDialogue::send_own_answers() {
  while (!expected_.empty() && expected_.front().kind == Kind::own) {
    output_ += expected_.front().text;
    pop_expected();
  }
}

bool BeanstalkDialogue::waits_in_reserve() const {
  return !expected_.empty() && expected_.front().kind == Kind::reserve;
}

bool BeanstalkDialogue::waits_for(const std::string& tube) const {
  if (!waits_in_reserve()) return false;
  const std::vector<std::string>& tubes = *expected_.front().tubes;
  return std::ranges::find(tubes, tube) != tubes.end();
}

}  // namespace reprise::server
