// How servers come to listen on an address.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reprise::server {

// Errc::invalid_field. `setting` is the name of what was given, for the message.
Result<boost::asio::ip::tcp::endpoint> resolve_listen_address(std::string_view setting,
                                                              std::string_view text);
// Errc::io.
Result<boost::asio::ip::tcp::acceptor> open_acceptor(boost::asio::io_context& context,
                                                     const boost::asio::ip::tcp::endpoint& endpoint,
                                                     std::string_view text);
// "127.0.0.1:7333", "[::1]:7333".
std::string endpoint_text(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace reprise::server
