#include "server/beanstalk_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "support/beanstalk_text.h"

namespace reprise::server {
namespace {

using test::parse_all;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

constexpr BeanstalkLimits kLimits{.max_payload_bytes = 100, .max_error_bytes = 20};

Texts parse(std::string_view in) {
  BeanstalkParser parser(kLimits);
  return parse_all(parser, in);
}

// The one request of a line.
std::string line(std::string_view text) {
  const Texts texts = parse(std::string(text) + "\r\n");
  return texts.size() == 1 ? texts.front() : "not one request";
}

// What a stream holds, whatever the verbs and errors.
std::string long_stream() {
  std::string stream =
      "put 10 20 30 5\r\nhello\r\n"
      "put 4294967295 0 0 0\r\n\r\n"
      "put 1 2 3 4\r\n\r\n\r\n\r\n"
      "put 1 2 3 4\r\nlonger\r\n"
      "put 1 2 3 101\r\n" +
      std::string(101, 'x') +
      "\r\n"
      "put 1 2 3 4x\r\nnot\r\n"
      "fail 7 3\r\nwhy\r\nfail 7 21\r\n" +
      std::string(23, '\n') +
      "use orders\r\nwatch orders\r\nignore orders\r\n"
      "reserve\r\nreserve-with-timeout 5\r\nreserve-job 8\r\n"
      "delete 9\r\nrelease 9 8 7\r\nbury 9 8\r\ntouch 9\r\n"
      "kick 100\r\nkick-job 9\r\npeek 9\r\npeek-ready\r\npeek-delayed\r\npeek-buried\r\n"
      "stats\r\nstats-job 9\r\nstats-tube orders\r\n"
      "list-tubes\r\nlist-tube-used\r\nlist-tubes-watched\r\npause-tube orders 60\r\n"
      "nonsense\r\n\r\nlist-tubes\n\r\na\rb\r\n";
  stream += std::string(300, 'y') + "\r\n";
  stream += std::string(223, 'y') + "\r\n";
  stream += std::string(1000, '\r') + "\r\n";
  stream += "delete 1\r\nquit\r\n";
  return stream;
}

TEST(BeanstalkParser, KnowsEveryVerb) {
  EXPECT_THAT(
      parse(long_stream()),
      ElementsAre("put 10 20 30 'hello'", "put 4294967295 0 1 ''", "put 1 2 3 '\r\n\r\n'",
                  "expected crlf", "unknown", "too big", "bad format", "unknown", "fail 7 'why'",
                  "too big", "use orders", "watch orders", "ignore orders", "reserve", "reserve 5",
                  "reserve-job 8", "delete 9", "release 9 8 7", "bury 9 8", "touch 9", "kick 100",
                  "kick-job 9", "peek 9", "peek-ready", "peek-delayed", "peek-buried", "stats",
                  "stats-job 9", "stats-tube orders", "list-tubes", "list-tube-used",
                  "list-tubes-watched", "pause-tube orders 60", "unknown", "unknown", "bad format",
                  "unknown", "bad format", "bad format", "bad format", "delete 1", "quit"));
}

TEST(BeanstalkParser, APutIsAJobOfBytesWithItsTtrAsLease) {
  BeanstalkParser parser(kLimits);
  BeanstalkRequest request;
  for (int round = 0; round < 2; ++round) {  // the second into what the first was moved out of
    std::string_view in("put 5 6 7 2\r\n\xff\0\r\n", 17);
    ASSERT_TRUE(parser.next(in, request));
    const NewJob job = std::move(request.new_job);
    EXPECT_EQ(job.payload_kind, PayloadKind::bytes);
    EXPECT_EQ(job.priority, 5U);
    EXPECT_EQ(job.delay, std::chrono::seconds(6));
    EXPECT_EQ(job.lease, std::chrono::seconds(7));
    EXPECT_EQ(job.payload, std::string_view("\xff\0", 2));
    EXPECT_EQ(job.scheduling, Scheduling());
    EXPECT_TRUE(in.empty());
  }
}

TEST(BeanstalkParser, AnySplitGivesTheSame) {
  const std::string stream = long_stream();
  const Texts whole = parse(stream);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    BeanstalkParser parser(kLimits);
    Texts texts = parse_all(parser, std::string_view(stream).substr(0, cut));
    for (auto& text : parse_all(parser, std::string_view(stream).substr(cut))) {
      texts.push_back(std::move(text));
    }
    ASSERT_EQ(texts, whole) << "cut at " << cut;
  }
}

TEST(BeanstalkParser, ByteByByteGivesTheSame) {
  const std::string stream = long_stream();
  BeanstalkParser parser(kLimits);
  Texts texts;
  for (const char byte : stream) {
    for (auto& text : parse_all(parser, {&byte, 1})) texts.push_back(std::move(text));
  }
  EXPECT_EQ(texts, parse(stream));
}

TEST(BeanstalkParser, GarbageIsTakenHoweverItIsSplit) {
  const std::vector<std::string> pieces = {
      "put ", "1 ",   "0",     "\r\n",    "\r",   "\n", "reserve", "-with-timeout ", "99", "\0",
      "use ", "name", "stats", "delete ", "fail", " ",  "-",       "xxxxxxxxx"};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SeededRandom random(seed);
    std::string stream;
    for (int i = 0; i < 60; ++i) stream += pieces[random.below(pieces.size())];
    BeanstalkParser parser(kLimits);
    Texts texts;
    for (std::string_view left = stream; !left.empty();) {
      const std::size_t size = std::min<std::size_t>(1 + random.below(20), left.size());
      for (auto& text : parse_all(parser, left.substr(0, size))) texts.push_back(std::move(text));
      left.remove_prefix(size);
    }
    ASSERT_EQ(texts, parse(stream)) << "seed " << seed;
  }
}

TEST(BeanstalkParser, TheFirstVerbThatFitsDecides) {
  for (const std::string_view bad :
       {"reservex", "reserve ", "reserve-with-timeout", "reserve-job", "stats-job", "stats-tube",
        "statsx", "list-tubesx", "list-tube-usedx", "list-tubes-watchedx", "peek-ready "}) {
    EXPECT_EQ(line(bad), "bad format") << bad;
  }
  for (const std::string_view unknown :
       {"", " ", "put", "PUT 1 1 1 1", "delete", "kick", "kick\t7", "peek", "peek-x", "list-tube",
        " stats", "fail", "use", "watch"}) {
    EXPECT_EQ(line(unknown), "unknown") << unknown;
  }
  EXPECT_EQ(line("quit now"), "quit");
}

TEST(BeanstalkParser, NumbersAreWholeAndInRange) {
  EXPECT_EQ(line("delete 18446744073709551615"), "delete 18446744073709551615");
  EXPECT_EQ(line("delete   7"), "delete 7");
  EXPECT_EQ(line("release 1  4294967295  4294967295"), "release 1 4294967295 4294967295");
  for (const std::string_view bad : {"delete ",
                                     "delete x",
                                     "delete 7x",
                                     "delete 7 ",
                                     "delete -7",
                                     "delete +7",
                                     "delete 18446744073709551616",
                                     "delete 99999999999999999999999",
                                     "delete 1 2",
                                     "release 1 2",
                                     "release 1 2 3 4",
                                     "release 1 4294967296 0",
                                     "release 1 0 4294967296",
                                     "bury 1",
                                     "bury 1 2 3",
                                     "touch 1 1",
                                     "peek x",
                                     "kick-job 4x",
                                     "stats-job x",
                                     "reserve-job x",
                                     "put ",
                                     "put 1 2 3",
                                     "put 1 2 3 x",
                                     "put -1 2 3 4",
                                     "put 1 2 3 4 5",
                                     "put 4294967296 0 0 1",
                                     "put 1 4294967296 0 1",
                                     "put 1 0 4294967296 1",
                                     "put 1 0 1 4294967296",
                                     "fail 1",
                                     "fail x 1",
                                     "fail 1 1 1"}) {
    EXPECT_EQ(line(bad), "bad format") << bad;
  }
}

TEST(BeanstalkParser, TimeoutsAndBoundsAreReadLeniently) {
  EXPECT_EQ(line("reserve-with-timeout "), "reserve 0");
  EXPECT_EQ(line("reserve-with-timeout abc"), "reserve 0");
  EXPECT_EQ(line("reserve-with-timeout 3x"), "reserve 3");
  EXPECT_EQ(line("reserve-with-timeout  +3"), "reserve 3");
  EXPECT_EQ(line("reserve-with-timeout -1"), "reserve");
  EXPECT_EQ(line("reserve-with-timeout 99999999999999999999"), "bad format");
  EXPECT_EQ(line("kick 5x"), "kick 5");
  EXPECT_EQ(line("kick +5"), "kick 5");
  EXPECT_EQ(line("kick -1"), "kick 18446744073709551615");
  EXPECT_EQ(line("kick "), "bad format");
  EXPECT_EQ(line("kick x"), "bad format");
  EXPECT_EQ(line("kick 99999999999999999999999"), "bad format");
}

TEST(BeanstalkParser, TubesHaveTheNamesOfQueues) {
  const std::string longest(200, 'a');
  EXPECT_EQ(line("use " + longest), "use " + longest);
  EXPECT_EQ(line("watch A-z.0_9"), "watch A-z.0_9");
  for (const std::string name :
       {"", "-a", ".a", "_a", "a b", " a", "a/b", "a+b", "a;b", "a$b", "a(b)", "\xc3\xa4"}) {
    for (const std::string verb : {"use ", "watch ", "ignore ", "stats-tube "}) {
      EXPECT_EQ(line(verb + name), "bad format") << verb << name;
    }
  }
  EXPECT_EQ(line("use a" + longest), "bad format");
}

TEST(BeanstalkParser, PauseTubeTakesANameAndSeconds) {
  EXPECT_EQ(line("pause-tube orders 0"), "pause-tube orders 0");
  EXPECT_EQ(line("pause-tube  orders  7"), "pause-tube orders 7");
  EXPECT_EQ(line("pause-tubeorders 7"), "pause-tube orders 7");
  for (const std::string_view bad :
       {"pause-tube", "pause-tube ", "pause-tube orders", "pause-tube orders ",
        "pause-tube orders x", "pause-tube orders 1 ", "pause-tube orders 1x", "pause-tube -o 1",
        "pause-tube o,o 1", "pause-tube orders 4294967296"}) {
    EXPECT_EQ(line(bad), "bad format") << bad;
  }
}

TEST(BeanstalkParser, ALineHas224BytesWithItsEnd) {
  EXPECT_EQ(line(std::string(222, 'x')), "unknown");
  EXPECT_EQ(line(std::string(223, 'x')), "bad format");
  EXPECT_THAT(parse(std::string(5000, 'x') + "\r\nstats\r\n"), ElementsAre("bad format", "stats"));
  EXPECT_THAT(parse(std::string(5000, 'x')), IsEmpty()) << "refused at its end, not before";
}

TEST(BeanstalkParser, ANulIsBadFormat) {
  EXPECT_EQ(line(std::string_view("stats\0", 6)), "bad format");
  EXPECT_EQ(line(std::string_view("\0", 1)), "bad format");
}

TEST(BeanstalkParser, ABodyThatIsTooBigIsSkippedWhateverIsInIt) {
  const std::string body = "stats\r\n" + std::string(200, 'x');
  EXPECT_THAT(parse("put 0 0 1 207\r\n" + body + "\r\nstats\r\n"), ElementsAre("too big", "stats"));
  EXPECT_THAT(parse("put 0 0 1 207\r\n" + body + "\r"), IsEmpty());
  EXPECT_THAT(parse("put 0 0 1 101x\r\n" + std::string(101, 'x') + "ab"), ElementsAre("too big"))
      << "the size counts before what follows it";
}

TEST(BeanstalkParser, WhatIsAnnouncedCostsNothing) {
  BeanstalkParser parser({.max_payload_bytes = 1ULL << 30, .max_error_bytes = 1});
  parse_all(parser, "put 0 0 1 1000000000\r\n");
  EXPECT_EQ(parser.partial_bytes(), 0U);
  parse_all(parser, std::string(5000, 'x'));
  EXPECT_EQ(parser.partial_bytes(), 5000U);
}

TEST(BeanstalkParser, ALargeBodyFitsExactly) {
  BeanstalkParser parser({.max_payload_bytes = 1 << 20, .max_error_bytes = 1});
  BeanstalkRequest request;
  const std::string stream = "put 0 0 1 1000000\r\n" + std::string(1'000'000, 'x') + "\r\n";
  for (std::string_view left = stream; !left.empty();) {
    std::string_view piece = left.substr(0, 65536);
    left.remove_prefix(piece.size());
    if (parser.next(piece, request)) break;
  }
  EXPECT_EQ(request.new_job.payload.size(), 1'000'000U);
  EXPECT_EQ(request.new_job.payload.capacity(), 1'000'000U);
}

TEST(BeanstalkParser, ABodyThatIsGivenUpIsSkippedAndRefused) {
  BeanstalkParser parser(kLimits);
  EXPECT_THAT(parse_all(parser, "put 0 0 1 100\r\n" + std::string(70, 'x')), IsEmpty());
  parser.give_up_body();
  EXPECT_EQ(parser.partial_bytes(), 0U);
  EXPECT_THAT(parse_all(parser, std::string(30, 'x') + "\r\nstats\r\n"),
              ElementsAre("out of memory", "stats"));
  parser.give_up_body();
  EXPECT_THAT(parse_all(parser, "stats\r\n"), ElementsAre("stats")) << "there was none";
}

TEST(BeanstalkParser, VerbsHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kBeanstalkVerbCount; ++i) {
    names.insert(beanstalk_verb_name(static_cast<BeanstalkVerb>(i)));
  }
  EXPECT_EQ(names.size(), kBeanstalkVerbCount);
  EXPECT_TRUE(names.contains("delete"));
  EXPECT_TRUE(names.contains("reserve-with-timeout"));
}

}  // namespace
}  // namespace reprise::server
