#include "support/storage_contents.h"

#include "storage/keys.h"

namespace reprise::test {
namespace {

using storage::Keyspace;

bool is_internal(Keyspace keyspace, std::string_view key) {
  return keyspace == Keyspace::meta &&
         (key == storage::kCheckpointKey || key == storage::kFormatKey);
}

class Applier final : public storage::Batch::Visitor {
 public:
  explicit Applier(Contents& contents) : contents_(contents) {}
  void put(Keyspace keyspace, std::string_view key, std::string_view value) override {
    contents_[keyspace].insert_or_assign(std::string(key), std::string(value));
  }
  void erase(Keyspace keyspace, std::string_view key) override {
    change(keyspace, [&](auto& map) { map.erase(std::string(key)); });
  }
  void erase_range(Keyspace keyspace, std::string_view begin, std::string_view end) override {
    change(keyspace, [&](auto& map) {
      map.erase(map.lower_bound(std::string(begin)), map.lower_bound(std::string(end)));
    });
  }

 private:
  template <class Change>
  void change(Keyspace keyspace, const Change& change) {
    const auto found = contents_.find(keyspace);
    if (found == contents_.end()) return;
    change(found->second);
    if (found->second.empty()) contents_.erase(found);
  }

  Contents& contents_;
};

std::string describe(Keyspace keyspace, const std::string& key) {
  std::string text(storage::keyspace_name(keyspace));
  text += " ";
  for (const char byte : key) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

}  // namespace

Result<Contents> read_contents(const storage::Storage& storage) {
  Contents contents;
  for (const Keyspace keyspace : storage::kAllKeyspaces) {
    REPRISE_TRY(storage.scan(keyspace, {}, {}, [&](auto key, auto value) {
      if (!is_internal(keyspace, key)) contents[keyspace].emplace(key, value);
      return true;
    }));
  }
  return contents;
}

Result<Contents> read_contents(const storage::Storage::Snapshot& snapshot) {
  Contents contents;
  for (const Keyspace keyspace : storage::kAllKeyspaces) {
    const auto at = snapshot.cursor(keyspace, {}, {});
    for (; at->valid(); at->next()) {
      if (!is_internal(keyspace, at->key())) contents[keyspace].emplace(at->key(), at->value());
    }
    REPRISE_TRY(at->status());
  }
  return contents;
}

void apply(const storage::Batch& batch, Contents& contents) {
  Applier applier(contents);
  batch.visit(applier);
}

std::string difference(const Contents& expected, const Contents& found) {
  if (expected == found) return {};
  std::string text;
  std::size_t count = 0;
  const auto note = [&](const char* what, Keyspace keyspace, const std::string& key) {
    if (++count <= 5) text += std::string(what) + " " + describe(keyspace, key) + "; ";
  };
  static const std::map<std::string, std::string> kNothing;
  const auto of = [](const Contents& contents, Keyspace keyspace) -> const auto& {
    const auto at = contents.find(keyspace);
    return at == contents.end() ? kNothing : at->second;
  };
  for (const Keyspace keyspace : storage::kAllKeyspaces) {
    const auto& wanted = of(expected, keyspace);
    const auto& there = of(found, keyspace);
    for (const auto& [key, value] : wanted) {
      const auto at = there.find(key);
      if (at == there.end()) {
        note("lacks", keyspace, key);
      } else if (at->second != value) {
        note("has another value of", keyspace, key);
      }
    }
    for (const auto& [key, value] : there) {
      if (!wanted.contains(key)) note("should not have", keyspace, key);
    }
  }
  return text + std::to_string(count) + " in all";
}

}  // namespace reprise::test
