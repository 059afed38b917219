#include "storage/rocksdb/status.h"

namespace reprise::storage {

Error to_error(const ::rocksdb::Status& status, std::string_view directory) {
  const bool damaged = status.IsCorruption();
  std::string detail = "data directory ";
  detail.append(directory).append(damaged ? " is damaged: " : ": ").append(status.ToString());
  return Error{damaged ? Errc::corrupt : Errc::io, std::move(detail)};
}

Status to_status(const ::rocksdb::Status& status, std::string_view directory) {
  if (status.ok()) return ok();
  return to_error(status, directory);
}

}  // namespace reprise::storage
