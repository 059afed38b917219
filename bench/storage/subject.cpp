#include "subject.h"

#include "require.h"
#include "storage/durable/durable_storage.h"

namespace reprise::bench {

std::unique_ptr<storage::Storage> open_subject(const std::string& folder,
                                               storage::Durability commits) {
  return require(storage::open_durable_storage({.directory = folder, .commits = commits}));
}

}  // namespace reprise::bench
