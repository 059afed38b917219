// QueueRequests: the HTTP requests of a load, written into a connection's buffer.
// Bytes as a plain client sends them: one queue, no fields beyond those the phase needs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "claim_reply.h"
#include "http_connection.h"
#include "payload_source.h"

namespace reprise::bench {

class QueueRequests {
 public:
  QueueRequests(std::string host, std::string queue, const PayloadSource& payloads);

  void create(std::string& out) const;
  // Jobs with the serials first.serial, first.serial + 1, …, all due at first.due.
  void push(std::string& out, const Stamp& first, std::size_t count) const;
  // Leases outlive any run, so a job that comes twice is the server's mistake.
  void claim(std::string& out, std::size_t max, std::chrono::seconds wait) const;
  void ack(std::string& out, const std::vector<std::string>& tokens) const;
  // With `final`, and each with the error of its serial.
  void fail_for_good(std::string& out, const ClaimedJobs& jobs) const;

 private:
  void write(std::string& out, std::string_view request_line, std::string_view body) const;
  void write_head(std::string& out, std::string_view request_line, std::size_t body_bytes) const;

  std::string host_;
  std::string path_;
  const PayloadSource& payloads_;
};

// 200, and `count` results, each with this status. Anything else is a LoadError that shows the
// reply.
void expect_results(const HttpReply& reply, std::string_view status, std::size_t count);
void expect_ok(const HttpReply& reply);

}  // namespace reprise::bench
