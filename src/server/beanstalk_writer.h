// What a beanstalk client reads: replies as text, appended to what is to be sent. Words, fields of
// the statistics and their order are those of beanstalkd 1.12.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/errc.h"
#include "base/time.h"
#include "broker/session.h"
#include "server/beanstalk_parser.h"
#include "server/beanstalk_stats.h"

namespace reprise::server {

// Whole lines.
std::string_view beanstalk_refusal_line(BeanstalkRefusal refusal);
std::string_view beanstalk_error_line(Errc code, bool of_put);
inline constexpr std::string_view kBeanstalkDraining = "DRAINING\r\n";
inline constexpr std::string_view kBeanstalkInternalError = "INTERNAL_ERROR\r\n";
inline constexpr std::string_view kBeanstalkNotIgnored = "NOT_IGNORED\r\n";

void append_using(std::string& out, std::string_view tube);
void append_watching(std::string& out, std::size_t count);

void append_beanstalk(std::string& out, const session::PutDone& reply);
void append_beanstalk(std::string& out, const session::Reserved& reply);
void append_beanstalk(std::string& out, const session::NotReserved& reply);
void append_beanstalk(std::string& out, const session::Settled& reply);
void append_beanstalk(std::string& out, const session::FailDone& reply);
void append_beanstalk(std::string& out, const session::Kicked& reply);
// Of a peek.
void append_found(std::string& out, const session::Found& reply);

// Lists and statistics: YAML, after "OK <bytes>".
void append_tubes(std::string& out, std::span<const std::string> tubes);
void append_tubes(std::string& out, const session::AllQueues& reply);
void append_stats_job(std::string& out, const session::Found& reply);
void append_stats_tube(std::string& out, const session::QueueFound& reply,
                       const BeanstalkTubeCensus& census);
void append_stats(std::string& out, const session::AllQueues& reply, const BeanstalkCensus& census);

}  // namespace reprise::server
