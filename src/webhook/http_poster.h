// HttpPoster: many POST requests at once on one thread, over libcurl's multi interface.
// An answer's body is thrown away; redirects are not followed; nothing but http and https is
// spoken. A request ends after 15 seconds whatever the other side does, 5 if it cannot connect.
// Threads: one owner; wake() from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/webhook.h"

namespace reprise::webhook {

class HttpPoster {
 public:
  HttpPoster();
  ~HttpPoster();  // drops the requests under way
  HttpPoster(const HttpPoster&) = delete;
  HttpPoster& operator=(const HttpPoster&) = delete;

  void post(const WebhookKey& key, const std::string& url, std::string body);
  std::size_t under_way() const;

  struct Outcome {
    WebhookKey key;
    bool accepted = false;  // answered with a 2xx
    std::string problem;    // for a person: "HTTP 500", "Connection refused"
  };
  // Waits until something has ended, wake() is called or the time is over. Gives what ended.
  std::vector<Outcome> wait(Duration at_most);
  // The wait that is going on, or else the next one, ends at once.
  void wake();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::webhook
