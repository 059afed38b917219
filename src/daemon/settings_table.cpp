#include "daemon/settings_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>
#include <utility>

#include "base/duration.h"
#include "base/text.h"
#include "model/ingest_routes.h"
#include "model/limits.h"
#include "server/listen_address.h"

namespace reprise::daemon {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kKiB = 1ULL << 10;
constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kGiB = 1ULL << 30;
constexpr std::uint64_t kTiB = 1ULL << 40;

Error invalid(std::string detail) { return Error{Errc::invalid_field, std::move(detail)}; }

// format_bytes() rounds for the eye; a setting that is shown must read back as it was.
std::string exact_bytes(std::uint64_t bytes) {
  using Unit = std::pair<std::uint64_t, std::string_view>;
  constexpr std::array<Unit, 4> kUnits = {
      {{kTiB, "TiB"}, {kGiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}}};
  for (const auto& [size, suffix] : kUnits) {
    if (bytes != 0 && bytes % size == 0) return fmt::format("{}{}", bytes / size, suffix);
  }
  return fmt::format("{}", bytes);
}

// How each type is read and written. The rows below choose one of these by the type of the field.

struct DurationText {
  using Value = Duration;
  static constexpr SettingKind kKind = SettingKind::duration;
  static constexpr const char* kPlaceholder = "DURATION";
  static Result<Duration> parse(const std::string& text) { return parse_duration(text); }
  static std::string format(Duration value) { return format_duration(value); }
};

struct BytesText {
  using Value = std::uint64_t;
  static constexpr SettingKind kKind = SettingKind::bytes;
  static constexpr const char* kPlaceholder = "SIZE";
  static Result<std::uint64_t> parse(const std::string& text) {
    if (const auto bytes = parse_bytes(text)) return *bytes;
    return invalid(fmt::format("'{}' is not a size: write one like 64KiB, 16MiB or 1048576", text));
  }
  static std::string format(std::uint64_t value) { return exact_bytes(value); }
};

struct CountText {
  using Value = std::uint64_t;
  static constexpr SettingKind kKind = SettingKind::count;
  static constexpr const char* kPlaceholder = "N";
  static Result<std::uint64_t> parse(const std::string& text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end) {
      return invalid(fmt::format("'{}' is not a whole number", text));
    }
    return value;
  }
  static std::string format(std::uint64_t value) { return fmt::format("{}", value); }
};

struct Naming {
  std::string name;
  std::string group;
  std::string help;
};

Setting make_row(Naming naming, SettingKind kind, std::string placeholder) {
  Setting row;
  row.kind = kind;
  row.placeholder = std::move(placeholder);
  row.flag = "--" + naming.name;
  std::ranges::replace(row.flag, '_', '-');
  row.variable = "REPRISE_" + naming.name;
  std::ranges::transform(row.variable, row.variable.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  row.name = std::move(naming.name);
  row.group = std::move(naming.group);
  row.help = std::move(naming.help);
  return row;
}

void take_default(Setting& row) {
  const auto values = row.get(Settings());
  row.default_text = fmt::format("{}", fmt::join(values, ","));
  if (row.default_text.empty()) row.default_text = "none";
}

// `field` maps Settings to the member, const or not.
template <class Text, class Field>
Setting number(Naming naming, Field field, typename Text::Value least, typename Text::Value most) {
  const std::string range = fmt::format("{} to {}", Text::format(least), Text::format(most));
  naming.help += fmt::format("; {}", range);
  Setting row = make_row(std::move(naming), Text::kKind, Text::kPlaceholder);
  row.set = [=](Settings& settings, std::span<const std::string> values) -> Status {
    const auto value = Text::parse(values.front());
    if (!value) return value.error();
    if (*value < least || *value > most) {
      return invalid(fmt::format("{} is out of range: {}", values.front(), range));
    }
    auto& member = field(settings);
    member = static_cast<std::remove_reference_t<decltype(member)>>(*value);
    return ok();
  };
  row.get = [=](const Settings& settings) {
    return std::vector{Text::format(typename Text::Value(field(settings)))};
  };
  take_default(row);
  return row;
}

// `check` says what is wrong with a text.
template <class Field, class Check>
Setting text(Naming naming, std::string placeholder, Field field, Check check) {
  Setting row = make_row(std::move(naming), SettingKind::text, std::move(placeholder));
  row.set = [=](Settings& settings, std::span<const std::string> values) -> Status {
    REPRISE_TRY(check(values.front()));
    field(settings) = values.front();
    return ok();
  };
  row.get = [=](const Settings& settings) { return std::vector{std::string(field(settings))}; };
  take_default(row);
  return row;
}

Status check_anything(const std::string&) { return ok(); }

Status check_not_empty(const std::string& value) {
  return value.empty() ? Status(invalid("must not be empty")) : ok();
}

Status check_listen(const std::string& value) {
  const auto address = server::parse_listen_address(value);
  if (address) return ok();
  // The server names the option itself; here whoever calls `set` does.
  constexpr std::string_view kItsName = "listen: ";
  std::string detail = address.error().detail;
  if (detail.starts_with(kItsName)) detail.erase(0, kItsName.size());
  return invalid(std::move(detail));
}

Status check_listen_or_empty(const std::string& value) {
  return value.empty() ? ok() : check_listen(value);
}

// Empty: its own.
Status check_project(const std::string& value) {
  if (value.empty()) return ok();
  if (const Status name = check_name("project", value); !name) return invalid(name.error().detail);
  return ok();
}

// A list. On the command line the flag `flag` names one item and may be repeated.
template <class Field>
Setting list(Naming naming, std::string flag, std::string placeholder, Field field) {
  Setting row = make_row(std::move(naming), SettingKind::list, std::move(placeholder));
  row.flag = std::move(flag);
  row.set = [=](Settings& settings, std::span<const std::string> values) -> Status {
    if (std::ranges::find(values, "") != values.end()) return invalid("an item is empty");
    field(settings).assign(values.begin(), values.end());
    return ok();
  };
  row.get = [=](const Settings& settings) { return std::vector(field(settings)); };
  take_default(row);
  return row;
}

// The routes of ingested events.
template <class Field>
Setting ingest_routes(Naming naming, Field field) {
  Setting row = make_row(std::move(naming), SettingKind::table, "PATTERN=QUEUE");
  row.flag = "--ingest-route";
  row.table = "ingest.routes";
  row.set = [=](Settings& settings, std::span<const std::string> values) -> Status {
    auto routes = IngestRoutes::parse(values);
    if (!routes) return routes.error();
    field(settings) = std::move(*routes);
    return ok();
  };
  row.get = [=](const Settings& settings) { return field(settings).texts(); };
  take_default(row);
  return row;
}

template <class Field>
Setting boolean(Naming naming, Field field) {
  naming.help += "; true or false";
  Setting row = make_row(std::move(naming), SettingKind::boolean, "BOOL");
  row.set = [=](Settings& settings, std::span<const std::string> values) -> Status {
    const std::string& value = values.front();
    if (value != "true" && value != "false") {
      return invalid(fmt::format("'{}' is not true or false", value));
    }
    field(settings) = value == "true";
    return ok();
  };
  row.get = [=](const Settings& settings) {
    return std::vector{std::string(field(settings) ? "true" : "false")};
  };
  take_default(row);
  return row;
}

// `names` are the texts of the enum's values 0, 1, 2, ...
template <class Field>
Setting choice(Naming naming, Field field, std::vector<std::string> names) {
  naming.help += fmt::format("; one of {}", fmt::join(names, ", "));
  Setting row = make_row(std::move(naming), SettingKind::choice, "NAME");
  row.set = [=](Settings& settings, std::span<const std::string> values) -> Status {
    const auto found = std::ranges::find(names, values.front());
    if (found == names.end()) {
      return invalid(fmt::format("'{}' is not one of {}", values.front(), fmt::join(names, ", ")));
    }
    auto& member = field(settings);
    member = static_cast<std::remove_reference_t<decltype(member)>>(found - names.begin());
    return ok();
  };
  row.get = [=](const Settings& settings) {
    return std::vector{names.at(static_cast<std::size_t>(field(settings)))};
  };
  take_default(row);
  return row;
}

#define FIELD(path) \
  [](auto& settings) -> auto& { return settings.path; }

void add_server_rows(std::vector<Setting>& rows) {
  const std::string group = "Server";
  rows.push_back(text({"data", group, "Directory of the stored jobs; created if missing"}, "DIR",
                      FIELD(storage.directory), check_not_empty));
  rows.push_back(text({"listen", group, "Address and port; port 0 takes any free one"}, "HOST:PORT",
                      FIELD(http.listen), check_listen));
  rows.push_back(text(
      {"beanstalk", group, "Address and port of the beanstalk protocol; port 0 takes any free one"},
      "HOST:PORT", FIELD(beanstalk.listen), check_listen_or_empty));
  rows.push_back(boolean(
      {"beanstalk_remote", group, "Speak it beyond loopback as well, where it has no passwords"},
      FIELD(beanstalk.remote)));
  rows.push_back(
      text({"token_file", group, "File with one access token a line; required beyond loopback"},
           "FILE", FIELD(token_file), check_anything));
  rows.push_back(list(
      {"allowed_hosts", group, "Host names answered besides localhost and the address listened on"},
      "--allowed-host", "HOST", FIELD(http.allowed_hosts)));
  rows.push_back(number<CountText>({"io_threads", group, "Threads that serve connections"},
                                   FIELD(http.io_threads), 1, 64));
  // The number of cores is the machine's business, not the documentation's.
  rows.back().default_text = "2, or 1 on a single core";
  rows.push_back(number<CountText>({"max_connections", group, "Connections open at once"},
                                   FIELD(http.max_connections), 1, 1'000'000));
  rows.push_back(number<DurationText>(
      {"shutdown_grace", group, "How long a stop waits for requests under way"},
      FIELD(shutdown_grace), 0s, 10min));
}

void add_storage_rows(std::vector<Setting>& rows) {
  const std::string group = "Storage";
  rows.push_back(
      choice({"durability", group,
              "A change is synced to disk before its reply, every sync_interval, or never"},
             FIELD(broker.durability), {"sync", "interval", "none"}));
  rows.push_back(
      number<DurationText>({"sync_interval", group, "Time between syncs with durability interval"},
                           FIELD(broker.sync_interval), 1ms, 10s));
  rows.push_back(
      number<BytesText>({"disk_reserve", group, "Free disk space below which pushes are refused"},
                        FIELD(broker.disk_reserve_bytes), 0, 1024 * kTiB));
  rows.push_back(number<BytesText>({"cache_bytes", group, "Memory for recent jobs"},
                                   FIELD(broker.cache_bytes), 1 * kMiB, kTiB));
  rows.push_back(number<BytesText>({"block_cache_bytes", group, "Memory for RocksDB's blocks"},
                                   FIELD(storage.block_cache_bytes), 1 * kMiB, kTiB));
  rows.push_back(number<BytesText>(
      {"overlay_bytes", group, "Changes since the last checkpoint that make the next one start"},
      FIELD(storage.overlay_bytes), 1 * kMiB, 4 * kGiB));
  rows.push_back(number<BytesText>(
      {"journal_bytes", group, "Size of the journal that makes a checkpoint start as well"},
      FIELD(storage.journal_bytes), 1 * kMiB, 64 * kGiB));
}

void add_worker_rows(std::vector<Setting>& rows) {
  const std::string group = "Workers";
  rows.push_back(
      boolean({"workers", group, "Load projects and run their workers"}, FIELD(workers)));
  rows.push_back(text({"project_dir", group, "Project to load at the start; `none` for none"},
                      "DIR", FIELD(project_dir), check_anything));
  rows.back().default_text = "the project found from the current directory";
  rows.push_back(text({"project", group, "Name of that project, instead of its own"}, "NAME",
                      FIELD(project), check_project));
  rows.back().default_text = "its own";
  rows.push_back(
      number<CountText>({"keep_runs", group, "Runs of pipelines kept after they have ended"},
                        FIELD(worker.keep_runs), 1, 100'000));
  rows.push_back(number<BytesText>({"run_log_bytes", group, "Output kept of one run"},
                                   FIELD(worker.run_log_bytes), 4 * kKiB, kGiB));
}

void add_ingest_rows(std::vector<Setting>& rows) {
  rows.push_back(ingest_routes({"ingest_routes", "Ingest",
                                "Queues of ingested events by their type, `order.*=orders`; in the "
                                "file a table [ingest.routes]"},
                               FIELD(http.ingest_routes)));
}

void add_limit_rows(std::vector<Setting>& rows) {
  const std::string group = "Limits";
  const auto bytes = [&](std::string name, std::string help, auto field, std::uint64_t most) {
    rows.push_back(number<BytesText>({std::move(name), group, std::move(help)}, field, 1, most));
  };
  const auto count = [&](std::string name, std::string help, auto field, std::uint64_t most) {
    rows.push_back(number<CountText>({std::move(name), group, std::move(help)}, field, 1, most));
  };
  // The largest batch must fit, with its headers, among the commands that wait for the broker.
  const std::uint64_t batch_most = BrokerOptions().max_queued_bytes / 2;
  bytes("max_payload_bytes", "One job's payload", FIELD(broker.limits.max_payload_bytes),
        batch_most);
  count("max_batch_jobs", "Items in one request", FIELD(broker.limits.max_batch_jobs), 100'000);
  bytes("max_batch_bytes", "Payloads of one request together", FIELD(broker.limits.max_batch_bytes),
        batch_most);
  count("max_headers", "Headers of one job", FIELD(broker.limits.max_headers), 1000);
  bytes("max_header_bytes", "One header of a job, name and value",
        FIELD(broker.limits.max_header_bytes), 1 * kMiB);
  bytes("max_key_bytes", "An idempotency key", FIELD(broker.limits.max_key_bytes), 64 * kKiB);
  bytes("max_error_bytes", "The error text of a failure", FIELD(broker.limits.max_error_bytes),
        1 * kMiB);
  count("max_claim_jobs", "Jobs handed out by one claim", FIELD(broker.limits.max_claim_jobs),
        100'000);
  count("max_waiting_claims", "Claims waiting for a job", FIELD(broker.limits.max_waiting_claims),
        1'000'000);
  rows.push_back(number<CountText>(
      {"hook_timeout_ms", group, "Time of one call of a hook, for queues that do not say"},
      FIELD(broker.limits.hook_timeout_ms), 1, kLongestHookTimeoutMs));
  rows.push_back(number<BytesText>(
      {"hook_memory_bytes", group, "Memory of a hook, for queues that do not say"},
      FIELD(broker.limits.hook_memory_bytes), kLeastHookMemoryBytes, kMostHookMemoryBytes));
  rows.push_back(number<CountText>(
      {"max_hook_hosts", group, "Processes that run hooks, one for each queue that uses them"},
      FIELD(broker.max_hook_hosts), 1, 1000));
  add_worker_rows(rows);
  add_ingest_rows(rows);
  bytes("max_body_bytes", "A request's body", FIELD(http.max_body_bytes), 2 * batch_most);
  bytes("max_request_header_bytes", "A request's HTTP header", FIELD(http.max_request_header_bytes),
        1 * kMiB);
}

void add_timeout_rows(std::vector<Setting>& rows) {
  const auto timeout = [&](std::string name, std::string help, auto field) {
    rows.push_back(
        number<DurationText>({std::move(name), "Timeouts", std::move(help)}, field, 100ms, 1h));
  };
  timeout("header_timeout", "From the first byte of a request to the end of its header",
          FIELD(http.header_timeout));
  timeout("body_timeout", "Between two pieces of a request's body", FIELD(http.body_timeout));
  timeout("idle_timeout", "Between two requests of a connection", FIELD(http.idle_timeout));
  timeout("write_timeout", "Without a byte of the reply leaving", FIELD(http.write_timeout));
  timeout("event_keep_alive", "Between two comments on an event stream",
          FIELD(http.event_keep_alive));
}

void add_logging_rows(std::vector<Setting>& rows) {
  const std::string group = "Logging";
  rows.push_back(choice({"log_level", group, "The least important lines to write"},
                        FIELD(log_level), {"debug", "info", "warn", "error"}));
  rows.push_back(choice({"log_format", group, "Lines for people or for machines"},
                        FIELD(log_format), {"text", "json"}));
}

#undef FIELD

std::vector<Setting> build_table() {
  std::vector<Setting> rows;
  add_server_rows(rows);
  add_storage_rows(rows);
  add_limit_rows(rows);
  add_timeout_rows(rows);
  add_logging_rows(rows);
  return rows;
}

}  // namespace

std::span<const Setting> all_settings() {
  static const std::vector<Setting> table = build_table();
  return table;
}

const Setting* find_setting(std::string_view name) {
  const auto settings = all_settings();
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

std::string suggestion(std::string_view typed, std::span<const std::string> candidates) {
  const auto meant = did_you_mean(typed, candidates);
  return meant ? fmt::format("; did you mean {}?", *meant) : "";
}

}  // namespace reprise::daemon
