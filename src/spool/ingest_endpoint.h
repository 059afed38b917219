// IngestEndpoint: where batches are sent, as the drain sees it. HttpIngest is the real one; tests
// give their own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace reprise::spool {

inline constexpr std::size_t kMaxReplyBytes = 8 << 20;

struct IngestAnswer {
  int status = 0;                       // of HTTP; 0: no answer
  std::string body;                     // cut to kMaxReplyBytes
  std::string detail;                   // for people, when there was no answer: why
  std::optional<Duration> retry_after;  // what the header Retry-After says, within kMaxRetryAfter
  std::string location;                 // of a redirect
};

class IngestEndpoint {
 public:
  virtual ~IngestEndpoint() = default;
  virtual IngestAnswer send(const std::string& body) = 0;
  // For messages: without its query, which may hold a secret.
  virtual const std::string& url() const = 0;
};

// `url` is whole: scheme, host, path and query. Errc::invalid_field: it is no such address.
// `keep_going` is asked while it waits for an answer; false gives it up.
Result<std::unique_ptr<IngestEndpoint>> make_http_ingest(const std::string& url,
                                                         const std::string& token,
                                                         std::function<bool()> keep_going);

}  // namespace reprise::spool
