#include "worker/run_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/ids.h"

namespace reprise::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShortestPrefix = 4;
constexpr std::size_t kShownMatches = 10;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool matches(const RunView& run, const RunQuery& query) {
  return (query.ns.empty() || run.ns == query.ns) &&
         (query.worker.empty() || run.worker == query.worker) &&
         (query.queue.empty() || run.queue == query.queue) &&
         (query.pipeline.empty() || run.pipeline == query.pipeline) &&
         (!query.status || run.status == *query.status);
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

}  // namespace

RunStore::RunStore(Options options, Random& random)
    : options_(std::move(options)), random_(random) {}

Result<std::unique_ptr<RunStore>> RunStore::open(Options options, Random& random, Timestamp now) {
  std::error_code failed;
  fs::create_directories(options.directory, failed);
  if (failed) {
    return Error{Errc::io, fmt::format("cannot make {}: {}", options.directory, failed.message())};
  }
  fs::permissions(options.directory, fs::perms::owner_all, failed);
  std::unique_ptr<RunStore> store(new RunStore(std::move(options), random));
  store->load(now);
  return store;
}

void RunStore::load(Timestamp now) {
  std::error_code failed;
  for (fs::directory_iterator at(options_.directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string id = at->path().filename().string();
    auto record = decode_run(read_file(path_of(id) + "/run.json"));
    if (!record || record->id != id) {
      // Begun at the moment the server ended: nothing was started for it.
      std::error_code ignored;
      fs::remove_all(at->path(), ignored);
      continue;
    }
    if (record->status == RunStatus::running) {
      record->status = RunStatus::lost;
      record->ended_at = now;
      record->error = "the server ended while it ran";
      record->error_type = "lost";
      std::error_code missing;
      const auto bytes = fs::file_size(path_of(id) + "/log", missing);
      record->log_bytes = missing ? 0 : bytes;
      for (StepView& step : record->steps) {
        if (step.status == RunStatus::running) step.status = RunStatus::lost;
      }
      write(*record);
    }
    remember(*std::move(record), nullptr);
  }
  forget_excess();
}

std::string RunStore::path_of(std::string_view id) const {
  return fmt::format("{}/{}", options_.directory, id);
}

// Whole or not at all: readers at the next start see the old one or the new one.
bool RunStore::write(const RunView& record) const {
  const std::string path = path_of(record.id) + "/run.json";
  {
    std::ofstream out(path + ".tmp", std::ios::binary | std::ios::trunc);
    out << encode_run(record);
    if (!out.flush()) return false;
  }
  std::error_code failed;
  fs::rename(path + ".tmp", path, failed);
  return !failed;
}

void RunStore::remember(RunView record, std::shared_ptr<RunLog> log) {
  const std::string id = record.id;
  by_start_.emplace(record.started_at, id);
  if (log == nullptr) {
    ended_.emplace(record.ended_at.value_or(record.started_at), id);
  }
  runs_.insert_or_assign(id, Entry{std::move(record), std::move(log)});
}

Result<std::string> RunStore::begin(RunView record) {
  do {
    record.id = encode_job_id(random_.next_u64());
  } while (runs_.contains(record.id));
  const std::string path = path_of(record.id);
  std::error_code failed;
  if (!fs::create_directory(path, failed)) {
    return Error{Errc::io, fmt::format("cannot make {}: {}", path, failed.message())};
  }
  if (!write(record)) {
    fs::remove_all(path, failed);
    return Error{Errc::io, fmt::format("cannot write to {}", path)};
  }
  auto log = std::make_shared<RunLog>(path + "/log", options_.log_bytes);
  std::string id = record.id;
  remember(std::move(record), std::move(log));
  return id;
}

RunView* RunStore::find(std::string_view id) {
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : &found->second.view;
}

std::shared_ptr<RunLog> RunStore::log(std::string_view id) {
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : found->second.log;
}

void RunStore::end(std::string_view id, RunStatus status, std::string error, std::string error_type,
                   Timestamp now) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  Entry& entry = found->second;
  RunView& run = entry.view;
  run.status = status;
  run.error = std::move(error);
  run.error_type = std::move(error_type);
  run.ended_at = now;
  if (entry.log) {
    entry.log->finish();
    run.log_bytes = entry.log->bytes();
    run.log_left_out = entry.log->left_out();
    entry.log.reset();
  }
  write(entry.view);
  ended_.emplace(run.ended_at.value_or(run.started_at), run.id);
  forget_excess();
}

void RunStore::forget_excess() {
  while (ended_.size() > options_.keep) {
    const std::string id = ended_.begin()->second;
    ended_.erase(ended_.begin());
    const auto found = runs_.find(id);
    by_start_.erase({found->second.view.started_at, id});
    runs_.erase(found);
    std::error_code ignored;
    fs::remove_all(path_of(id), ignored);
  }
}

Result<std::string> RunStore::resolve(std::string_view id) const {
  const std::string prefix = upper(id);
  if (runs_.contains(prefix)) return prefix;
  std::vector<std::string> found;
  if (prefix.size() >= kShortestPrefix) {
    for (auto at = runs_.lower_bound(prefix); at != runs_.end() && at->first.starts_with(prefix);
         ++at) {
      found.push_back(at->first);
    }
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) return Error{Errc::run_not_found, fmt::format("no run '{}'", id)};
  std::string detail = fmt::format("{} fits {} runs", id, found.size());
  if (found.size() > kShownMatches) found.resize(kShownMatches);
  return Error{Errc::ambiguous_id, std::move(detail), std::move(found)};
}

std::vector<RunView> RunStore::list(const RunQuery& query) const {
  std::vector<RunView> list;
  for (auto at = by_start_.rbegin(); at != by_start_.rend() && list.size() < query.limit; ++at) {
    if (matches(runs_.find(at->second)->second.view, query)) {
      list.push_back(view(at->second));
    }
  }
  return list;
}

RunView RunStore::view(std::string_view id) const {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return {};
  RunView run = found->second.view;
  if (const auto& log = found->second.log) {
    run.log_bytes = log->bytes();
    run.log_left_out = log->left_out();
  }
  return run;
}

LogPart RunStore::read_log(std::string_view id, const LogQuery& query) const {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return {.text = {}, .next = query.offset, .ended = true};
  LogPart part = read_log_file(path_of(id) + "/log", query);
  part.ended = found->second.log == nullptr && part.next >= found->second.view.log_bytes;
  return part;
}

}  // namespace reprise::worker
