// Whatever bytes come from an HTTP client: they are cut into requests as connections cut them, the
// same however the stream is split, and what is taken for a header keeps to the rules that a server
// in front of this one goes by.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "server/chunked_decoder.h"
#include "server/input_buffer.h"
#include "server/request_gate.h"

namespace reprise::server {
namespace {

constexpr std::size_t kMaxHeaderBytes = 2000;
constexpr std::size_t kMaxBodyBytes = 500;

std::string text_of(const std::optional<std::string_view>& field) {
  return field ? "=" + std::string(*field) : "-";
}

std::string text_of(const RequestHead& head) {
  std::string text = std::string(head.method) + " " + std::string(head.path) + " " +
                     std::string(head.query) + (head.http_1_0 ? " 1.0" : " 1.1") +
                     (head.keep_alive ? " stays" : " closes") + (head.chunked ? " chunked" : "") +
                     (head.expects_continue ? " expects" : "") + " " +
                     std::to_string(head.content_length.value_or(0));
  for (const auto& field : {head.host, head.authorization, head.origin, head.if_none_match,
                            head.last_event_id, head.content_encoding, head.project_root}) {
    text += " " + text_of(field);
  }
  return text;
}

bool is_clean(std::string_view value) {
  return std::ranges::none_of(value, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

// The lines of a header block, as a program would see them that ends lines at CR LF only.
std::vector<std::string_view> lines_of(std::string_view block) {
  std::vector<std::string_view> lines;
  for (std::size_t end; (end = block.find("\r\n")) != std::string_view::npos;) {
    lines.push_back(block.substr(0, end));
    block.remove_prefix(end + 2);
  }
  REPRISE_CHECK(block.empty());
  return lines;
}

// What two servers could disagree about is not in a header that was taken.
void check(const RequestHead& head, std::string_view block) {
  REPRISE_CHECK(is_clean(head.method) && !head.method.empty());
  REPRISE_CHECK(is_clean(head.path) && head.path.starts_with('/'));
  REPRISE_CHECK(is_clean(head.query));
  REPRISE_CHECK(!(head.chunked && head.content_length));
  REPRISE_CHECK(head.http_1_0 || head.host);
  std::size_t lengths = 0;
  std::size_t codings = 0;
  std::size_t hosts = 0;
  for (const std::string_view line : lines_of(block)) {
    REPRISE_CHECK(is_clean(line));
    REPRISE_CHECK(!line.starts_with(' ') && !line.starts_with('\t'));
    const std::string_view name = line.substr(0, line.find(':'));
    lengths += equal_ignoring_case(name, "content-length");
    codings += equal_ignoring_case(name, "transfer-encoding");
    hosts += equal_ignoring_case(name, "host");
  }
  REPRISE_CHECK(lengths == (head.content_length ? 1 : 0));
  REPRISE_CHECK(codings == (head.chunked ? 1 : 0));
  // HTTP/1.0 asks for no Host; a target such as http://a/x names one.
  const bool target_names_host = !block.substr(block.find(' ') + 1).starts_with('/');
  if (head.http_1_0 && target_names_host) {
    REPRISE_CHECK(hosts <= 1 && head.host);
  } else {
    REPRISE_CHECK(hosts == (head.host ? 1 : 0));
  }
}

// Cuts a stream into requests in the way of a connection, with small limits.
class Reader {
 public:
  // False: refused; what follows is not looked at.
  bool take(std::string_view bytes) {
    // A copy of the exact size, so that a look beyond its end is noticed.
    const std::string piece(bytes);
    input_.append(piece);
    while (!closed_ && (has_head_ ? read_body() : read_head())) {
    }
    return !closed_;
  }
  const std::vector<std::string>& told() const { return told_; }

 private:
  bool refuse(std::string why) {
    told_.push_back("refused: " + std::move(why));
    closed_ = true;
    return false;
  }

  bool read_head() {
    while (!in_request_ && input_.view().starts_with("\r\n")) input_.consume(2);
    if (input_.empty() || (!in_request_ && input_.view() == "\r")) return false;
    const std::size_t end = find_header_end(input_.view(), searched_);
    REPRISE_CHECK(end == find_header_end(input_.view()));
    REPRISE_CHECK(end <= input_.size());
    if ((end == 0 ? input_.size() : end) > kMaxHeaderBytes) return refuse("long header");
    if (end == 0) {
      searched_ = input_.size();
      in_request_ = true;
      return false;
    }
    searched_ = 0;
    in_request_ = false;
    block_ = input_.view().substr(0, end);
    input_.consume(end);
    const auto head = read_request_head(block_);
    if (const auto* refusal = std::get_if<GateRefusal>(&head)) {
      REPRISE_CHECK(refusal->http_status >= 400 && refusal->http_status < 600);
      REPRISE_CHECK(!refusal->detail.empty());
      return refuse(refusal->detail);
    }
    head_ = std::get<RequestHead>(head);
    check(head_, block_);
    if (head_.content_length.value_or(0) > kMaxBodyBytes) return refuse("long body");
    decoder_ = {};
    body_.clear();
    has_head_ = true;
    return true;
  }

  bool read_body() {
    if (head_.chunked) return read_chunked_body();
    const std::size_t length = head_.content_length.value_or(0);
    if (input_.size() < length) return false;
    body_ = input_.view().substr(0, length);
    input_.consume(length);
    return finish();
  }

  bool read_chunked_body() {
    while (true) {
      const ChunkedDecoder::Step step = decoder_.step(input_.view());
      REPRISE_CHECK(step.used <= input_.size() && step.data.size() <= step.used);
      if (body_.size() + step.data.size() > kMaxBodyBytes) return refuse("long body");
      body_ += step.data;
      input_.consume(step.used);
      if (step.outcome == ChunkedDecoder::Outcome::bad) return refuse("bad chunks");
      if (step.outcome == ChunkedDecoder::Outcome::done) return finish();
      if (step.outcome == ChunkedDecoder::Outcome::need_more) {
        REPRISE_CHECK(input_.empty());
        return false;
      }
      REPRISE_CHECK(!step.data.empty());
    }
  }

  bool finish() {
    told_.push_back(text_of(head_) + " " + body_);
    has_head_ = false;
    return true;
  }

  InputBuffer input_;
  std::size_t searched_ = 0;
  bool in_request_ = false;
  bool has_head_ = false;
  bool closed_ = false;
  std::string block_;
  RequestHead head_;
  ChunkedDecoder decoder_;
  std::string body_;
  std::vector<std::string> told_;
};

// In pieces of at most so many bytes: of so many, of one less, down to one, and again.
std::vector<std::string> read(std::string_view stream, std::size_t most) {
  Reader reader;
  for (std::size_t size = most; !stream.empty(); size = size > 1 ? size - 1 : most) {
    const std::string_view piece = stream.substr(0, size);
    stream.remove_prefix(piece.size());
    if (!reader.take(piece)) break;
  }
  return reader.told();
}

}  // namespace
}  // namespace reprise::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise::server;
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  const auto whole = read(stream, stream.size());
  REPRISE_CHECK(whole == read(stream, 7));
  REPRISE_CHECK(whole == read(stream, 1));
  return 0;
}

std::vector<std::string> reprise::fuzz::seeds() { return {}; }
