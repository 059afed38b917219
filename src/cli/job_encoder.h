// JobEncoder: from what a person gives (an argument, a line of a file) to a job of the push API.
// Payloads are checked, not rewritten: they travel with the bytes they were given in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reprise::cli {

// What all jobs of one command have in common; checked by the flags they come from.
struct JobFields {
  std::optional<std::string> delay;
  std::optional<std::uint32_t> priority;
  std::optional<std::string> key;
  std::optional<std::string> ttl;
  std::vector<std::string> headers;  // NAME=VALUE; the last of a name wins
  std::optional<std::string> fairness_key;
  std::optional<std::uint32_t> weight;
  std::vector<std::string> throttle_keys;
};

class JobEncoder {
 public:
  enum class Input {
    json,      // a payload
    bytes,     // a payload, to be sent as base64
    base64,    // a payload that is base64 already
    envelope,  // a whole job
  };

  JobEncoder(Input input, const JobFields& fields);

  // The job as a JSON object. `key` is for a job that has none of its own; empty: it gets none.
  // Errc::invalid_request: `text` is not what the input must be.
  Result<std::string> encode(std::string_view text, std::string_view key = {}) const;

 private:
  // With the key, if it needs one, before the rest.
  std::string finish(std::string job, std::string_view key) const;

  Input input_;
  bool has_key_;      // all jobs have the same
  std::string rest_;  // what follows the payload: `,"delay":"5m"}`, or `}` alone
};

// The body of a push request.
std::string push_body(const std::vector<std::string_view>& jobs, bool create);

}  // namespace reprise::cli
