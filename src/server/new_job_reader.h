// NewJobReader: reads jobs as clients write them: {"payload": …, "headers": {…}, "delay": …, …}.
// The one place for what a job may hold, whether it comes with a push or inside an event.
//
// What is wrong with a job alone (a limit, a value out of its range) becomes its refusal. What
// makes the body doubtful (wrong types, unknown or repeated fields) is an error of read().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "engine/commands.h"
#include "model/limits.h"
#include "server/body_reader.h"

namespace reprise::server {

// What is wrong with a part of a job, to be read after its name.
struct JobProblem {
  Errc code{};
  std::string text;
};
std::optional<JobProblem> payload_problem(std::size_t bytes, const Limits& limits);
std::optional<JobProblem> key_problem(std::string_view key, const Limits& limits);
std::optional<JobProblem> header_problem(std::string_view name, std::string_view value,
                                         const Limits& limits);

class NewJobReader {
 public:
  // Makes the path of a field of the job that is being read, "jobs[3].key", or for an empty field
  // that of the job.
  using Path = std::function<std::string(std::string_view field)>;

  NewJobReader(BodyReader& in, const Limits& limits, Path path)
      : in_(in), limits_(limits), path_(std::move(path)) {}

  // The next value of the body as a job. All payloads read so count together:
  // Errc::batch_too_large.
  Status read();
  // The job that was read, or its refusal; once.
  Result<NewJob> take();

 private:
  using Field = BodyField<NewJobReader>;
  static const std::array<Field, 10> kFields;

  // One job while it is read.
  struct Draft {
    NewJob job;
    std::optional<Error> refusal;  // the first thing wrong with it alone
    bool has_payload = false;
    bool has_payload_base64 = false;
  };

  Status read_payload();
  Status read_payload_base64();
  Status read_headers();
  Status read_delay();
  Status read_priority();
  Status read_key();
  Status read_ttl();
  Status read_fairness_key();
  Status read_weight();
  Status read_throttle_keys();

  template <class Bytes>
  Status take_payload(PayloadKind kind, std::size_t size, Bytes bytes);
  Status take_header(std::string name, std::string value);
  Result<std::string> read_scheduling_key(std::string_view field,
                                          std::optional<std::size_t> index = std::nullopt);
  template <class T>
  Status read_small(std::string_view name, T& out);
  void refuse(Errc code, std::string_view field, std::string_view problem);

  BodyReader& in_;
  const Limits& limits_;
  const Path path_;
  Draft draft_;
  std::uint64_t batch_bytes_ = 0;
};

}  // namespace reprise::server
