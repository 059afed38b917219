#include "server/ingest_reply.h"

#include <gtest/gtest.h>

#include <string>

namespace reprise::server {
namespace {

const Result<PushedJob> kAccepted = PushedJob{.seq = 1};
const Result<PushedJob> kDuplicate = PushedJob{.seq = 1, .duplicate = true};
const Result<PushedJob> kRejected = Error{Errc::missing_var, "no id"};
const Result<PushedJob> kFull = Error{Errc::queue_full, "full"};
const Result<PushedJob> kDiskFull = Error{Errc::disk_full, "no space"};

TEST(IngestReply, TellsWhatBecameOfEachInOrder) {
  const Response response = ingest_response({kRejected, kAccepted, kFull, kDuplicate, kAccepted});
  EXPECT_EQ(response.http_status, 202);
  EXPECT_EQ(response.extra_headers, "");
  EXPECT_EQ(response.body,
            R"({"ingested":2,"duplicates":1,"rejected":1,"deferred":1,"results":[)"
            R"({"index":0,"status":"rejected","error":"no id","code":"missing_var"},)"
            R"({"index":1,"status":"accepted"},)"
            R"({"index":2,"status":"deferred","error":"full","code":"queue_full"},)"
            R"({"index":3,"status":"duplicate"},)"
            R"({"index":4,"status":"accepted"}]})");
}

TEST(IngestReply, RejectionsAloneAreNoErrorOfTheRequest) {
  EXPECT_EQ(ingest_response({kRejected, kRejected}).http_status, 202);
}

TEST(IngestReply, WhenNothingIsStoredOrKnownTheFirstPassingErrorIsTheReply) {
  const Response full = ingest_response({kRejected, kFull, kDiskFull});
  EXPECT_EQ(full.http_status, 429);
  EXPECT_EQ(full.extra_headers, "Retry-After: 1\r\n");
  EXPECT_EQ(full.body, R"({"error":{"code":"queue_full","message":"full"}})");
  const Response disk = ingest_response({kDiskFull, kFull});
  EXPECT_EQ(disk.http_status, 507);
  EXPECT_EQ(disk.extra_headers, "Retry-After: 1\r\n");
  EXPECT_EQ(ingest_response({Error{Errc::overloaded, ""}}).http_status, 503);
  EXPECT_EQ(ingest_response({kDuplicate, kDiskFull}).http_status, 202);
  EXPECT_EQ(ingest_response({kDiskFull, kAccepted}).http_status, 202);
}

// A producer counts rejections against the event, and gives it up in the end.
TEST(IngestReply, NoTroubleOfTheServerIsARejection) {
  for (const ErrcInfo& info : all_errcs()) {
    const bool passing = info.http_status == 429 || info.http_status >= 500;
    if (info.code == Errc::batch_too_large) continue;
    EXPECT_EQ(is_passing(info.code), passing) << info.wire_name;
  }
  for (const Errc code : {Errc::overloaded, Errc::shutting_down, Errc::io, Errc::corrupt}) {
    EXPECT_TRUE(is_passing(code));
  }
  for (const Errc code : {Errc::queue_not_found, Errc::external_queue, Errc::hook_rejected,
                          Errc::missing_var, Errc::payload_too_large}) {
    EXPECT_FALSE(is_passing(code));
  }
}

TEST(IngestReply, TooMuchForOneQueueAsksForFewerAtATime) {
  const Response response =
      ingest_response({kAccepted, Error{Errc::batch_too_large, "too much together"}});
  EXPECT_EQ(response.http_status, 413);
  EXPECT_EQ(response.body, R"({"error":{"code":"batch_too_large","message":"too much together"}})");
}

TEST(IngestReply, CountsAreThoseOfTheResults) {
  EXPECT_EQ(count_results({kAccepted, kDuplicate, kDuplicate, kRejected, kFull, kDiskFull}),
            (IngestCounts{.accepted = 1, .duplicates = 2, .rejected = 1, .deferred = 2}));
}

TEST(IngestReply, ALongReasonIsCut) {
  const std::string text(100'000, 'x');
  const Response response = ingest_response({Error{Errc::invalid_field, text}});
  EXPECT_LT(response.body.size(), 1500U);
}

}  // namespace
}  // namespace reprise::server
