#include "server/chunked_decoder.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace reprise::server {
namespace {

using Outcome = ChunkedDecoder::Outcome;

struct Decoded {
  Outcome outcome{};
  std::string body;
  std::string rest;
};

// Feeds `input` in pieces of `piece` bytes.
Decoded decode(std::string_view input, std::size_t piece) {
  ChunkedDecoder decoder;
  Decoded decoded;
  std::string pending;
  while (true) {
    const auto step = decoder.step(pending);
    decoded.body += step.data;
    pending.erase(0, step.used);
    decoded.outcome = step.outcome;
    if (step.outcome == Outcome::data) continue;
    if (step.outcome != Outcome::need_more || input.empty()) break;
    pending += input.substr(0, piece);
    input.remove_prefix(std::min(piece, input.size()));
  }
  decoded.rest = pending + std::string(input);
  return decoded;
}

constexpr std::string_view kTwoChunks =
    "5\r\nhello\r\nA;x=\"1\"\r\n, my world\r\n0\r\nX: y\r\n\r\nNEXT";

TEST(ChunkedDecoder, ReadsTheSameHoweverTheBytesAreSplit) {
  for (std::size_t piece = 1; piece <= kTwoChunks.size(); ++piece) {
    const Decoded decoded = decode(kTwoChunks, piece);
    EXPECT_EQ(decoded.outcome, Outcome::done) << piece;
    EXPECT_EQ(decoded.body, "hello, my world") << piece;
    EXPECT_EQ(decoded.rest, "NEXT") << piece;
  }
}

TEST(ChunkedDecoder, ReadsAnEmptyBody) {
  const Decoded decoded = decode("0\r\n\r\n", 100);
  EXPECT_EQ(decoded.outcome, Outcome::done);
  EXPECT_EQ(decoded.body, "");
}

TEST(ChunkedDecoder, WaitsForTheEnd) {
  for (std::size_t size = 0; size < kTwoChunks.size() - 4; ++size) {
    EXPECT_EQ(decode(kTwoChunks.substr(0, size), 7).outcome, Outcome::need_more) << size;
  }
}

TEST(ChunkedDecoder, RefusesWhatIsNotExactlyTheCoding) {
  for (const std::string_view input : {
           "\r\n{}\r\n0\r\n\r\n",                    // no size
           "zz\r\n{}\r\n",                           // no number
           "-2\r\n{}\r\n",                           //
           "+2\r\n{}\r\n",                           //
           "0x2\r\n{}\r\n",                          //
           " 2\r\n{}\r\n",                           // blanks around it
           "2 \r\n{}\r\n",                           //
           "10000000000000002\r\n{}\r\n",            // beyond 64 bits
           "0000000000000000000000000000002\r\n{}",  // hidden in zeros
           "2\r\n{}XX\r\n0\r\n\r\n",                 // longer than it says
           "2\n{}\r\n0\r\n\r\n",                     // bare line feeds
           "2\r\n{}\n0\r\n\r\n",                     //
           "2;a=\nb\r\n{}\r\n",                      //
           "0\r\nX: y\n\r\n",                        //
           "0\r\n\n",                                //
           "0\r\rX",                                 //
           "2;a=\x01\r\n{}\r\n",                     // controls
           "0\r\nGET / HTTP/1.1\r\n\r\n",            // trailers that are no fields
           "0\r\nX\r\n\r\n",                         //
           "0\r\n: y\r\n\r\n",                       //
           "0\r\nX : y\r\n\r\n",                     //
           "0\r\nX: y\r\n folded\r\n\r\n",           //
       }) {
    EXPECT_EQ(decode(input, 3).outcome, Outcome::bad) << input;
  }
}

TEST(ChunkedDecoder, BoundsExtensionsAndTrailers) {
  EXPECT_EQ(decode("2;" + std::string(10000, 'x'), 1000).outcome, Outcome::bad);
  EXPECT_EQ(decode("0\r\nX: " + std::string(10000, 'x'), 1000).outcome, Outcome::bad);
}

TEST(ChunkedDecoder, TakesAnyNumberOfSmallChunks) {
  std::string input;
  for (int i = 0; i < 20000; ++i) input += "1\r\nx\r\n";
  EXPECT_EQ(decode(input + "0\r\n\r\n", 4096).body.size(), 20000U);
}

}  // namespace
}  // namespace reprise::server
