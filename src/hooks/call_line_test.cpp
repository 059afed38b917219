#include "hooks/call_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::hooks {
namespace {

using testing::ElementsAre;

PendingCall make_call(HookCallId id, HookKind hook, ScriptsPtr scripts, std::size_t payload = 0) {
  auto record = std::make_shared<JobRecord>();
  record->payload.assign(payload, 'x');
  return {.id = id,
          .hook = hook,
          .message = {.job = std::move(record)},
          .scripts = std::move(scripts),
          .with_payload = payload > 0};
}
std::vector<HookCallId> ids(const std::vector<PendingCall>& calls) {
  std::vector<HookCallId> result;
  for (const PendingCall& call : calls) result.push_back(call.id);
  return result;
}

class CallLineTest : public testing::Test {
 protected:
  void add(HookCallId id, HookKind hook, std::size_t payload = 0) {
    line.add(make_call(id, hook, scripts, payload));
  }
  CallLine line;
  ScriptsPtr scripts = make_scripts({.name = "q"}, {"a", "b"}, {});
  ScriptsPtr newer = make_scripts({.name = "q"}, {"c", "d"}, {});
};

TEST_F(CallLineTest, ABatchIsOfOneHookAndTheOlderHookGoesFirst) {
  add(1, HookKind::on_failure);
  add(2, HookKind::on_enqueue);
  add(3, HookKind::on_failure);
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(1, 3));
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(2));
  EXPECT_TRUE(line.empty());
}

TEST_F(CallLineTest, ABatchIsOfOneSetOfScriptsAndOlderOnesGoFirst) {
  add(1, HookKind::on_failure);
  line.add(make_call(2, HookKind::on_failure, newer));
  line.add(make_call(3, HookKind::on_enqueue, newer));
  EXPECT_EQ(line.next_scripts(), scripts);
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(1));
  EXPECT_EQ(line.next_scripts(), newer);
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(2));
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(3));
}

TEST_F(CallLineTest, ABatchHasABoundOfCallsAndOneOfBytes) {
  for (HookCallId id = 0; id <= CallLine::kBatchCalls; ++id) add(id, HookKind::on_failure);
  EXPECT_EQ(line.take_batch().size(), CallLine::kBatchCalls);
  EXPECT_EQ(line.take_batch().size(), 1U);

  add(100, HookKind::on_failure, 3U << 20);
  add(101, HookKind::on_failure, 700'000);
  add(102, HookKind::on_failure, 300'000);
  add(103, HookKind::on_failure, 700'000);
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(100)) << "one in any case";
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(101, 102));
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(103));
}

TEST_F(CallLineTest, WhatIsPutBackGoesToItsOldPlace) {
  for (HookCallId id = 1; id <= 4; ++id) add(id, HookKind::on_failure);
  auto batch = line.take_batch();
  add(5, HookKind::on_failure);
  for (const std::size_t i : {1U, 3U, 0U}) line.put_back(std::move(batch[i]));
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(1, 2, 4, 5));
}

TEST_F(CallLineTest, DropsTheCallsOfAHook) {
  add(1, HookKind::on_failure);
  add(2, HookKind::on_enqueue);
  line.drop(HookKind::on_failure);
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(2));
}

TEST_F(CallLineTest, TakesAllOfSomeScripts) {
  add(1, HookKind::on_failure);
  line.add(make_call(2, HookKind::on_failure, newer));
  add(3, HookKind::on_enqueue);
  EXPECT_THAT(ids(line.take_all_of(*scripts)), testing::UnorderedElementsAre(1, 3));
  EXPECT_THAT(ids(line.take_batch()), ElementsAre(2));
}

TEST(MentionsPayload, FindsTheWordButNotTheSize) {
  EXPECT_TRUE(mentions_payload("return json.decode(msg.payload)"));
  EXPECT_TRUE(mentions_payload("if msg.payload_size > 3 then x = msg['payload'] end"));
  EXPECT_FALSE(mentions_payload("return msg.payload_size"));
  EXPECT_FALSE(mentions_payload("return msg.error"));
  EXPECT_FALSE(mentions_payload(""));
}

}  // namespace
}  // namespace reprise::hooks
