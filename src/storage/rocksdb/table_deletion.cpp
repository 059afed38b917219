#include "storage/rocksdb/table_deletion.h"

#include <rocksdb/file_system.h>

#include <string_view>
#include <utility>

#include "storage/rocksdb/past_page_cache_reads.h"

namespace reprise::storage {
namespace {

using ::rocksdb::IODebugContext;
using ::rocksdb::IOOptions;
using ::rocksdb::IOStatus;

constexpr std::string_view kTableExtension = ".sst";

class Files final : public ::rocksdb::FileSystemWrapper {
 public:
  explicit Files(std::shared_ptr<GradualDeletion> deletion)
      : FileSystemWrapper(read_past_page_cache()), deletion_(std::move(deletion)) {}
  const char* Name() const override { return "TableDeletion"; }

  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* context) override {
    if (is_table(path) && deletion_->take(path)) return IOStatus::OK();
    return FileSystemWrapper::DeleteFile(path, options, context);
  }

 private:
  bool is_table(std::string_view path) const {
    const std::size_t slash = path.find_last_of('/');
    return path.ends_with(kTableExtension) && slash != std::string_view::npos &&
           path.substr(0, slash) == deletion_->directory();
  }

  const std::shared_ptr<GradualDeletion> deletion_;
};

}  // namespace

TableDeletion::TableDeletion(const std::string& directory)
    : deletion_(std::make_shared<GradualDeletion>(directory, kTableExtension)),
      env_(::rocksdb::NewCompositeEnv(std::make_shared<Files>(deletion_))) {}

}  // namespace reprise::storage
