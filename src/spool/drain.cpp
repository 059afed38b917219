#include "spool/drain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/duration.h"
#include "spool/batch_builder.h"
#include "spool/delivery.h"
#include "spool/settle.h"

namespace reprise::spool {
namespace {

// After the first and the second failed batch; there is none after the third.
constexpr std::array<Duration, 2> kWaitsBetweenFailed{std::chrono::seconds(2),
                                                      std::chrono::seconds(4)};

// One run's view of how the endpoint is doing (rule 6), and how the run ends.
class Course {
 public:
  Course(DrainResult& result, Pauses& pauses) : result_(result), pauses_(pauses) {}

  // False: the run ends here.
  bool go_on_after(const Delivered& delivered) {
    switch (delivered.end) {
      case Delivered::End::done:
        failed_in_a_row_ = 0;
        return true;
      case Delivered::End::interrupted:
        return interrupted();
      case Delivered::End::refused:
        return stop(DrainEnd::refused, delivered.reason);
      case Delivered::End::too_long_wait:
        ++result_.failed_batches;
        result_.come_back_after = delivered.patience;
        return stop(DrainEnd::trouble,
                    fmt::format("{}; it asks to come back in {}", delivered.reason,
                                humanize_duration(*delivered.patience)));
      case Delivered::End::failed:
        break;
    }
    ++result_.failed_batches;
    failed_in_a_row_ = delivered.some_settled ? 1 : failed_in_a_row_ + 1;
    patience_ = delivered.patience.value_or(Duration::zero());
    if (failed_in_a_row_ <= kWaitsBetweenFailed.size()) return true;
    return stop(DrainEnd::trouble, fmt::format("{} batches in a row have failed: {}",
                                               failed_in_a_row_, delivered.reason));
  }

  // Before the next batch. False: an interrupt.
  bool pause() {
    if (pauses_.interrupted()) return interrupted();
    if (failed_in_a_row_ == 0) return true;
    const Duration wait = std::max(kWaitsBetweenFailed[failed_in_a_row_ - 1], patience_);
    return pauses_.wait(wait) || interrupted();
  }

 private:
  bool interrupted() { return stop(DrainEnd::interrupted, "interrupted"); }
  bool stop(DrainEnd end, std::string reason) {
    result_.end = end;
    result_.stop_reason = std::move(reason);
    return false;
  }

  DrainResult& result_;
  Pauses& pauses_;
  std::size_t failed_in_a_row_ = 0;
  Duration patience_{};  // what the endpoint asked for last
};

}  // namespace

Drain::Drain(Parts parts, DrainOptions options, DrainWatcher watcher)
    : parts_(parts), options_(options), watcher_(std::move(watcher)) {}

Result<DrainResult> Drain::run(const std::function<bool(const std::string& name)>& leave_out) {
  told_before_ = std::exchange(told_, {});
  auto names = find_files(leave_out);
  if (!names) return names.error();

  DrainResult result;
  result.remaining = names->size();
  Removals removals(parts_.files, options_.removal_threads);
  Settler settler({parts_.files, removals, parts_.clock, parts_.pauses,
                   [this](const std::string& text) { warn_of_file(text); }},
                  options_.max_attempts, result);
  BatchBuilder batches(parts_.files, settler, parts_.pauses, options_, std::move(*names));
  send_all(batches, settler, result);
  for (const auto& [name, problem] : removals.finish()) settler.not_removed(name, problem);
  if (const auto synced = parts_.files.sync_removals(Folder::queue); !synced) {
    ++result.local_failures;
    warn(synced.error().detail);
  }
  return result;
}

void Drain::send_all(BatchBuilder& batches, Settler& settler, DrainResult& result) {
  const std::uint64_t found = result.remaining;
  Delivery delivery(parts_, settler);
  Course course(result, parts_.pauses);
  while (!batches.at_end() && course.pause()) {
    const auto batch = batches.next();
    if (batch.empty()) continue;
    const Delivered delivered = delivery.deliver(batch);
    if (watcher_.progress) watcher_.progress(batches.files_read(), found);
    if (delivered.end == Delivered::End::failed) {
      warn(fmt::format("a batch of {} failed and is left for the next run: {}", batch.size(),
                       delivered.reason));
    }
    if (!course.go_on_after(delivered)) break;
  }
}

Result<std::vector<std::string>> Drain::find_files(
    const std::function<bool(const std::string& name)>& leave_out) {
  auto listing = parts_.files.list(Folder::queue, Sizes::no);
  if (!listing) return listing.error();
  // In dead-letter/ temporaries are made by drains only, so that the first look finds them all.
  if (!std::exchange(swept_, true) || listing->temporaries > 0) sweep();
  for (const std::string& ignored : listing->ignored) warn_of_file(ignored + "; it is left alone");
  std::vector<std::string> names;
  names.reserve(listing->files.size());
  for (FileEntry& file : listing->files) {
    if (!leave_out || !leave_out(file.name)) names.push_back(std::move(file.name));
  }
  return names;
}

// Somebody who writes at the moment needs their temporaries: the next run sweeps.
void Drain::sweep() {
  const auto alone = parts_.files.try_write_alone();
  if (!alone) return warn(alone.error().detail);
  if (!*alone) return;
  const auto swept = parts_.files.sweep(**alone);
  if (!swept) warn(swept.error().detail);
}

void Drain::warn(const std::string& text) const {
  if (watcher_.warn) watcher_.warn(text);
}

void Drain::warn_of_file(const std::string& text) {
  told_.insert(text);
  if (!told_before_.contains(text)) warn(text);
}

}  // namespace reprise::spool
