#include "storage/rocksdb/table_writer.h"

#include <utility>

#include "base/ids.h"
#include "storage/rocksdb/status.h"

namespace reprise::storage {
namespace {

using ::rocksdb::Slice;

constexpr std::uint64_t kFileBytesMax = 16ULL << 20;
// Files are cut where the queue changes, and between tombstones (of old jobs) and puts (of new
// ones): a file that reaches from the oldest job to the newest would overlap everything in between,
// and a compaction would have to rewrite it all. Smaller ones than this are not worth a file.
constexpr std::uint64_t kCutBytesMin = 2ULL << 20;
constexpr std::uint64_t kCutEntriesMin = 2'000;

Slice slice(std::string_view text) { return {text.data(), text.size()}; }

std::string_view queue_of(std::string_view key) { return key.substr(0, sizeof(QueueNumber)); }

}  // namespace

TableWriter::TableWriter(Database& database, std::string directory, const Pace& pace)
    : database_(database), directory_(std::move(directory)) {
  const bool on_real_disk = database_.options().env == nullptr;
  if (on_real_disk) write_behind_ = make_write_behind_files(pace);
}

TableWriter::~TableWriter() {
  writer_.reset();
  auto* env = database_->GetEnv();
  for (std::uint64_t i = 0; i < files_made_; ++i) {
    (void)env->DeleteFile(directory_ + "/" + std::to_string(i) + ".sst");
  }
}

Status TableWriter::put(::rocksdb::ColumnFamilyHandle* family, std::string_view key,
                        std::string_view value) {
  REPRISE_TRY(prepare(family, key, Kind::put));
  bytes_ += key.size() + value.size();
  return checked(writer_->Put(slice(key), slice(value)));
}

Status TableWriter::erase(::rocksdb::ColumnFamilyHandle* family, std::string_view key) {
  REPRISE_TRY(prepare(family, key, Kind::erase));
  return checked(writer_->Delete(slice(key)));
}

Status TableWriter::prepare(::rocksdb::ColumnFamilyHandle* family, std::string_view key,
                            Kind kind) {
  if (writer_ && (family != family_ || ends_file(key, kind))) REPRISE_TRY(finish_file());
  if (!writer_) REPRISE_TRY(begin_file(family));
  if (queue_ != queue_of(key)) queue_ = queue_of(key);
  kind_ = kind;
  ++entries_;
  return ok();
}

bool TableWriter::ends_file(std::string_view key, Kind kind) const {
  const std::uint64_t bytes = writer_->FileSize();
  if (bytes >= kFileBytesMax) return true;
  if (kind == kind_ && queue_of(key) == queue_) return false;
  return bytes >= kCutBytesMin || (kind_ == Kind::erase && entries_ >= kCutEntriesMin);
}

Status TableWriter::begin_file(::rocksdb::ColumnFamilyHandle* family) {
  const std::string path = directory_ + "/" + std::to_string(files_made_++) + ".sst";
  auto options = database_->GetOptions(family);
  compresses_ = database_.compression_sense().compresses(family);
  if (!compresses_) options.compression = ::rocksdb::kNoCompression;
  family_ = family;
  entries_ = 0;
  bytes_ = 0;
  files_[family].push_back(path);
  if (write_behind_) {
    auto past_page_cache = options;
    past_page_cache.env = write_behind_.get();
    const auto opened = open_file(family, past_page_cache, path);
    if (!opened.IsInvalidArgument()) return checked(opened);
    write_behind_.reset();  // not every file system has a way past its page cache
  }
  return checked(open_file(family, options, path));
}

::rocksdb::Status TableWriter::open_file(::rocksdb::ColumnFamilyHandle* family,
                                         const ::rocksdb::Options& options,
                                         const std::string& path) {
  ::rocksdb::EnvOptions env_options(options);
  constexpr bool kDropFromPageCache = false;
  writer_ =
      std::make_unique<::rocksdb::SstFileWriter>(env_options, options, family, kDropFromPageCache);
  return writer_->Open(path);
}

Status TableWriter::finish_file() {
  ::rocksdb::ExternalSstFileInfo info;
  const auto status = writer_->Finish(&info);
  writer_.reset();
  if (status.ok() && compresses_) {
    database_.compression_sense().learn(family_, bytes_, info.file_size);
  }
  return checked(status);
}

Status TableWriter::ingest() {
  if (writer_) REPRISE_TRY(finish_file());
  std::vector<::rocksdb::IngestExternalFileArg> families;
  for (auto& [family, files] : files_) {
    ::rocksdb::IngestExternalFileArg arg;
    arg.column_family = family;
    arg.external_files = files;
    arg.options.move_files = true;
    arg.options.write_global_seqno = false;
    families.push_back(std::move(arg));
  }
  if (families.empty()) return ok();
  return checked(database_->IngestExternalFiles(families));
}

Status TableWriter::checked(const ::rocksdb::Status& status) const {
  return to_status(status, database_.options().directory);
}

}  // namespace reprise::storage
