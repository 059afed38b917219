#include "storage/rocksdb/sequence_check.h"

#include <rocksdb/table_properties.h>

#include <algorithm>

namespace reprise::storage {
namespace {

constexpr char kPropertyName[] = "rocksdb.external_sst_file.global_seqno";

}  // namespace

Status check_sequence(const ::rocksdb::TableProperties& properties, const std::string& path) {
  const auto found = properties.user_collected_properties.find(kPropertyName);
  if (found == properties.user_collected_properties.end() ||
      std::ranges::all_of(found->second, [](char byte) { return byte == 0; })) {
    return ok();
  }
  return Error{Errc::corrupt, path + " is damaged: its sequence number has changed"};
}

}  // namespace reprise::storage
