#include "engine/job_line.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "base/check.h"
#include "engine/lanes.h"

namespace reprise {

JobLine::~JobLine() {
  if (form_ == Form::some) delete some_;
  if (form_ == Form::many) delete many_;
}

bool JobLine::insert(Priority priority, Seq seq) {
  switch (form_) {
    case Form::none:
      only_ = seq;
      only_priority_ = priority;
      form_ = Form::one;
      return true;
    case Form::one:
      if (only_ == seq && only_priority_ == priority) return false;
      become_some();
      [[fallthrough]];
    case Form::some: {
      const Job job{priority, seq};
      const auto place = std::ranges::lower_bound(*some_, job, std::greater<>());
      if (place != some_->end() && *place == job) return false;
      some_->insert(place, job);
      if (some_->size() > kSomeMax) become_many();
      return true;
    }
    case Form::many: {
      const std::uint64_t before = many_->size();
      many_->insert(priority, seq);
      return many_->size() > before;
    }
  }
  return false;
}

std::uint64_t JobLine::insert_all(Priority priority, std::span<const Seq> seqs) {
  const std::uint64_t before = size();
  if (before + seqs.size() > kSomeMax) {
    become_many();
    many_->insert_all(priority, seqs);
  } else {
    for (const Seq seq : seqs) insert(priority, seq);
  }
  return size() - before;
}

bool JobLine::erase(Priority priority, Seq seq) {
  switch (form_) {
    case Form::none:
      return false;
    case Form::one:
      if (only_ != seq || only_priority_ != priority) return false;
      form_ = Form::none;
      return true;
    case Form::some: {
      const Job job{priority, seq};
      const auto place = std::ranges::lower_bound(*some_, job, std::greater<>());
      if (place == some_->end() || *place != job) return false;
      some_->erase(place);
      break;
    }
    case Form::many:
      if (!many_->erase(priority, seq)) return false;
      break;
  }
  shrink();
  return true;
}

bool JobLine::erase(Seq seq) {
  switch (form_) {
    case Form::none:
      return false;
    case Form::one:
      return erase(only_priority_, seq);
    case Form::some: {
      const auto place = std::ranges::find(*some_, seq, &Job::second);
      return place != some_->end() && erase(place->first, seq);
    }
    case Form::many:
      if (!many_->erase(seq)) return false;
      break;
  }
  shrink();
  return true;
}

std::uint64_t JobLine::size() const {
  switch (form_) {
    case Form::none:
      return 0;
    case Form::one:
      return 1;
    case Form::some:
      return some_->size();
    case Form::many:
      return many_->size();
  }
  return 0;
}

std::pair<Priority, Seq> JobLine::front() const {
  REPRISE_CHECK(!empty());
  if (form_ == Form::one) return {only_priority_, only_};
  return form_ == Form::some ? some_->back() : many_->front();
}

Seq JobLine::oldest() const {
  REPRISE_CHECK(!empty());
  if (form_ == Form::one) return only_;
  if (form_ == Form::many) return many_->oldest();
  return std::ranges::min(*some_, {}, &Job::second).second;
}

std::uint64_t JobLine::count_below(Priority priority) const {
  switch (form_) {
    case Form::none:
      return 0;
    case Form::one:
      return only_priority_ < priority ? 1 : 0;
    case Form::some:
      return static_cast<std::uint64_t>(
          std::ranges::count_if(*some_, [&](const Job& job) { return job.first < priority; }));
    case Form::many:
      return many_->count_below(priority);
  }
  return 0;
}

void JobLine::become_some() {
  auto some = std::make_unique<Some>();
  some->emplace_back(only_priority_, only_);
  some_ = some.release();
  form_ = Form::some;
}

void JobLine::become_many() {
  if (form_ == Form::many) return;
  auto many = std::make_unique<FreshLane>();
  if (form_ == Form::one) many->insert(only_priority_, only_);
  if (form_ == Form::some) {
    for (const auto& [priority, seq] : *some_) many->insert(priority, seq);
    delete some_;
  }
  many_ = many.release();
  form_ = Form::many;
}

void JobLine::shrink() {
  if (form_ == Form::many && many_->size() <= kManyMin) {
    auto some = std::make_unique<Some>(many_->size());
    // The next job comes last.
    for (auto place = some->rbegin(); place != some->rend(); ++place) {
      *place = many_->front();
      many_->erase(place->first, place->second);
    }
    delete many_;
    some_ = some.release();
    form_ = Form::some;
  }
  if (form_ == Form::some && some_->size() <= 1) {
    const std::unique_ptr<Some> some(some_);
    form_ = Form::none;
    if (!some->empty()) insert(some->front().first, some->front().second);
  }
}

}  // namespace reprise
