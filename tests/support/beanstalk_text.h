// Beanstalk requests as text, to be compared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "server/beanstalk_parser.h"

namespace reprise::test {

inline std::string text_of(const server::BeanstalkRequest& request) {
  using server::BeanstalkRefusal;
  using server::BeanstalkVerb;
  switch (request.refusal) {
    case BeanstalkRefusal::bad_format:
      return "bad format";
    case BeanstalkRefusal::unknown_command:
      return "unknown";
    case BeanstalkRefusal::expected_crlf:
      return "expected crlf";
    case BeanstalkRefusal::job_too_big:
      return "too big";
    case BeanstalkRefusal::out_of_memory:
      return "out of memory";
    case BeanstalkRefusal::none:
      break;
  }
  const std::string verb(server::beanstalk_verb_name(request.verb));
  const auto seconds = [](Duration duration) { return duration.count() / 1'000'000; };
  switch (request.verb) {
    case BeanstalkVerb::put: {
      const NewJob& job = request.new_job;
      return fmt::format("put {} {} {} '{}'", job.priority, seconds(job.delay),
                         seconds(job.lease.value_or(Duration{})), job.payload);
    }
    case BeanstalkVerb::fail:
      return fmt::format("fail {} '{}'", request.job, request.error);
    case BeanstalkVerb::release:
      return fmt::format("release {} {} {}", request.job, request.priority, seconds(request.delay));
    case BeanstalkVerb::bury:
      return fmt::format("bury {} {}", request.job, request.priority);
    case BeanstalkVerb::kick:
      return fmt::format("kick {}", request.count);
    case BeanstalkVerb::pause_tube:
      return fmt::format("pause-tube {} {}", request.tube, seconds(request.delay));
    case BeanstalkVerb::use:
    case BeanstalkVerb::watch:
    case BeanstalkVerb::ignore:
    case BeanstalkVerb::stats_tube:
      return fmt::format("{} {}", verb, request.tube);
    case BeanstalkVerb::peek:
    case BeanstalkVerb::reserve_job:
    case BeanstalkVerb::remove:
    case BeanstalkVerb::touch:
    case BeanstalkVerb::kick_job:
    case BeanstalkVerb::stats_job:
      return fmt::format("{} {}", verb, request.job);
    case BeanstalkVerb::reserve:
    case BeanstalkVerb::reserve_with_timeout:
      return request.wait ? fmt::format("reserve {}", seconds(*request.wait)) : "reserve";
    default:
      return verb;
  }
}

// All that is whole in `in`, given in one piece.
inline std::vector<std::string> parse_all(server::BeanstalkParser& parser, std::string_view in) {
  std::vector<std::string> texts;
  server::BeanstalkRequest request;
  while (parser.next(in, request)) texts.push_back(text_of(request));
  return texts;
}

}  // namespace reprise::test
