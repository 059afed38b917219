#include "webhook/outbox_cursor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace reprise::webhook {
namespace {

// By then every batch with deaths of that moment has reached the outbox.
constexpr Duration kSettled = std::chrono::seconds(5);
constexpr Duration kAfterFailure = std::chrono::seconds(1);

}  // namespace

OutboxCursor::Ask OutboxCursor::ask_for_end(Timestamp now) {
  page_ = Page::end;
  woken_ = false;
  if (end_goes_on_) return {.page = page_, .after = end_at_};
  if (now < next_poll_) return {.page = page_, .after = end_};
  std::optional<WebhookKey> after;
  if (latest_poll_) after = WebhookKey{.died_at = *latest_poll_ - kSettled};
  poll_before_ = std::exchange(latest_poll_, now);
  next_poll_ = now + poll_every_;
  return {.page = page_, .after = std::min(after, end_)};
}

OutboxCursor::Ask OutboxCursor::ask_for_pass() {
  page_ = passing_ ? Page::pass : Page::first_pass;
  if (!passing_) passed_.reset();
  passing_ = true;
  return {.page = page_, .after = passed_};
}

std::optional<OutboxCursor::Ask> OutboxCursor::next(bool hungry, Timestamp now) {
  if (under_way_ || now < not_before_) return std::nullopt;
  const bool end_wanted = woken_ || end_goes_on_ || now >= next_poll_;
  const bool pass_has_its_turn = hungry && page_ == Page::end;
  if (!end_wanted && !hungry) return std::nullopt;
  under_way_ = true;
  return end_wanted && !pass_has_its_turn ? ask_for_end(now) : ask_for_pass();
}

bool OutboxCursor::arrived(std::optional<WebhookKey> last, std::size_t size) {
  REPRISE_CHECK(under_way_);
  under_way_ = false;
  const bool full = size >= kPageLimit;
  if (page_ == Page::end) {
    end_ = std::max(end_, last);
    end_at_ = last;
    end_goes_on_ = full;
    return false;
  }
  passed_ = last;
  // What lies beyond was never left out.
  if (full && end_ && *last < *end_) return false;
  passing_ = false;
  return true;
}

void OutboxCursor::failed(Timestamp now) {
  under_way_ = false;
  if (page_ == Page::end && !end_goes_on_) latest_poll_ = poll_before_;
  if (page_ == Page::first_pass) passing_ = false;
  not_before_ = now + kAfterFailure;
  next_poll_ = not_before_;
}

}  // namespace reprise::webhook
