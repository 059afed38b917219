#include "spool/import.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/json_writer.h"
#include "model/limits.h"
#include "spool/directory.h"
#include "spool/event.h"
#include "spool/event_object.h"
#include "spool/what_fits.h"

namespace reprise::spool {
namespace {

constexpr std::size_t kGroupEvents = 500;
constexpr std::size_t kGroupBytes = 8 << 20;

Error skip(std::string reason) { return Error{Errc::invalid_field, std::move(reason)}; }

Error too_large(std::uint64_t bytes) {
  return skip(fmt::format("too large: {} bytes, at most {}", bytes, kMaxEventBytes));
}

// The event that a file holds, with what it lacks in front of what it has.
Result<NewFile> event_of(const FileContent& content, UlidSource& ids, Timestamp now) {
  const auto object = EventObject::parse(content.bytes);
  if (!object) return object.error();
  const JsonView type = (*object)["type"];
  if (!type.present()) return skip("`type` is missing");
  if (!type.is_string()) return skip("`type` must be a string");
  if (const auto problem = event_type_problem(type.string_or("")); !problem.empty()) {
    return skip("`type` " + problem);
  }
  std::string id;
  std::string added;
  if ((*object)["id"].present()) {
    auto own = object->id();
    if (!own) return own.error();
    id = std::move(*own);
  } else {
    id = encode_ulid(ids.next(now));
    added += R"("id":)";
    append_json_string(added, id);
    added += ',';
  }
  if (!(*object)["timestamp"].present()) {
    added += R"("timestamp":)";
    append_json_string(added, format_timestamp(content.changed_at));
    added += ',';
  }
  std::string json = object->without_bookkeeping().insert(1, added);
  if (json.size() > kMaxEventBytes) return too_large(json.size());
  return NewFile{event_file_name(id), std::move(json)};
}

class Importer {
 public:
  Importer(int from, Outbox& outbox, const ImportOptions& options, ImportResult& result)
      : from_(from), outbox_(outbox), options_(options), result_(result) {}

  void take(const std::string& file, const FileContent& content, UlidSource& ids, Timestamp now) {
    using State = FileContent::State;
    if (content.state == State::vanished) return;
    auto event = content.state == State::whole       ? event_of(content, ids, now)
                 : content.state == State::too_large ? Result<NewFile>(too_large(content.size))
                                                     : Result<NewFile>(skip(content.problem));
    if (!event) {
      result_.skipped.push_back({file, event.error().detail});
      return;
    }
    bytes_ += event->content.size();
    files_.push_back(file);
    events_.push_back(std::move(*event));
  }

  bool is_full() const { return events_.size() >= kGroupEvents || bytes_ >= kGroupBytes; }

  // Stores what was taken, or as much of it as fits.
  Status store() {
    if (events_.empty()) return ok();
    const auto stored =
        add_what_fits([this](const std::vector<NewFile>& events) { return outbox_.add(events); },
                      std::exchange(events_, {}));
    files_.resize(stored.count);
    result_.imported += stored.count - stored.added.already_there.size();
    result_.already_queued += stored.added.already_there.size();
    result_.dropped += stored.added.dropped;
    if (options_.remove) remove_sources();
    files_.clear();
    bytes_ = 0;
    if (stored.error) return *stored.error;
    return ok();
  }

 private:
  void remove_sources() {
    for (const std::string& file : files_) {
      if (::unlinkat(from_, file.c_str(), 0) == 0 || errno == ENOENT) continue;
      result_.skipped.push_back({file, "it is in the spool, but was not removed: " +
                                           io_error("remove", file, errno).detail});
    }
  }

  int from_;
  Outbox& outbox_;
  const ImportOptions& options_;
  ImportResult& result_;
  std::vector<NewFile> events_;
  std::vector<std::string> files_;  // where each event comes from
  std::size_t bytes_ = 0;
};

// To remove what is in the queue already would empty the queue.
bool is_queue(int directory, const Outbox& outbox) {
  struct stat one {};
  struct stat other {};
  return ::fstat(directory, &one) == 0 &&
         ::fstat(outbox.files().folder_fd(Folder::queue), &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

Status import_events(const std::filesystem::path& from, Outbox& outbox, UlidSource& ids,
                     const Clock& clock, const ImportOptions& options, ImportResult& result) {
  const UniqueFd directory(::open(from.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return io_error("open", from, errno);
  if (is_queue(directory.get(), outbox)) {
    return Error{Errc::invalid_field,
                 fmt::format("{} is the queue of this very spool", from.string())};
  }
  std::vector<std::string> names;
  REPRISE_TRY(for_each_entry(directory.get(), from, [&](std::string_view name, mode_t) {
    if (name.ends_with(".json") && !name.starts_with('.')) names.emplace_back(name);
  }));
  std::ranges::sort(names);
  Importer importer(directory.get(), outbox, options, result);
  for (std::size_t done = 0; done < names.size();) {
    const std::string& name = names[done++];
    importer.take(name, read_regular(directory.get(), name, kMaxEventBytes, Beyond::refuse), ids,
                  clock.now());
    if (!importer.is_full() && done < names.size()) continue;
    REPRISE_TRY(importer.store());
    if (options.progress) options.progress(done, names.size());
  }
  return ok();
}

}  // namespace reprise::spool
