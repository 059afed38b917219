#include "webhook/webhook_sender.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/ids.h"
#include "base/thread_name.h"
#include "webhook/cloud_event.h"
#include "webhook/finish_list.h"
#include "webhook/http_poster.h"
#include "webhook/inbox.h"
#include "webhook/outbox_cursor.h"

namespace reprise::webhook {
namespace {

// After the outbox could not be read (it is overloaded, or stops).
constexpr Duration kOutboxPause = std::chrono::seconds(1);

// What `pending(just_before(key), 1)` finds first is `key`, if it is still there.
WebhookKey just_before(WebhookKey key) {
  if (key.seq > 0) {
    --key.seq;
  } else if (key.queue > 0) {
    --key.queue;
    key.seq = std::numeric_limits<Seq>::max();
  }
  return key;
}

// Without path and query.
std::string_view origin_of(std::string_view url) {
  const std::size_t host = url.find("://");
  if (host == url.npos) return {};
  return url.substr(0, url.find_first_of("/?#", host + 3));
}

// libcurl leaves SIGPIPE to us, and a peer that hangs up must not end the process.
void block_broken_pipe_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

class WebhookSender::Impl {
 public:
  Impl(Outbox& outbox, const Clock& clock, WebhookSenderOptions options)
      : outbox_(outbox),
        clock_(clock),
        options_(std::move(options)),
        plan_(options_.retry),
        cursor_(options_.poll_every),
        inbox_(std::make_shared<Inbox>([this] { poster_.wake(); })),
        thread_([this] { run(); }) {}

  void wake() {
    if (!woken_.exchange(true)) poster_.wake();
  }

  void stop() {
    stopping_ = true;
    poster_.wake();
    if (thread_.joinable()) thread_.join();
  }

  WebhookStats stats() const {
    return {.delivered = delivered_, .failed = failed_, .given_up = given_up_, .pending = pending_};
  }

 private:
  using Page = Result<std::vector<PendingWebhook>>;
  using Delivery = DeliveryPlan::Delivery;
  struct Sent {
    QueueName queue;
    std::string url;
  };

  void run();
  void take_in();
  void read_outbox();
  void take_page(OutboxCursor::Page kind, const Page& page);
  void start_requests();
  void give_up(std::string_view url, const std::vector<WebhookKey>& deaths);
  void fetch(Delivery delivery);
  void send(const Delivery& delivery, const Page& found);
  void settle(const HttpPoster::Outcome& outcome);
  void settle_failure(const HttpPoster::Outcome& outcome, const Sent& sent);
  void finish_some();
  Duration time_to_wait() const;
  template <class... Args>
  void tell(const std::function<void(std::string_view)>& log, fmt::format_string<Args...> format,
            Args&&... args) const {
    if (log) log(fmt::format(format, std::forward<Args>(args)...));
  }

  Outbox& outbox_;
  const Clock& clock_;
  const WebhookSenderOptions options_;

  // The thread's own.
  DeliveryPlan plan_;
  OutboxCursor cursor_;
  HttpPoster poster_;  // but for its wake()
  std::map<WebhookKey, Sent> sent_;
  FinishList finished_;

  // From any thread.
  std::atomic<bool> woken_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> delivered_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
  std::atomic<std::uint64_t> given_up_ = 0;
  std::atomic<std::uint64_t> pending_ = 0;
  const std::shared_ptr<Inbox> inbox_;
  std::thread thread_;  // last: it uses all the others
};

void WebhookSender::Impl::run() {
  name_this_thread("webhooks");
  lower_this_thread_priority();
  block_broken_pipe_signals();
  while (!stopping_) {
    take_in();
    read_outbox();
    start_requests();
    finish_some();
    for (const auto& outcome : poster_.wait(time_to_wait())) settle(outcome);
    pending_ = plan_.held() + plan_.left_out();
  }
  inbox_->close();
  if (auto rest = finished_.take_rest(); !rest.empty()) {
    outbox_.finish(std::move(rest), [](Result<std::uint64_t>) {});
  }
}

void WebhookSender::Impl::take_in() {
  if (woken_.exchange(false)) cursor_.wake();
  for (auto& item : inbox_->take()) item();
}

Duration WebhookSender::Impl::time_to_wait() const {
  Timestamp until = std::min(plan_.next_due(), finished_.next_time());
  if (!finished_.full()) until = std::min(until, cursor_.next_time());
  const Timestamp now = clock_.now();
  return until <= now ? Duration::zero() : until - now;
}

void WebhookSender::Impl::read_outbox() {
  if (finished_.full()) return;
  const auto ask = cursor_.next(plan_.hungry(), clock_.now());
  if (!ask) return;
  if (ask->page == OutboxCursor::Page::first_pass) plan_.begin_pass();
  outbox_.pending(ask->after, OutboxCursor::kPageLimit,
                  [this, inbox = inbox_, kind = ask->page](Page page) {
                    inbox->post([this, kind, page = std::move(page)] { take_page(kind, page); });
                  });
}

void WebhookSender::Impl::take_page(OutboxCursor::Page kind, const Page& page) {
  const Timestamp now = clock_.now();
  if (!page) return cursor_.failed(now);
  const auto found = kind == OutboxCursor::Page::end ? DeliveryPlan::Found::at_the_end
                                                     : DeliveryPlan::Found::on_a_pass;
  for (const PendingWebhook& death : *page) {
    if (finished_.contains(death.key)) continue;
    if (death.url.empty() && !plan_.holds(death.key)) {
      finished_.add(death.key);
    } else {
      plan_.offer(death.key, death.url, found, now);
    }
  }
  std::optional<WebhookKey> last;
  if (!page->empty()) last = page->back().key;
  if (cursor_.arrived(last, page->size())) plan_.end_pass();
  finished_.page_arrived();
}

void WebhookSender::Impl::start_requests() {
  std::map<std::string, std::vector<WebhookKey>> given_up;
  while (auto delivery = plan_.take_due(clock_.now())) {
    if (delivery->given_up) {
      given_up[delivery->url].push_back(delivery->key);
    } else {
      fetch(std::move(*delivery));
    }
  }
  for (const auto& [url, deaths] : given_up) give_up(url, deaths);
}

// One line for many: there may be a million of them.
void WebhookSender::Impl::give_up(std::string_view url, const std::vector<WebhookKey>& deaths) {
  constexpr std::size_t kNamed = 10;
  std::string jobs;
  for (std::size_t i = 0; i < std::min(deaths.size(), kNamed); ++i) {
    jobs += fmt::format("{}{}", i == 0 ? "" : ", ", encode_job_id(deaths[i].seq));
  }
  for (const WebhookKey& death : deaths) finished_.add(death);
  given_up_ += deaths.size();
  tell(options_.warn, "gave up telling {}, which fails, of {} deaths older than {}: {}{}",
       origin_of(url), deaths.size(), humanize_duration(options_.retry.give_up_after), jobs,
       deaths.size() > kNamed ? " and others" : "");
}

// The plan holds keys only; the job is read when its turn has come.
void WebhookSender::Impl::fetch(Delivery delivery) {
  const WebhookKey before = just_before(delivery.key);
  outbox_.pending(before, 1,
                  [this, inbox = inbox_, delivery = std::move(delivery)](Page found) mutable {
                    inbox->post([this, delivery = std::move(delivery), found = std::move(found)] {
                      send(delivery, found);
                    });
                  });
}

void WebhookSender::Impl::send(const Delivery& delivery, const Page& found) {
  const WebhookKey& key = delivery.key;
  if (!found) return plan_.postpone(key, clock_.now() + kOutboxPause);
  // Gone, with its job or its queue.
  if (found->empty() || found->front().key != key) return plan_.forget(key);
  const PendingWebhook& death = found->front();
  const bool job_is_gone = death.record == nullptr || death.state == nullptr;
  if (death.url.empty() || job_is_gone) {
    plan_.forget(key);
    return finished_.add(key);
  }
  if (death.url != delivery.url) {  // the queue has another one by now
    plan_.forget(key);
    plan_.offer(key, death.url, DeliveryPlan::Found::at_the_end, clock_.now());
    return;
  }
  sent_.insert_or_assign(key, Sent{.queue = death.queue, .url = death.url});
  poster_.post(key, death.url, cloud_event(death));
}

void WebhookSender::Impl::settle(const HttpPoster::Outcome& outcome) {
  const Sent sent = std::move(sent_.extract(outcome.key).mapped());
  if (!outcome.accepted) return settle_failure(outcome, sent);
  ++delivered_;
  if (plan_.delivered(outcome.key) == DeliveryPlan::News::works_again) {
    tell(options_.info, "the webhook at {} works again", origin_of(sent.url));
  }
  finished_.add(outcome.key);
}

void WebhookSender::Impl::settle_failure(const HttpPoster::Outcome& outcome, const Sent& sent) {
  const DeliveryPlan::Failed result = plan_.failed(outcome.key, clock_.now());
  if (!result.given_up) {
    ++failed_;
    if (result.news == DeliveryPlan::News::began_to_fail) {
      tell(options_.warn, "the webhook at {} fails: {}; it is tried again", origin_of(sent.url),
           outcome.problem);
    }
    return;
  }
  ++given_up_;
  tell(options_.warn, "gave up telling {} that job {} of {}/{} died at {}: {}", origin_of(sent.url),
       encode_job_id(outcome.key.seq), sent.queue.ns, sent.queue.name,
       format_timestamp(outcome.key.died_at), outcome.problem);
  finished_.add(outcome.key);
}

void WebhookSender::Impl::finish_some() {
  std::vector<WebhookKey> keys = finished_.take(clock_.now());
  if (keys.empty()) return;
  outbox_.finish(keys, [this, inbox = inbox_, keys](Result<std::uint64_t> result) mutable {
    inbox->post([this, keys = std::move(keys), ok = result.has_value()] {
      ok ? finished_.finished(keys, cursor_.under_way()) : finished_.refused(keys, clock_.now());
    });
  });
}

WebhookSender::WebhookSender(Outbox& outbox, const Clock& clock, WebhookSenderOptions options)
    : impl_(std::make_unique<Impl>(outbox, clock, std::move(options))) {}
WebhookSender::~WebhookSender() { stop(); }

void WebhookSender::wake() { impl_->wake(); }
WebhookStats WebhookSender::stats() const { return impl_->stats(); }
void WebhookSender::stop() { impl_->stop(); }

}  // namespace reprise::webhook
