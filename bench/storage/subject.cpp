#include "subject.h"

#include "require.h"
#include "storage/durable/durable_storage.h"

namespace reprise::bench {

std::unique_ptr<storage::Storage> open_subject(const std::string& folder) {
  return require(storage::open_durable_storage({.directory = folder}));
}

}  // namespace reprise::bench
