// FakeWorkerHost: what a worker needs around it: a run store in a directory of its own, notes in a
// map, and a record of what it was told.
// Threads: the loop's, as with any host.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "support/temp_directory.h"
#include "worker/worker.h"

namespace reprise::test {

class FakeWorkerHost final : public worker::WorkerHost {
 public:
  struct News {
    EventType type{};
    WorkerNews news;
    std::string error;
  };

  // All of them must outlive it; `broker` may be null where no worker asks for it.
  FakeWorkerHost(worker::Loop& loop, worker::StepRunner& steps, Broker* broker = nullptr)
      : loop_(loop), steps_(steps), broker_(broker) {
    auto store = worker::RunStore::open({.directory = directory / "runs"}, random_, loop.now());
    REPRISE_CHECK(store.has_value());
    store_ = *std::move(store);
    items_ = std::make_unique<worker::ItemsInHand>(
        tools(),
        [this](std::vector<NoteChange> list, absl::AnyInvocable<void(Status)> done) {
          change_notes(std::move(list), std::move(done));
        },
        [this](std::string_view text) { warn(text); });
  }

  worker::RunTools tools() override {
    return {.loop = loop_,
            .steps = steps_,
            .store = *store_,
            .environment = environment_,
            .server_url = [] { return std::string("http://127.0.0.1:1"); }};
  }
  Broker& broker() override {
    REPRISE_CHECK(broker_ != nullptr);
    return *broker_;
  }
  worker::ItemsInHand& items() override { return *items_; }
  worker::ExternalQueueState& external_state(const QueueName& queue) override {
    return states[queue];
  }
  worker::WorkerCounts& counts() override { return counts_; }
  void refresh_project(const std::string&, worker::Task then) override {
    ++refreshes;
    if (on_refresh) on_refresh();
    then();
  }
  void redeclare_queue(const std::string&, const std::string& queue) override {
    redeclared.push_back(queue);
  }
  void run_begins(std::shared_ptr<worker::Run> run) override { runs.emplace(run->id(), run); }
  void run_ends(const std::string& id, const worker::RunEnd& end) override {
    store_->end(id, end.status, end.error, end.error_type, loop_.now());
    runs.erase(id);
  }
  void call_begins() override { ++calls; }
  void call_ends() override { --calls; }
  void worker_changed(const std::string&, const std::string&) override { ++changes; }
  void publish(EventType type, const QueueName&, WorkerNews about, std::string error) override {
    news.push_back({type, std::move(about), std::move(error)});
  }
  void warn(std::string_view text) override { warnings.emplace_back(text); }

  worker::RunStore& store() { return *store_; }
  std::shared_ptr<worker::WorkerLog> log(const std::string& worker) const {
    return std::make_shared<worker::WorkerLog>(directory / (worker + ".log"));
  }
  std::vector<worker::ItemRecord> records() const {
    std::vector<worker::ItemRecord> records;
    for (const auto& [key, value] : notes) records.push_back(*worker::decode_item(value));
    return records;
  }
  std::size_t count_of(EventType type) const {
    std::size_t count = 0;
    for (const News& item : news) count += item.type == type ? 1 : 0;
    return count;
  }
  // Changes of notes that were asked for while they were held.
  void let_notes_go() {
    hold_notes = false;
    for (worker::Task& task : std::exchange(held_, {})) loop_.post(std::move(task));
  }

  TempDirectory directory;
  std::map<std::string, std::string> notes;
  bool hold_notes = false;
  std::optional<Error> refuse_notes;
  std::map<QueueName, worker::ExternalQueueState> states;
  std::map<std::string, std::shared_ptr<worker::Run>> runs;  // that run
  std::function<void()> on_refresh;
  int refreshes = 0;
  int changes = 0;
  int calls = 0;  // that the broker has not answered
  std::vector<std::string> redeclared;
  std::vector<News> news;
  std::vector<std::string> warnings;

 private:
  void change_notes(std::vector<NoteChange> list, absl::AnyInvocable<void(Status)> done) {
    worker::Task change = [this, list = std::move(list), done = std::move(done)]() mutable {
      if (refuse_notes) return done(*refuse_notes);
      for (NoteChange& item : list) {
        if (item.value) {
          notes.insert_or_assign(item.key, *std::move(item.value));
        } else {
          notes.erase(item.key);
        }
      }
      done(ok());
    };
    if (hold_notes) {
      held_.push_back(std::move(change));
    } else {
      loop_.post(std::move(change));
    }
  }

  worker::Loop& loop_;
  worker::StepRunner& steps_;
  Broker* const broker_;
  SeededRandom random_{7};
  const std::vector<std::string> environment_ = {"PATH=/usr/bin:/bin", "HOME=/nowhere"};
  std::unique_ptr<worker::RunStore> store_;
  std::unique_ptr<worker::ItemsInHand> items_;
  worker::WorkerCounts counts_;
  std::deque<worker::Task> held_;
};

}  // namespace reprise::test
