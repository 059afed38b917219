#include "peers/peer_protocol.h"

#include "load_error.h"
#include "peers/beanstalk_protocol.h"
#include "peers/redis_lua_protocol.h"
#include "peers/redis_stream_protocol.h"

namespace reprise::bench::peers {

std::unique_ptr<PeerProtocol> make_protocol(std::string_view name, const std::string& queue,
                                            std::size_t client) {
  if (name == "beanstalk") return std::make_unique<BeanstalkProtocol>(queue);
  if (name == "redis-stream") return std::make_unique<RedisStreamProtocol>(queue, client);
  if (name == "redis-lua") return std::make_unique<RedisLuaProtocol>(queue);
  throw LoadError("no protocol " + std::string(name));
}

}  // namespace reprise::bench::peers
