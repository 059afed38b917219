#include "storage/durable/segment_pieces.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

namespace reprise::storage {
namespace {

constexpr std::uint64_t kAlignedBytes = 4096;  // what reads past the page cache are made of

}  // namespace

class SegmentPieces::OpenSegment {
 public:
  explicit OpenSegment(const journal::Segment& segment)
      : number_(segment.number()), bytes_(segment.capacity()) {
    file_ = ::open(segment.path().c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (file_ < 0) return;
    // Only to ask what of it is in the page cache; nothing is read through it.
    pages_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_, 0);
  }
  ~OpenSegment() {
    if (pages_ != MAP_FAILED) ::munmap(pages_, bytes_);
    if (file_ >= 0) ::close(file_);
  }
  OpenSegment(const OpenSegment&) = delete;
  OpenSegment& operator=(const OpenSegment&) = delete;

  std::uint64_t number() const { return number_; }
  bool can_read() const { return file_ >= 0 && pages_ != MAP_FAILED; }

  // Whether most of these bytes are in the page cache.
  bool is_cached(std::uint64_t begin, std::uint64_t end) const {
    static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::array<unsigned char, kBytesMax / kAlignedBytes + 2> is_there{};
    begin = begin / page_bytes * page_bytes;
    const std::uint64_t pages = (end - begin + page_bytes - 1) / page_bytes;
    if (pages > is_there.size()) return false;
    if (::mincore(static_cast<char*>(pages_) + begin, end - begin, is_there.data()) != 0) {
      return false;
    }
    const auto cached =
        std::count_if(is_there.begin(), is_there.begin() + static_cast<std::ptrdiff_t>(pages),
                      [](unsigned char page) { return (page & 1U) != 0; });
    return static_cast<std::uint64_t>(cached) * 2 > pages;
  }

  // All of it, or false.
  bool read(std::uint64_t offset, std::uint64_t length, char* into) const {
    while (length > 0) {
      const ssize_t got = ::pread(file_, into, length, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 || static_cast<std::uint64_t>(got) % kAlignedBytes != 0) return false;
      offset += static_cast<std::uint64_t>(got);
      into += got;
      length -= static_cast<std::uint64_t>(got);
    }
    return true;
  }

 private:
  const std::uint64_t number_;
  const std::uint64_t bytes_;
  int file_ = -1;
  void* pages_ = MAP_FAILED;
};

SegmentPieces::SegmentPieces() = default;
SegmentPieces::~SegmentPieces() = default;

std::optional<std::string_view> SegmentPieces::read(const journal::Segment& segment,
                                                    std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t begin = offset / kAlignedBytes * kAlignedBytes;
  const std::uint64_t end = (offset + length + kAlignedBytes - 1) / kAlignedBytes * kAlignedBytes;
  if (length < kBytesMin || end - begin > kBytesMax || end > segment.capacity()) {
    return std::nullopt;
  }
  if (!open_ || open_->number() != segment.number()) {
    open_ = std::make_unique<OpenSegment>(segment);
  }
  if (!open_->can_read() || open_->is_cached(begin, end)) return std::nullopt;
  if (!memory_) {
    memory_.reset(static_cast<char*>(std::aligned_alloc(kAlignedBytes, kBytesMax)));
    if (!memory_) throw std::bad_alloc();
  }
  if (!open_->read(begin, end - begin, memory_.get())) return std::nullopt;
  return std::string_view(memory_.get() + (offset - begin), length);
}

}  // namespace reprise::storage
