#include "storage/journal/segment.h"

#include <charconv>
#include <utility>

namespace reprise::storage::journal {
namespace {

constexpr std::size_t kDigits = 20;  // so that names sort as their numbers do

}  // namespace

std::string segment_file_name(std::uint64_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, kDigits - digits.size(), '0');
  return digits.append(kSegmentExtension);
}

std::optional<std::uint64_t> parse_segment_file_name(std::string_view name) {
  const bool is_one =
      name.size() == kDigits + kSegmentExtension.size() && name.ends_with(kSegmentExtension);
  if (!is_one) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = name.data() + kDigits;
  const auto [stopped, error] = std::from_chars(name.data(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

Result<SegmentPtr> Segment::open(::rocksdb::FileSystem& files, bool on_real_disk, std::string path,
                                 std::uint64_t number) {
  std::uint64_t capacity = 0;
  const auto status = files.GetFileSize(path, ::rocksdb::IOOptions(), &capacity, nullptr);
  if (!status.ok()) return file_error(path, status);
  auto file = on_real_disk ? open_on_disk(path) : open_in(files, path);
  if (!file) return file.error();
  return SegmentPtr(new Segment(std::move(path), number, capacity, *std::move(file)));
}

Result<SegmentPtr> Segment::open_to_read(::rocksdb::FileSystem& files, std::string path,
                                         std::uint64_t number) {
  std::uint64_t capacity = 0;
  const auto status = files.GetFileSize(path, ::rocksdb::IOOptions(), &capacity, nullptr);
  if (!status.ok()) return file_error(path, status);
  auto file = journal::open_to_read(files, path);
  if (!file) return file.error();
  return SegmentPtr(new Segment(std::move(path), number, capacity, *std::move(file)));
}

}  // namespace reprise::storage::journal
