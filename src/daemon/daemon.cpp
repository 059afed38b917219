#include "daemon/daemon.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/random.h"
#include "base/text.h"
#include "broker/broker.h"
#include "daemon/banner.h"
#include "daemon/broker_outbox.h"
#include "daemon/logging.h"
#include "daemon/process.h"
#include "daemon/stop_signals.h"
#include "reprise_version.h"
#include "runbook/load.h"
#include "server/access_tokens.h"
#include "server/beanstalk_server.h"
#include "server/http_server.h"
#include "storage/durable/durable_storage.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "webhook/webhook_sender.h"
#include "worker/worker_service.h"

namespace reprise::daemon {
namespace {

using std::chrono::steady_clock;

// Files besides connections: RocksDB's tables and logs, stdio, and some to spare.
constexpr std::uint64_t kOtherFiles = 512;
constexpr auto kProjectWait = std::chrono::seconds(2);

// The latest time an earlier run stamped on anything; the clock must not start before it.
Result<Timestamp> stored_clock(const storage::Storage& storage) {
  const auto bytes = storage.get(storage::Keyspace::meta, storage::kServerKey);
  if (!bytes) return bytes.error();
  if (!*bytes) return Timestamp::min();
  const auto record = storage::decode_server(**bytes);
  if (!record) return record.error();
  return record->clock;
}

// All jobs that are there, dead ones included.
std::uint64_t count_jobs(Broker& broker) {
  std::promise<std::uint64_t> counted;
  broker.list_queues("", [&](Result<std::vector<QueueStats>> queues) {
    std::uint64_t jobs = 0;
    if (queues) {
      for (const QueueStats& stats : *queues) {
        for (std::size_t status = 0; status < kJobStatusCount; ++status) {
          if (status == static_cast<std::size_t>(JobStatus::completed)) continue;
          jobs += stats.by_status[status];
        }
      }
    }
    counted.set_value(jobs);
  });
  return counted.get_future().get();
}

[[noreturn]] void die_of_storage(const Error& error) {
  spdlog::critical("the storage failed, stopping without further replies: {}", error.detail);
  spdlog::shutdown();
  // No destructors: they would wait for the thread we are on, and nothing may be answered any more.
  _exit(kExitStorageFailed);
}

// Who made the server write where, for whoever asks later.
void log_backup(const std::string& data, const BackupCommand& command,
                const Result<BackupReply>& reply) {
  const std::string asked_by =
      command.asked_by.empty() ? std::string() : fmt::format(" for {}", command.asked_by);
  if (reply) {
    spdlog::info("backup of {} to {}{}: {} in {}", data, command.directory, asked_by,
                 format_bytes(reply->bytes), humanize_duration(reply->took));
  } else {
    spdlog::warn("backup of {} to {}{} failed: {} ({})", data, command.directory, asked_by,
                 reply.error().detail, errc_info(reply.error().code).wire_name);
  }
}

class Daemon {
 public:
  Daemon(const LoadedSettings& loaded, PortFiles port_files)
      : loaded_(loaded), settings_(loaded.settings), port_files_(std::move(port_files)) {}

  // The broker's threads may still call on what is destroyed before it.
  ~Daemon() {
    if (beanstalk_) beanstalk_->stop(Duration::zero());
    if (workers_) workers_->stop();
    if (broker_) broker_->stop();
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  int run() {
    if (const auto failed = start()) return *failed;
    const int signal = signals_.wait();
    spdlog::info("{}: stopping", strsignal(signal));
    stop();
    spdlog::info("stopped");
    return kExitStopped;
  }

 private:
  // The exit code, when it could not start; what was wrong is then in the log.
  std::optional<int> start() {
    const auto began = steady_clock::now();
    remove_port_files();  // those of an earlier run would mislead
    raise_limits();
    if (const auto failed = read_tokens()) return failed;
    if (const Status opened = open_broker(); !opened) {
      return cannot_start(kExitCannotStart, with_advice(opened.error()));
    }
    const std::uint64_t jobs = count_jobs(*broker_);
    const auto recovery = std::chrono::duration_cast<Duration>(steady_clock::now() - began);
    signals_.arm();
    start_webhooks();
    if (!settings_.workers) {
      // Nobody else will: what workers held when the last server ended.
      broker_->release_own([](const Result<std::size_t>&) {});
    } else {
      if (const Status opened = open_workers(); !opened) {
        return cannot_start(kExitCannotStart, opened.error().detail);
      }
    }
    if (const auto failed = listen()) return failed;
    if (const auto failed = listen_for_beanstalk()) return failed;
    load_project();
    announce(jobs, recovery);
    return publish_ports();
  }

  void raise_limits() const {
    const std::uint64_t files = raise_open_file_limit();
    const std::uint64_t servers = settings_.beanstalk.listen.empty() ? 1 : 2;
    if (files < servers * settings_.http.max_connections + kOtherFiles) {
      spdlog::warn(
          "only {} files can be open at once, too few for max_connections = {}: raise the "
          "limit (ulimit -n, LimitNOFILE=) or lower the setting",
          files, settings_.http.max_connections);
    }
  }

  Status open_broker() {
    storage::DurableOptions storage_options = settings_.storage;
    // What a power cut left unfinished was cut off: nobody was promised it, but nobody should
    // wonder.
    storage_options.notice = [](std::string_view what) { spdlog::warn("{}", what); };
    storage_options.on_failure = die_of_storage;
    storage_options.commits = settings_.broker.durability == DurabilityMode::sync
                                  ? storage::Durability::synced
                                  : storage::Durability::buffered;
    auto storage = storage::open_durable_storage(storage_options);
    if (!storage) return storage.error();
    storage_ = std::move(*storage);
    const auto not_before = stored_clock(*storage_);
    if (!not_before) return not_before.error();
    clock_ = std::make_unique<SteadyWallClock>(*not_before);

    BrokerOptions options = settings_.broker;
    options.free_disk_bytes = [directory = settings_.storage.directory] {
      return free_disk_bytes(directory);
    };
    options.on_fatal = die_of_storage;
    options.on_hook_log = [](const QueueName& queue, HookKind hook, std::string_view text) {
      spdlog::info("{}/{} {}: {}", queue.ns, queue.name, hook_name(hook), text);
    };
    options.on_hook_trouble = [](const QueueName& queue, HookKind hook, std::string_view text) {
      spdlog::warn("{} of queue {}/{} {}", hook_name(hook), queue.ns, queue.name, text);
    };
    options.on_hook_notice = [](std::string_view text) { spdlog::warn("hooks: {}", text); };
    options.on_backup = [data = settings_.storage.directory](const BackupCommand& command,
                                                             const Result<BackupReply>& reply) {
      log_backup(data, command, reply);
    };
    auto broker = Broker::open(*storage_, *clock_, random_, std::move(options));
    if (!broker) return broker.error();
    broker_ = std::move(*broker);
    return ok();
  }

  void start_webhooks() {
    outbox_ = std::make_unique<BrokerOutbox>(*broker_);
    webhook::WebhookSenderOptions options;
    options.info = [](std::string_view text) { spdlog::info("{}", text); };
    options.warn = [](std::string_view text) { spdlog::warn("{}", text); };
    webhooks_ = std::make_unique<webhook::WebhookSender>(*outbox_, *clock_, std::move(options));
    broker_->on_webhooks([this] { webhooks_->wake(); });
  }

  Status open_workers() {
    worker::WorkerOptions options = settings_.worker;
    options.directory = settings_.storage.directory + "/workers";
    // Steps are started after the server listens: the first project is loaded then.
    options.server_url = [this] {
      const std::lock_guard lock(url_mutex_);
      return url_;
    };
    options.info = [](std::string_view text) { spdlog::info("workers: {}", text); };
    options.warn = [](std::string_view text) { spdlog::warn("workers: {}", text); };
    auto workers =
        worker::WorkerService::open(*broker_, *clock_, worker_random_, std::move(options));
    if (!workers) return workers.error();
    workers_ = std::move(*workers);
    return ok();
  }

  // The project that the settings name, or that the current directory is in. One that cannot be
  // loaded does not keep the server from serving.
  void load_project() {
    {
      const std::lock_guard lock(url_mutex_);
      url_ = client_url(server_->address());
    }
    if (!workers_) return;
    workers_->begin();
    if (settings_.project_dir == "none") return;
    const bool asked = !settings_.project_dir.empty();
    const auto root = runbook::find_project(asked ? settings_.project_dir : ".");
    if (!root) {
      if (asked) spdlog::error("project_dir: no .reprise/ in or above {}", settings_.project_dir);
      return;
    }
    auto loaded = std::make_shared<std::promise<void>>();
    auto future = loaded->get_future();
    workers_->want_project(*root, settings_.project,
                           [loaded, root = *root](const Result<worker::ProjectView>& project) {
                             if (!project) {
                               spdlog::error("the project in {} is not loaded: {}", root,
                                             project.error().detail);
                             }
                             loaded->set_value();
                           });
    // So that its queues are there when the server is announced; it may take longer, though.
    future.wait_for(kProjectWait);
  }

  // Before the storage is opened: wrong settings should not cost a recovery.
  std::optional<int> read_tokens() {
    if (settings_.token_file.empty()) return std::nullopt;
    const auto text = read_whole_file(settings_.token_file);
    if (!text) return bad_setting("token_file", text.error().detail);
    auto tokens = server::parse_access_tokens(*text);
    if (!tokens) {
      return bad_setting("token_file",
                         fmt::format("{}: {}", settings_.token_file, tokens.error().detail));
    }
    tokens_ = std::move(*tokens);
    return std::nullopt;
  }

  std::optional<int> listen() {
    server::HttpServerOptions options = settings_.http;
    options.tokens = tokens_;
    options.webhook_stats = [this] { return webhooks_->stats(); };
    if (!settings_.beanstalk.listen.empty()) {
      options.beanstalk_stats = [this] { return beanstalk_stats(); };
    }
    options.workers = workers_.get();
    auto server = server::HttpServer::start(*broker_, std::move(options));
    if (!server && server.error().code == Errc::invalid_field) {
      return bad_setting("listen", server.error().detail);
    }
    if (!server) {
      return cannot_start(kExitCannotStart,
                          server.error().detail + "; another address is chosen with --listen");
    }
    server_ = std::move(*server);
    return std::nullopt;
  }

  std::optional<int> listen_for_beanstalk() {
    if (settings_.beanstalk.listen.empty()) return std::nullopt;
    server::BeanstalkServerOptions options = settings_.beanstalk;
    options.max_connections = settings_.http.max_connections;
    auto server = server::BeanstalkServer::start(*broker_, std::move(options));
    if (!server && server.error().code == Errc::invalid_field) {
      return bad_setting("beanstalk", server.error().detail);
    }
    if (!server) {
      return cannot_start(kExitCannotStart,
                          server.error().detail + "; another address is chosen with --beanstalk");
    }
    const std::lock_guard lock(beanstalk_mutex_);
    beanstalk_ = std::move(*server);
    return std::nullopt;
  }

  int bad_setting(const std::string& name, const std::string& detail) const {
    return cannot_start(kExitBadSettings,
                        fmt::format("{} (from {})", detail, loaded_.origins.at(name)));
  }

  // Damage that says nothing about a way out yet.
  std::string with_advice(const Error& error) const {
    if (error.code != Errc::corrupt || error.detail.find("reprise salvage") != std::string::npos) {
      return error.detail;
    }
    return fmt::format(
        "{}; restore a backup, or copy what can be read with `reprise salvage "
        "--data {} --to NEW`",
        error.detail, shell_quoted(settings_.storage.directory));
  }

  static int cannot_start(int exit_code, const std::string& reason) {
    spdlog::critical("cannot start: {}", reason);
    return exit_code;
  }

  void announce(std::uint64_t jobs, Duration recovery) const {
    const std::string durability(durability_mode_name(settings_.broker.durability));
    spdlog::info("reprise {} serves {} on http://{}, durability {}, {} jobs recovered in {}",
                 kVersion, settings_.storage.directory, server_->address(), durability, jobs,
                 humanize_duration(recovery));
    if (beanstalk_) spdlog::info("beanstalk on {}", beanstalk_->address());
    fmt::print("{}", banner({.command = command_name(),
                             .address = server_->address(),
                             .beanstalk = beanstalk_ ? beanstalk_->address() : "",
                             .data = settings_.storage.directory,
                             .durability = durability,
                             .token_file = settings_.token_file,
                             .jobs = jobs,
                             .recovery = recovery}));
    std::fflush(stdout);
  }

  // The HTTP server is there first.
  server::BeanstalkStats beanstalk_stats() const {
    const std::lock_guard lock(beanstalk_mutex_);
    return beanstalk_ ? beanstalk_->stats() : server::BeanstalkStats{};
  }

  // The other one first: whoever waits for --port-file finds it there.
  std::optional<int> publish_ports() const {
    if (beanstalk_) {
      if (const auto failed =
              publish_port("--beanstalk-port-file", port_files_.beanstalk, beanstalk_->address())) {
        return failed;
      }
    }
    return publish_port("--port-file", port_files_.http, server_->address());
  }

  static std::optional<int> publish_port(const std::string& flag, const std::string& file,
                                         const std::string& address) {
    if (file.empty()) return std::nullopt;
    const Status written = write_file_atomically(file, address + "\n");
    if (written) return std::nullopt;
    return cannot_start(kExitCannotStart, fmt::format("{}: {}", flag, written.error().detail));
  }

  void remove_port_files() const {
    for (const std::string& file : {port_files_.http, port_files_.beanstalk}) {
      if (!file.empty()) std::remove(file.c_str());
    }
  }

  void stop() {
    server_->begin_shutdown();
    broker_->stop_waiting();
    if (workers_) workers_->stop_waiting();
    storage_->interrupt_maintenance();  // a backup under way is answered, not waited for
    stop_servers();
    if (workers_) workers_->stop();
    webhooks_->stop();
    broker_->stop();
    server_.reset();
    beanstalk_.reset();
    workers_.reset();  // after the broker has answered it for the last time
    webhooks_.reset();
    outbox_.reset();
    broker_.reset();
    storage_.reset();
    remove_port_files();
  }

  // Both have the same time for it.
  void stop_servers() {
    std::future<void> beanstalk;
    if (beanstalk_) {
      beanstalk =
          std::async(std::launch::async, [this] { beanstalk_->stop(settings_.shutdown_grace); });
    }
    server_->stop(settings_.shutdown_grace);
    if (beanstalk_) beanstalk.wait();
  }

  const LoadedSettings& loaded_;
  const Settings& settings_;
  const PortFiles port_files_;
  std::vector<server::AccessToken> tokens_;
  StopSignals signals_;
  // In the order in which each uses those before it, so that destruction goes the other way.
  SystemRandom random_;
  std::unique_ptr<storage::Storage> storage_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<BrokerOutbox> outbox_;
  std::unique_ptr<webhook::WebhookSender> webhooks_;
  SystemRandom worker_random_;  // the broker has its own: each belongs to one thread
  std::mutex url_mutex_;
  std::string url_;  // protected by url_mutex_
  std::unique_ptr<worker::WorkerService> workers_;
  mutable std::mutex beanstalk_mutex_;
  // Set once, under beanstalk_mutex_: the HTTP server's threads may ask before.
  std::unique_ptr<server::BeanstalkServer> beanstalk_;
  std::unique_ptr<server::HttpServer> server_;
};

}  // namespace

int run_daemon(const LoadedSettings& loaded, const PortFiles& port_files) {
  set_up_logging(loaded.settings.log_level, loaded.settings.log_format);
  for (const std::string& warning : loaded.warnings) spdlog::warn("{}", warning);
  return Daemon(loaded, port_files).run();
}

}  // namespace reprise::daemon
