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
  // Jobs have one of so many in turn; 0: none. Only one of them.
  struct Owners {
    std::size_t tenants = 0;        // headers `tenant`; at most 100
    std::size_t fairness_keys = 0;  // at most 10,000,000
  };
  QueueRequests(std::string host, std::string queue, const PayloadSource& payloads, Owners owners);

  // One that is there is left as it is, with its config.
  void create(std::string& out) const;
  // Jobs with the serials first.serial, first.serial + 1, …, all due at first.due.
  void push(std::string& out, const Stamp& first, std::size_t count) const;
  // Leases outlive any run, so a job that comes twice is the server's mistake.
  void claim(std::string& out, std::size_t max, std::chrono::seconds wait) const;
  void ack(std::string& out, const std::vector<std::string>& tokens) const;
  // Each with the error of its serial. `final`: for good, whatever the queue's policy is.
  void fail(std::string& out, const ClaimedJobs& jobs, bool final) const;

 private:
  void write(std::string& out, std::string_view request_line, std::string_view body) const;
  void write_head(std::string& out, std::string_view request_line, std::size_t body_bytes,
                  std::string_view more_fields = {}) const;
  std::size_t opening_bytes() const;
  void append_opening(std::string& out, std::uint64_t serial) const;

  std::string host_;
  std::string path_;
  const PayloadSource& payloads_;
  Owners owners_;
};

// 200, and `count` results, each with this status. Anything else is a LoadError that shows the
// reply.
void expect_results(const HttpReply& reply, std::string_view status, std::size_t count);
// Of a fail: `count` results, each to be retried or dead. Returns how many are dead.
std::size_t expect_failed(const HttpReply& reply, std::size_t count);
void expect_ok(const HttpReply& reply);
// Of a create.
void expect_made_or_there(const HttpReply& reply);

}  // namespace reprise::bench
