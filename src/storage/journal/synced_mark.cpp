#include "storage/journal/synced_mark.h"

#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace reprise::storage::journal {
namespace {

using ::rocksdb::FileOptions;
using ::rocksdb::IOOptions;

constexpr char kFileName[] = "synced";
constexpr std::size_t kBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);

std::string encode(const DirectoryId& id, std::uint64_t batch) {
  std::string out;
  ByteWriter writer(out);
  writer.fixed(batch);
  writer.fixed(crc32c(out, frame_seed(id, 0)));  // no segment has number 0
  return out;
}

}  // namespace

Result<std::unique_ptr<SyncedMark>> SyncedMark::open(::rocksdb::FileSystem& files,
                                                     const std::string& directory,
                                                     const DirectoryId& id, bool on_real_disk) {
  const std::string path = directory + "/" + kFileName;
  if (!files.FileExists(path, IOOptions(), nullptr).ok()) {
    std::unique_ptr<::rocksdb::FSWritableFile> created;
    auto status = files.NewWritableFile(path, FileOptions(), &created, nullptr);
    if (status.ok()) status = created->Close(IOOptions(), nullptr);
    if (!status.ok()) return file_error(path, status);
  }
  auto file = on_real_disk ? open_on_disk(path) : open_in(files, path);
  if (!file) return file.error();
  return std::unique_ptr<SyncedMark>(new SyncedMark(id, *std::move(file)));
}

Status SyncedMark::set(std::uint64_t batch) { return file_->write(0, encode(id_, batch), {}); }

std::uint64_t SyncedMark::read(::rocksdb::FileSystem& files, const std::string& directory,
                               const DirectoryId& id) {
  const std::string path = directory + "/" + kFileName;
  std::unique_ptr<::rocksdb::FSSequentialFile> file;
  if (!files.NewSequentialFile(path, FileOptions(), &file, nullptr).ok()) return 0;
  std::string scratch(kBytes, '\0');
  ::rocksdb::Slice got;
  if (!file->Read(kBytes, IOOptions(), &got, scratch.data(), nullptr).ok()) return 0;
  if (got.size() != kBytes) return 0;
  const std::string_view bytes(got.data(), got.size());
  const auto batch = ByteReader(bytes).fixed<std::uint64_t>();
  return encode(id, batch) == bytes ? batch : 0;
}

}  // namespace reprise::storage::journal
