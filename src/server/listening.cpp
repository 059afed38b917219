#include <fmt/format.h>

#include <utility>

#include "server/listen_address.h"
#include "server/listening_impl.h"

namespace reprise::server {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

Result<tcp::endpoint> resolve_listen_address(std::string_view setting, std::string_view text) {
  const auto address = parse_listen_address(text, setting);
  if (!address) return address.error();
  asio::io_context context;
  ErrorCode error;
  const auto found = tcp::resolver(context).resolve(
      address->host, address->port, tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    return Error{Errc::invalid_field, fmt::format("{}: cannot resolve '{}': {}", setting,
                                                  address->host, error.message())};
  }
  return found.begin()->endpoint();
}

Result<tcp::acceptor> open_acceptor(asio::io_context& context, const tcp::endpoint& endpoint,
                                    std::string_view text) {
  tcp::acceptor acceptor(context);
  ErrorCode error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return Error{Errc::io, fmt::format("cannot listen on {}: {}", text, error.message())};
  }
  return acceptor;
}

std::string endpoint_text(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return fmt::format("{}:{}", endpoint.address().is_v6() ? fmt::format("[{}]", host) : host,
                     endpoint.port());
}

}  // namespace reprise::server
