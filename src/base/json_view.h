// JsonView: looks into JSON text without copying or rewriting it.
// The server's replies are read this way, so that a payload is printed with the bytes it was pushed
// with ("1.0" stays "1.0") and may nest as deep as the server lets it.
// A view borrows: the text must outlive it. Text that is not JSON gives absent values, never a read
// outside of it. Lookup scans the text, which suits replies that are read once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise {

class JsonView {
 public:
  JsonView() = default;  // absent
  // The value that `text` consists of; absent when it is none, or more than one.
  explicit JsonView(std::string_view text);

  bool present() const { return !raw_.empty(); }
  // Absent, or the word null.
  bool is_null() const { return raw_.empty() || raw_ == "null"; }
  bool is_true() const { return raw_ == "true"; }
  bool is_object() const { return raw_.starts_with('{'); }
  bool is_array() const { return raw_.starts_with('['); }
  bool is_string() const { return raw_.starts_with('"'); }
  // The text of this value, without the white space around it.
  std::string_view raw() const { return raw_; }

  // The member of an object; absent when there is none or this is no object.
  JsonView operator[](std::string_view name) const;
  std::vector<std::pair<std::string, JsonView>> members() const;
  std::vector<JsonView> elements() const;

  // A string's characters; `fallback` for any other kind.
  std::string string_or(std::string_view fallback) const;
  std::optional<double> number() const;
  std::optional<std::uint64_t> unsigned_integer() const;

 private:
  std::string_view raw_;
};

}  // namespace reprise
