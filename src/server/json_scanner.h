// JsonScanner: walks through strict JSON text value by value and can tell where each one stands.
// Push bodies need that: a payload must come back byte for byte, and a parser that turns text into
// values (1e2 into 100.0, refusing whole numbers beyond 64 bits) has lost the bytes.
//
// Strict: RFC 8259, no escapes of lone surrogates, nesting up to kMaxJsonDepth. The caller makes
// sure that the text is UTF-8. The first problem sticks: from then on every call returns nothing,
// so a caller may check failed() once in a while.
//
//   if (!scanner.begin_object()) …;
//   while (const auto name = scanner.next_member()) { scanner.raw_value(); }
//
// Views point into the text, except names that have escapes: they last until the next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::server {

class JsonScanner {
 public:
  enum class Kind : std::uint8_t { object, array, string, number, boolean, null, nothing };

  explicit JsonScanner(std::string_view text) : text_(text) {}

  // What the next value looks like from its first byte.
  Kind kind();

  // Into an object or array. False when the next value is none.
  bool begin_object() { return begin('{'); }
  bool begin_array() { return begin('['); }
  // The name of the next member; its value comes next. nullopt: the object has ended, or failed().
  std::optional<std::string_view> next_member();
  // True when another element comes next; false: the array has ended, or failed().
  bool next_element() { return next_item(']'); }

  // Steps over the next value, whatever it is. Its bytes without blanks around it; empty: failed().
  std::string_view raw_value();
  // The next value, which must be a string, unescaped.
  std::optional<std::string> string_value();

  // Where the next value begins, and the text from such a place to the end of the value read last:
  // for a value that is walked through and wanted whole.
  std::size_t position();
  std::string_view since(std::size_t begin) const { return text_.substr(begin, at_ - begin); }

  // True when only blanks are left.
  bool at_end();
  bool failed() const { return failed_; }

 private:
  char peek();
  void skip_blanks();
  bool begin(char bracket);
  bool next_item(char closing);
  bool skip_value();
  bool skip_container(char closing);
  bool skip_string();
  bool skip_escape();
  bool skip_number();
  bool skip_digits();
  bool skip_word(std::string_view word);
  std::optional<unsigned> hex4(std::size_t at) const;
  bool fail();

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  bool first_ = true;  // no item of the innermost container has been seen
  bool failed_ = false;
  std::string name_;  // of next_member(), when it had escapes
};

// What a valid JSON string says: `raw` is the text between its quotes.
std::string unescape_json_string(std::string_view raw);

}  // namespace reprise::server
