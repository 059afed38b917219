// BodyReader: a JsonScanner over a request's body, with the words for bodies that are refused. What
// reads bodies whose payloads must stay the bytes that came stands on it (push_body, ingest_body).
//
// A reader of objects has a table of its fields, each with the method that reads it:
//
//   static constexpr std::array<BodyField<MyReader>, 1> kFields = {{{"jobs", &MyReader::jobs}}};
//   REPRISE_TRY(in.read_members(*this, kFields, [] { return "the body"; }));
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/result.h"
#include "server/json_scanner.h"

namespace reprise::server {

template <class Reader>
struct BodyField {
  std::string_view name;
  Status (Reader::*read)();
};

class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : body_(body), scanner_(body) {}

  JsonScanner& scanner() { return scanner_; }

  // Reads an object of ours: every member by its method, each at most once, no others. `what` makes
  // the name of the object.
  template <class Reader, std::size_t count, class What>
  Status read_members(Reader& reader, const std::array<BodyField<Reader>, count>& fields,
                      What what) {
    if (scanner_.kind() != JsonScanner::Kind::object) return wrong_kind(what(), "an object");
    scanner_.begin_object();
    std::bitset<count> seen;
    while (const auto name = scanner_.next_member()) {
      const auto field = std::ranges::find(fields, *name, &BodyField<Reader>::name);
      if (field == fields.end()) return unknown_field(*name, names_of(fields));
      const auto index = static_cast<std::size_t>(field - fields.begin());
      if (seen.test(index)) return duplicate_field(*name);
      seen.set(index);
      REPRISE_TRY((reader.*field->read)());
    }
    return so_far();
  }

  // The next value, a small one (a number, a duration or a flag), by the same rules as in every
  // other body. `path` is that of the object it is in; empty at the top.
  template <class T>
  Status read_small(const std::string& path, std::string_view name, T& out) {
    const std::string_view raw = scanner_.raw_value();
    if (scanner_.failed()) return syntax_error();
    auto value = Json::parse(raw);
    if (!value) return value.error();
    const Json object(Json::Object{{std::string(name), std::move(*value)}});
    JsonFields fields(object, path);
    fields.read(name, out);
    return fields.finish();
  }

  // Steps over a null; false when the next value is none.
  bool skip_null();
  // Ok unless the scanner has failed.
  Status so_far() const { return scanner_.failed() ? Status(syntax_error()) : ok(); }

  // Says where the problem is. Slow, and only for bodies that are refused anyway.
  Error syntax_error() const;
  Error wrong_kind(std::string_view what, std::string_view expected);
  static Error duplicate_field(std::string_view name);

 private:
  template <class Reader, std::size_t count>
  static std::vector<std::string> names_of(const std::array<BodyField<Reader>, count>& fields) {
    std::vector<std::string> names;
    names.reserve(count);
    for (const auto& field : fields) names.emplace_back(field.name);
    return names;
  }
  static Error unknown_field(std::string_view name, const std::vector<std::string>& known);

  const std::string_view body_;
  JsonScanner scanner_;
};

}  // namespace reprise::server
