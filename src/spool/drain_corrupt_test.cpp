// Files that are no events: the drain buries them and goes on.
#include <fcntl.h>
#include <unistd.h>

#include "spool/drain.h"
#include "support/drain_fixture.h"

namespace reprise::spool {
namespace {

using test::DrainTest;
using test::Ids;
using test::test_id;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

const std::vector<std::string> kNoEvents = {
    "",
    R"({"id":"01KA5QH3M5T6W0V8Z2Y4000000","type":)",
    "42",
    "[]",
    "null",
    "{}",
    "{\"id\":\"01KA5QH3M5T6W0V8Z2Y4000000\",\"x\":\"\xff\"}",
    R"({"type":"t"})",
    R"({"id":7})",
    R"({"id":"short"})",
    R"({"id":"81KA5QH3M5T6W0V8Z2Y4000000"})",
    R"({"id":"01KA5QH3M5T6W0V8Z2Y400000I"})",
    R"({"id":"01KA5QH3M5T6W0V8Z2Y4000000"}{)",
    std::string(100, '\0'),
    R"({"id":"01KA5QH3M5T6W0V8Z2Y4000000","x":)" + std::string(100'000, '['),
};

TEST_F(DrainTest, WhatIsNoEventDiesAtOnceWithItsBytes) {
  for (std::size_t i = 0; i < kNoEvents.size(); ++i) {
    put(test_id(2 * i) + ".json", kNoEvents[i]);
    put_event(2 * i + 1);
  }
  const DrainResult result = run();
  EXPECT_EQ(result.corrupt, kNoEvents.size());
  EXPECT_EQ(result.dead_lettered, 0U);
  EXPECT_EQ(result.accepted, kNoEvents.size());
  EXPECT_EQ(result.end, DrainEnd::finished);
  EXPECT_EQ(endpoint.requests.size(), 1U);
  EXPECT_THAT(queued(), IsEmpty());
  for (std::size_t i = 0; i < kNoEvents.size(); ++i) {
    SCOPED_TRACE(kNoEvents[i].substr(0, 100));
    EXPECT_EQ(test::read_file(dead_file(test_id(2 * i) + ".raw")), kNoEvents[i]);
    const Json envelope = this->envelope(test_id(2 * i));
    EXPECT_TRUE(envelope["event"].is_null());
    EXPECT_EQ(envelope["meta"]["attempts"].unsigned_integer(), 0U);
    EXPECT_EQ(envelope["meta"]["reason"].string_or(""), "corrupt");
    EXPECT_THAT(envelope["meta"]["lastError"].string_or(""), StartsWith("Corrupt event file: "));
    EXPECT_EQ(envelope["meta"]["rawFile"].string_or(""), test_id(2 * i) + ".raw");
  }
}

TEST_F(DrainTest, AHugeFileDiesWithoutBeingRead) {
  const int fd = open(queue_file("huge.json").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, 1 << 30), 0);
  close(fd);
  put_event(1);
  const DrainResult result = run();
  EXPECT_EQ(result.dead_lettered, 1U);
  EXPECT_EQ(result.corrupt, 0U);
  EXPECT_EQ(result.accepted, 1U);
  EXPECT_EQ(envelope("huge")["meta"]["reason"].string_or(""), "too_large");
  EXPECT_EQ(std::filesystem::file_size(dead_file("huge.raw")), std::uintmax_t{1} << 30);
}

TEST_F(DrainTest, OnlyCorruptFilesNeedNoEndpoint) {
  for (std::size_t i = 0; i < 60; ++i) put(test_id(i) + ".json", "{");
  EXPECT_EQ(run().corrupt, 60U);
  EXPECT_THAT(endpoint.requests, IsEmpty());
}

TEST_F(DrainTest, AnInterruptEndsTheBurialOfManyFiles) {
  for (std::size_t i = 0; i < 10; ++i) put(test_id(i) + ".json", "{");
  std::size_t steps = 0;
  files.set_step_observer([&](std::string_view) {
    if (++steps == 7) pauses.interrupt();
  });
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::interrupted);
  EXPECT_GT(result.corrupt, 0U);
  EXPECT_GT(result.remaining, 0U);
}

}  // namespace
}  // namespace reprise::spool
