// What `queue push` was asked to do, and the road of many jobs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_context.h"
#include "cli/job_encoder.h"
#include "cli/push_fallback.h"

namespace reprise::cli {

struct PushFlags {
  std::string queue;
  std::optional<std::string> payload;
  std::optional<std::string> payload_base64;
  std::vector<std::string> vars;
  std::optional<std::string> file;
  bool from_stdin = false;
  bool envelope = false;
  bool raw = false;
  bool create = false;
  bool spool = false;
  JobFields fields;

  bool many() const { return file || from_stdin; }
  int sources() const {
    return int(payload.has_value()) + int(payload_base64.has_value()) + int(!vars.empty()) +
           int(file.has_value()) + int(from_stdin);
  }
  // Nothing but the queue: how an external one is refreshed.
  bool bare() const {
    const bool about_jobs = fields.delay || fields.priority || fields.key || fields.ttl ||
                            !fields.headers.empty() || fields.fairness_key || fields.weight ||
                            !fields.throttle_keys.empty();
    return sources() == 0 && !about_jobs && !raw && !envelope && !create && !spool;
  }
  JobEncoder::Input input() const {
    if (payload_base64) return JobEncoder::Input::base64;
    if (envelope) return JobEncoder::Input::envelope;
    return raw ? JobEncoder::Input::bytes : JobEncoder::Input::json;
  }
  PushTarget target(const std::string& ns) const {
    return {.ns = ns, .queue = queue, .create = create};
  }
};

// One job for each line of a file or of stdin. The flags fit together.
int push_many(CommandContext& context, const PushFlags& flags);

}  // namespace reprise::cli
