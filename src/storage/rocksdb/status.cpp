#include "storage/rocksdb/status.h"

namespace reprise::storage {

std::string describe(const ::rocksdb::Status& status) {
  std::string text = status.ToString();
  for (std::size_t at = 0; (at = text.find(".ldb", at)) != std::string::npos;) {
    text.replace(at, 4, ".sst");
  }
  return text;
}

Error to_error(const ::rocksdb::Status& status, std::string_view path) {
  std::string detail(path);
  if (status.IsCorruption()) {
    detail.append(" is damaged: ").append(describe(status));
    return Error{Errc::corrupt, std::move(detail)};
  }
  detail.append(": ").append(describe(status));
  return Error{status.IsNoSpace() ? Errc::disk_full : Errc::io, std::move(detail)};
}

Status to_status(const ::rocksdb::Status& status, std::string_view path) {
  if (status.ok()) return ok();
  return to_error(status, path);
}

}  // namespace reprise::storage
