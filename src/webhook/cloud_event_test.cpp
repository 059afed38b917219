#include "webhook/cloud_event.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "base/ids.h"
#include "base/json.h"

namespace reprise::webhook {
namespace {

PendingWebhook death() {
  const Timestamp noon = std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) +
                         std::chrono::hours(12) + std::chrono::microseconds(250'001);
  JobRecord record;
  record.payload = R"({"order": 1})";
  JobState state;
  state.status = JobStatus::dead;
  state.generation = 2;
  state.last_error = "timeout";
  return {.key = {.died_at = noon, .queue = 3, .seq = 7},
          .queue = {"shop", "orders"},
          .url = "http://a/",
          .record = std::make_shared<const JobRecord>(record),
          .state = std::make_shared<const JobState>(state)};
}

TEST(CloudEvent, HasTheDocumentedAttributes) {
  const auto event = Json::parse(cloud_event(death()));
  ASSERT_TRUE(event);
  const std::string id = encode_job_id(7);
  EXPECT_EQ(*(*event)["specversion"].string(), "1.0");
  EXPECT_EQ(*(*event)["type"].string(), "reprise.job.dead");
  EXPECT_EQ(*(*event)["source"].string(), "/shop/orders");
  EXPECT_EQ(*(*event)["subject"].string(), id);
  EXPECT_EQ(*(*event)["time"].string(), "2026-01-31T12:00:00.250Z");
  EXPECT_EQ(*(*event)["datacontenttype"].string(), "application/json");
  EXPECT_EQ(*(*event)["data"]["event"]["id"].string(), id);
  EXPECT_EQ((*event)["data"]["event"]["payload"]["order"].integer(), 1);
  EXPECT_EQ(*(*event)["data"]["meta"]["lastError"].string(), "timeout");
}

TEST(CloudEvent, ItsIdNamesJobGenerationAndDeath) {
  const auto event = Json::parse(cloud_event(death()));
  EXPECT_EQ(*(*event)["id"].string(), encode_job_id(7) + "-2-1769860800250001");
}

TEST(CloudEvent, TheSameDeathHasTheSameIdAndTheNextOneAnother) {
  EXPECT_EQ(cloud_event(death()), cloud_event(death()));
  PendingWebhook next = death();
  next.key.died_at += std::chrono::microseconds(1);
  const auto id = [](const PendingWebhook& of) {
    return *(*Json::parse(cloud_event(of)))["id"].string();
  };
  EXPECT_NE(id(next), id(death()));
}

}  // namespace
}  // namespace reprise::webhook
