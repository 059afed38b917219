// The banner: what a person sees when the server is ready, with three commands to try next.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace reprise::daemon {

struct BannerFacts {
  std::string command;     // how to run this binary
  std::string address;     // where it listens
  std::string beanstalk;   // where it speaks that protocol; empty: nowhere
  std::string data;        // directory
  std::string durability;  // mode
  std::string token_file;  // empty: none
  std::uint64_t jobs = 0;  // recovered, dead ones included
  Duration recovery{};     // how long that took
};

std::string banner(const BannerFacts& facts);

// "http://127.0.0.1:7333" for an address as HttpServer gives it. A wildcard address, where nobody
// can connect to, becomes loopback.
std::string client_url(const std::string& address);

}  // namespace reprise::daemon
