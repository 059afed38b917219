#include "webhook/cloud_event.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "base/json_writer.h"
#include "model/dead_letter_json.h"
#include "model/job_fields_json.h"

namespace reprise::webhook {

std::string cloud_event(const PendingWebhook& death) {
  const std::string job = encode_job_id(death.key.seq);
  JsonWriter out;
  out.reserve(1024 + death.record->byte_size());
  out.begin_object();
  out.key("specversion").value("1.0");
  // A job that was brought back may die again, and one in a dead-letter queue without it, so
  // neither its own id nor its generation is enough.
  out.key("id").value(fmt::format("{}-{}-{}", job, death.state->generation,
                                  death.key.died_at.time_since_epoch().count()));
  out.key("type").value("reprise.job.dead");
  out.key("source").value(fmt::format("/{}/{}", death.queue.ns, death.queue.name));
  out.key("subject").value(job);
  write_time(out, "time", death.key.died_at);
  out.key("datacontenttype").value("application/json");
  out.key("data");
  write_dead_letter(out, death.queue, death.key.seq, *death.record, *death.state);
  out.end_object();
  return out.take();
}

}  // namespace reprise::webhook
