// Workers: started, stopped, looked at.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json_fields.h"
#include "model/limits.h"
#include "server/handlers.h"
#include "server/worker_json.h"

namespace reprise::server {
namespace {

using worker::WorkerCommand;
using worker::WorkerVerb;

constexpr std::size_t kMaxNames = 1000;

// Each once, in the order given. False: the field is not there.
Result<bool> read_names(JsonFields& fields, std::vector<std::string>& names) {
  const Json* list = fields.peek("names");
  if (list == nullptr || list->is_null()) return false;
  if (list->array() == nullptr) {
    return Error{Errc::invalid_request, "names: expected an array of workers' names"};
  }
  if (list->array()->size() > kMaxNames) {
    return Error{Errc::batch_too_many_jobs, fmt::format("names: more than {}", kMaxNames)};
  }
  for (const Json& name : *list->array()) {
    if (name.string() == nullptr) {
      return Error{Errc::invalid_request,
                   fmt::format("names: expected a worker's name, not {}", name.kind_name())};
    }
    REPRISE_TRY(check_name("worker", *name.string()));
    if (std::ranges::find(names, *name.string()) == names.end()) names.push_back(*name.string());
  }
  return true;
}

Status read_resize(JsonFields& fields, WorkerCommand& command) {
  const auto has_names = read_names(fields, command.names);
  if (!has_names) return has_names.error();
  constexpr std::uint32_t kMost = runbook::WorkerDeclaration::kMostConcurrency;
  std::optional<std::uint64_t> concurrency;
  fields.read("concurrency", concurrency);
  if (concurrency && (*concurrency < 1 || *concurrency > kMost)) {
    fields.fail("concurrency", fmt::format("must be between 1 and {}", kMost));
  }
  REPRISE_TRY(fields.finish());
  if (command.names.size() != 1) {
    return Error{Errc::invalid_request, "names: one worker is resized at a time: name it"};
  }
  if (!concurrency) return Error{Errc::invalid_request, "concurrency: is missing"};
  command.concurrency = static_cast<std::uint32_t>(*concurrency);
  return ok();
}

Status read_command(const Json& json, WorkerCommand& command) {
  JsonFields fields(json);
  if (command.verb == WorkerVerb::resize) return read_resize(fields, command);
  const auto has_names = read_names(fields, command.names);
  if (!has_names) return has_names.error();
  fields.read("all", command.all);
  if (command.verb == WorkerVerb::start) {
    read_root(fields, command.root);
  } else {
    fields.read("now", command.now);
  }
  REPRISE_TRY(fields.finish());
  if (*has_names && command.all) {
    return Error{Errc::invalid_request, "give names or \"all\": true, not both"};
  }
  if (!*has_names && !command.all) {
    return Error{Errc::invalid_request, "names: is missing: which workers, or \"all\": true"};
  }
  return ok();
}

Status change_workers(Api& api, Request& request, const Exchange& exchange, WorkerVerb verb) {
  REPRISE_TRY(expect_workers(api));
  auto ns = request.only_namespace();
  if (!ns) return ns.error();
  const auto json = request.json_body();
  if (!json) return json.error();
  WorkerCommand command{.verb = verb, .ns = std::move(*ns)};
  REPRISE_TRY(read_command(*json, command));
  api.workers->change_workers(std::move(command),
                              exchange.then<worker::WorkerReply>(worker_items_response));
  return ok();
}

}  // namespace

Status list_workers(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  auto ns = request.namespace_or_all();
  if (!ns) return ns.error();
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  api.workers->list_workers(std::move(*ns), exchange.then<worker::WorkerList>(workers_response));
  return ok();
}

Status start_workers(Api& api, Request& request, const Exchange& exchange) {
  return change_workers(api, request, exchange, WorkerVerb::start);
}

Status stop_workers(Api& api, Request& request, const Exchange& exchange) {
  return change_workers(api, request, exchange, WorkerVerb::stop);
}

Status restart_workers(Api& api, Request& request, const Exchange& exchange) {
  return change_workers(api, request, exchange, WorkerVerb::restart);
}

Status resize_worker(Api& api, Request& request, const Exchange& exchange) {
  return change_workers(api, request, exchange, WorkerVerb::resize);
}

Status refresh_queue(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  auto name = request.queue_name();
  if (!name) return name.error();
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  api.workers->refresh(std::move(*name),
                       exchange.then<worker::ExternalQueueView>(external_queue_response));
  return ok();
}

}  // namespace reprise::server
