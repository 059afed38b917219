#include "daemon/banner.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/duration.h"
#include "reprise_version.h"

namespace reprise::daemon {
namespace {

constexpr std::string_view kClientsDefault = "http://127.0.0.1:7333";

// The quickstart of README.md; a test compares.
constexpr std::array<std::string_view, 3> kTryNext = {
    "queue create orders --lease 30s",
    "queue push orders '{\"id\":1}'",
    "queue claim orders",
};

}  // namespace

std::string client_url(const std::string& address) {
  if (address.starts_with("0.0.0.0:")) return "http://127.0.0.1" + address.substr(7);
  if (address.starts_with("[::]:")) return "http://[::1]" + address.substr(4);
  return "http://" + address;
}

std::string banner(const BannerFacts& facts) {
  const std::string url = client_url(facts.address);
  const std::string server = url == kClientsDefault ? "" : " --server " + url;
  const std::string token =
      facts.token_file.empty() ? "" : fmt::format(" --token-file {}", facts.token_file);
  std::string text = fmt::format(
      "reprise {} is ready on http://{}\n"
      "  data        {} ({} {} recovered in {})\n"
      "  durability  {}\n",
      kVersion, facts.address, facts.data, facts.jobs, facts.jobs == 1 ? "job" : "jobs",
      humanize_duration(facts.recovery), facts.durability);
  if (!facts.beanstalk.empty()) text += fmt::format("  beanstalk   on {}\n", facts.beanstalk);
  text += "\nTry, in another terminal:\n";
  for (const std::string_view next : kTryNext) {
    text += fmt::format("  {} {}{}{}\n", facts.command, next, server, token);
  }
  return text;
}

}  // namespace reprise::daemon
