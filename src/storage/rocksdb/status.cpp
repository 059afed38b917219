#include "storage/rocksdb/status.h"

namespace reprise::storage {

Error to_error(const ::rocksdb::Status& status, std::string_view path) {
  std::string detail(path);
  if (status.IsCorruption()) {
    detail.append(" is damaged: ").append(status.ToString());
    return Error{Errc::corrupt, std::move(detail)};
  }
  detail.append(": ").append(status.ToString());
  return Error{status.IsNoSpace() ? Errc::disk_full : Errc::io, std::move(detail)};
}

Status to_status(const ::rocksdb::Status& status, std::string_view path) {
  if (status.ok()) return ok();
  return to_error(status, path);
}

}  // namespace reprise::storage
