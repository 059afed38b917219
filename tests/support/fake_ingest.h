// FakeIngest: an ingest endpoint that answers as a test tells it and remembers what it was sent.
// Threads: one owner, no locks.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_writer.h"
#include "spool/ingest_endpoint.h"

namespace reprise::test {

using Ids = std::vector<std::string>;

// The ids of the events of a batch, in its order.
inline Ids ids_of(const std::string& body) {
  Ids ids;
  const auto batch = Json::parse(body);
  EXPECT_TRUE(batch) << body.substr(0, 1000);
  if (!batch || (*batch)["events"].array() == nullptr) return ids;
  for (const Json& event : *(*batch)["events"].array()) ids.push_back(event["id"].string_or("?"));
  return ids;
}

inline spool::IngestAnswer answer(int status, std::string body = {}) {
  return {.status = status, .body = std::move(body)};
}

inline spool::IngestAnswer no_answer() { return {.detail = "cannot reach it"}; }

// One result for each event: `status_of` gives its status, "rejected" comes with an error. An empty
// status leaves it out.
template <class StatusOf>
spool::IngestAnswer results(const Ids& ids, StatusOf status_of) {
  JsonWriter out;
  out.begin_object().key("results").begin_array();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string status = status_of(ids[i]);
    if (status.empty()) continue;
    out.begin_object().key("index").value(i).key("status").value(status);
    if (status == "rejected") out.key("error").value("no: " + ids[i]);
    out.end_object();
  }
  out.end_array().end_object();
  return answer(202, out.take());
}

inline spool::IngestAnswer accept_all(const Ids& ids) {
  return results(ids, [](const std::string&) { return "accepted"; });
}

class FakeIngest final : public spool::IngestEndpoint {
 public:
  using Script = std::function<spool::IngestAnswer(const Ids& ids)>;

  Script script = accept_all;
  std::vector<Ids> requests;
  std::vector<std::string> bodies;

  spool::IngestAnswer send(const std::string& body) override {
    bodies.push_back(body);
    requests.push_back(ids_of(body));
    return script(requests.back());
  }
  const std::string& url() const override { return url_; }

  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> all;
    for (const Ids& ids : requests) all.push_back(ids.size());
    return all;
  }

 private:
  const std::string url_ = "https://in.example/events";
};

}  // namespace reprise::test
