// Whatever bytes come from a beanstalk client: they are cut into requests that keep to the limits,
// the same however the stream is split.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "model/limits.h"
#include "server/beanstalk_parser.h"
#include "support/beanstalk_text.h"

namespace reprise::server {
namespace {

constexpr BeanstalkLimits kLimits{.max_payload_bytes = 200, .max_error_bytes = 50};

void check(const BeanstalkRequest& request) {
  if (request.refusal != BeanstalkRefusal::none) return;
  switch (request.verb) {
    case BeanstalkVerb::put:
      REPRISE_CHECK(request.new_job.payload.size() <= kLimits.max_payload_bytes);
      REPRISE_CHECK(request.new_job.lease >= std::chrono::seconds(1));
      return;
    case BeanstalkVerb::fail:
      REPRISE_CHECK(request.error.size() <= kLimits.max_error_bytes);
      return;
    case BeanstalkVerb::use:
    case BeanstalkVerb::watch:
    case BeanstalkVerb::ignore:
    case BeanstalkVerb::stats_tube:
    case BeanstalkVerb::pause_tube:
      REPRISE_CHECK(static_cast<bool>(check_name("queue", request.tube)));
      return;
    default:
      return;
  }
}

// In pieces of at most so many bytes: of so many, of one less, down to one, and again.
std::vector<std::string> parse(std::string_view stream, std::size_t most) {
  BeanstalkParser parser(kLimits);
  BeanstalkRequest request;
  std::vector<std::string> texts;
  for (std::size_t size = most; !stream.empty(); size = size > 1 ? size - 1 : most) {
    // A copy, so that a look beyond its end is noticed.
    const std::string piece(stream.substr(0, size));
    stream.remove_prefix(piece.size());
    std::string_view in = piece;
    while (parser.next(in, request)) {
      check(request);
      texts.push_back(test::text_of(request));
    }
    REPRISE_CHECK(in.empty());
    REPRISE_CHECK(parser.partial_bytes() <=
                  std::max(kLimits.max_payload_bytes, kLimits.max_error_bytes));
  }
  return texts;
}

}  // namespace
}  // namespace reprise::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise::server;
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  REPRISE_CHECK(parse(stream, 7) == parse(stream, stream.size()));
  return 0;
}

std::vector<std::string> reprise::fuzz::seeds() {
  return {"put 10 20 30 5\r\nhello\r\nput 0 0 0 0\r\n\r\nreserve\r\nreserve-with-timeout 5\r\n",
          "put 1 2 3 201\r\n" + std::string(201, 'x') + "\r\ndelete 18446744073709551615\r\n",
          "use orders\r\nwatch a.b_c-d\r\nignore orders\r\nstats-tube orders\r\n"
          "pause-tube orders 60\r\n",
          "release 9 8 7\r\nbury 9 8\r\ntouch 9\r\nfail 9 3\r\nwhy\r\nkick 10\r\nkick-job 9\r\n",
          "peek 1\r\npeek-ready\r\npeek-delayed\r\npeek-buried\r\nreserve-job 3\r\nstats\r\n"
          "stats-job 3\r\nlist-tubes\r\nlist-tube-used\r\nlist-tubes-watched\r\nquit\r\n",
          std::string(300, 'y') + "\r\nput 1 1 1 2\r\nabc\r\n" + std::string(222, 'z') + "\r\n"};
}
