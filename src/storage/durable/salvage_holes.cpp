#include "storage/durable/salvage_holes.h"

#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "storage/durable/salvage_cursor.h"

namespace reprise::storage {

struct HoleReader::Table {
  std::string path;
  std::string smallest;
  std::string largest;
  // The less, the later is what it says.
  int level = 0;
  std::uint64_t seqno = 0;

  auto age() const { return std::tuple(level, ~seqno); }
};

struct HoleReader::OpenTable {
  const Table* table = nullptr;
  std::unique_ptr<::rocksdb::SstFileReader> reader;
  std::unique_ptr<SeekableCursor> cursor;  // of the reader
};

HoleReader::HoleReader(::rocksdb::DB& db, ::rocksdb::ColumnFamilyHandle* family)
    : db_(db), family_(family) {
  std::vector<::rocksdb::LiveFileMetaData> files;
  db.GetLiveFilesMetaData(&files);
  for (auto& file : files) {
    if (file.column_family_name != family->GetName()) continue;
    tables_.push_back({.path = file.db_path + file.name,
                       .smallest = std::move(file.smallestkey),
                       .largest = std::move(file.largestkey),
                       .level = file.level,
                       .seqno = file.largest_seqno});
  }
  std::ranges::sort(tables_, {}, &Table::smallest);
}

HoleReader::~HoleReader() = default;

void HoleReader::enter(std::string_view from, std::string_view until) {
  from_ = from;
  until_ = until;
  open_.clear();
  next_table_ = 0;
  settle();
}

void HoleReader::next() {
  from_ = key_ + '\0';
  settle();
}

// Those that may hold the next key.
void HoleReader::open_tables() {
  for (; next_table_ < tables_.size(); ++next_table_) {
    const Table& table = tables_[next_table_];
    const OpenTable* const nearest = first();
    if (nearest != nullptr && table.smallest > nearest->cursor->key()) return;
    if (!until_.empty() && table.smallest >= until_) return;
    if (table.largest < from_) continue;
    auto reader = std::make_unique<::rocksdb::SstFileReader>(db_.GetOptions(family_));
    if (!reader->Open(table.path).ok()) continue;
    ::rocksdb::ReadOptions options;
    options.fill_cache = false;
    auto cursor =
        make_skipping_cursor(std::unique_ptr<::rocksdb::Iterator>(reader->NewIterator(options)),
                             family_->GetName(), unheard_);
    cursor->seek(from_);
    if (!cursor->valid()) continue;
    open_.push_back(std::make_unique<OpenTable>(
        OpenTable{.table = &table, .reader = std::move(reader), .cursor = std::move(cursor)}));
  }
}

// The one with the next key, of several that with the latest word.
HoleReader::OpenTable* HoleReader::first() {
  const auto order = [](const auto& open) {
    return std::pair(open->cursor->key(), open->table->age());
  };
  const auto found = std::ranges::min_element(open_, {}, order);
  return found == open_.end() ? nullptr : found->get();
}

// To the first key from from_ on that counts.
void HoleReader::settle() {
  key_.clear();
  while (true) {
    for (const auto& open : open_) {
      while (open->cursor->valid() && open->cursor->key() < from_) open->cursor->next();
    }
    std::erase_if(open_, [](const auto& open) { return !open->cursor->valid(); });
    open_tables();
    const OpenTable* const found = first();
    if (found == nullptr) return;
    const std::string key(found->cursor->key());
    if (!until_.empty() && key >= until_) return;
    const auto status = db_.Get(::rocksdb::ReadOptions(), family_, key, &value_);
    if (!status.IsNotFound()) {
      doubtful_ = !status.ok();
      if (doubtful_) value_ = found->cursor->value();
      key_ = key;
      return;
    }
    from_ = key + '\0';
  }
}

}  // namespace reprise::storage
