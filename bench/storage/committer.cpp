#include "committer.h"

#include <utility>

#include "journal_floor.h"
#include "load_error.h"
#include "plain_rocksdb.h"
#include "require.h"
#include "subject.h"

namespace reprise::bench {
namespace {

class Subject final : public Committer {
 public:
  explicit Subject(std::unique_ptr<storage::Storage> storage) : storage_(std::move(storage)) {}
  void commit(const storage::Batch& batch, storage::Durability durability) override {
    require(storage_->commit(batch, durability));
  }
  void sync() override { require(storage_->sync()); }

 private:
  const std::unique_ptr<storage::Storage> storage_;
};

}  // namespace

std::vector<std::string> committer_names() {
  return {"reprise", "plain", "append", "overwrite", "direct"};
}

std::unique_ptr<Committer> make_committer(std::string_view name, const std::string& folder) {
  if (name == "reprise") return std::make_unique<Subject>(open_subject(folder));
  if (name == "plain") return open_plain_rocksdb(folder);
  if (name == "append") return open_journal_floor(folder, JournalKind::append);
  if (name == "overwrite") return open_journal_floor(folder, JournalKind::overwrite);
  if (name == "direct") return open_journal_floor(folder, JournalKind::direct);
  throw LoadError("nothing is called " + std::string(name));
}

}  // namespace reprise::bench
