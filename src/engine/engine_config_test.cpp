// Runtime values: set, looked up, told to those who run hooks, there after a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/hook_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EngineConfig : public test::HookFixture {
 protected:
  Result<ConfigEntry> set(std::string key, std::string value, std::string ns = "shop") {
    return engine_->set_config(
        {.ns = std::move(ns), .key = std::move(key), .value = std::move(value)}, now());
  }
};

TEST_F(EngineConfig, AValueIsStoredToldAndShown) {
  pass(5s);
  const auto entry = set("rate", "5");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->updated_at, now());
  EXPECT_EQ(*engine_->config("shop", "rate"), *entry);
  EXPECT_EQ((ledger_.config.at({"shop", "rate"})), *entry);
  EXPECT_THAT(work_in_words(), ElementsAre("config shop/rate 5"));
}

TEST_F(EngineConfig, ANewValueReplacesTheOld) {
  ASSERT_TRUE(set("rate", "5"));
  pass(1s);
  ASSERT_TRUE(set("rate", "6"));
  EXPECT_EQ(engine_->config("shop", "rate")->value, "6");
  EXPECT_EQ(engine_->config("shop", "rate")->updated_at, now());
  EXPECT_THAT(work_in_words(), ElementsAre("config shop/rate 5", "config shop/rate 6"));
  EXPECT_EQ(ledger_.config.size(), 1U);
}

TEST_F(EngineConfig, UnsetTellsWhatItWas) {
  ASSERT_TRUE(set("rate", "5"));
  work();
  EXPECT_EQ(engine_->unset_config("shop", "rate")->value, "5");
  EXPECT_THAT(work_in_words(), ElementsAre("config shop/rate (gone)"));
  EXPECT_TRUE(ledger_.config.empty());
  EXPECT_EQ(engine_->config("shop", "rate").error().code, Errc::config_not_found);
}

TEST_F(EngineConfig, WhatIsNotThereIsNamed) {
  const auto gone = engine_->unset_config("shop", "rate");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Errc::config_not_found);
  EXPECT_THAT(gone.error().detail, HasSubstr("'rate'"));
  EXPECT_THAT(gone.error().detail, HasSubstr("'shop'"));
  ASSERT_TRUE(set("rate", "5"));
  EXPECT_EQ(engine_->config("other", "rate").error().code, Errc::config_not_found);
  EXPECT_EQ(engine_->config("shop", "rates").error().code, Errc::config_not_found);
}

TEST_F(EngineConfig, AListIsOfOneNamespaceAndSortedByKey) {
  ASSERT_TRUE(set("b", "2"));
  ASSERT_TRUE(set("a", "1"));
  ASSERT_TRUE(set("c", "3", "other"));
  const auto list = engine_->list_config("shop");
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].key, "a");
  EXPECT_EQ(list[1].key, "b");
  EXPECT_THAT(engine_->list_config("none"), IsEmpty());
}

TEST_F(EngineConfig, AValueOf4KiBIsTheLargest) {
  EXPECT_TRUE(set("rate", std::string(4096, 'x')));
  const auto refused = set("rate", std::string(4097, 'y'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::value_too_large);
  EXPECT_EQ(engine_->config("shop", "rate")->value.front(), 'x');
}

TEST_F(EngineConfig, ANamespaceHasAThousandKeysAndNoMore) {
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(set("k" + std::to_string(i), "v"));
  EXPECT_EQ(set("one more", "v").error().code, Errc::too_many_keys);
  EXPECT_TRUE(set("k5", "changed")) << "it is there already";
  EXPECT_TRUE(set("one", "v", "other"));
  ASSERT_TRUE(engine_->unset_config("shop", "k5"));
  EXPECT_TRUE(set("one more", "v"));
}

TEST_F(EngineConfig, SurvivesARestartAndIsToldAgain) {
  ASSERT_TRUE(set("rate", "5"));
  ASSERT_TRUE(set("gone", "1"));
  ASSERT_TRUE(engine_->unset_config("shop", "gone"));
  const ConfigEntry before = *engine_->config("shop", "rate");
  restart();
  EXPECT_EQ(*engine_->config("shop", "rate"), before);
  EXPECT_THAT(work_in_words(), ElementsAre("config shop/rate 5"));
}

// The clock that a restart goes on from must not be behind what was told.
TEST_F(EngineConfig, ItsTimeIsTheServersTime) {
  pass(1h);
  ASSERT_TRUE(set("rate", "5"));
  engine_->seal(now());
  EXPECT_EQ(ledger_.server.clock, now());
}

TEST_F(EngineConfig, CallsComeAfterTheChangesBeforeThem) {
  set_hook(HookKind::on_failure);
  push("a");
  start_fail(claim_one());
  ASSERT_TRUE(set("rate", "5"));
  EXPECT_THAT(work_in_words(), ElementsAre("config shop/rate 5", "call on_failure 1"));
}

}  // namespace
}  // namespace reprise
