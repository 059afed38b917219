#include "committer.h"

#include <utility>

#include "broker/committer.h"
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
  // As the broker does.
  std::size_t at_once() const override {
    return reprise::Committer::batches_at_once(DurabilityMode::sync);
  }
  std::unique_ptr<storage::Storage::Commit> begin(const storage::Batch& batch,
                                                  storage::Durability durability) override {
    return require(storage_->begin_commit(batch, durability));
  }
  void sync() override { require(storage_->sync()); }

 private:
  const std::unique_ptr<storage::Storage> storage_;
};

class OneStepCommit final : public storage::Storage::Commit {
 public:
  OneStepCommit(OneStepCommitter& committer, const storage::Batch& batch,
                storage::Durability durability)
      : committer_(committer), batch_(batch), durability_(durability) {}
  void write() override { committer_.commit(batch_, durability_); }
  Status finish() override { return ok(); }

 private:
  OneStepCommitter& committer_;
  const storage::Batch& batch_;
  const storage::Durability durability_;
};

}  // namespace

std::unique_ptr<storage::Storage::Commit> OneStepCommitter::begin(const storage::Batch& batch,
                                                                  storage::Durability durability) {
  return std::make_unique<OneStepCommit>(*this, batch, durability);
}

void commit(Committer& committer, const storage::Batch& batch) {
  const auto commit = committer.begin(batch, storage::Durability::synced);
  commit->write();
  require(commit->finish());
}

std::vector<std::string> committer_names() {
  return {"reprise", "plain", "plain_two", "append", "overwrite", "direct"};
}

std::unique_ptr<Committer> make_committer(std::string_view name, const std::string& folder,
                                          storage::Durability commits) {
  if (name == "reprise") return std::make_unique<Subject>(open_subject(folder, commits));
  if (name == "plain") return open_plain_rocksdb(folder, Writers::one);
  if (name == "plain_two") return open_plain_rocksdb(folder, Writers::two);
  if (name == "append") return open_journal_floor(folder, JournalKind::append);
  if (name == "overwrite") return open_journal_floor(folder, JournalKind::overwrite);
  if (name == "direct") return open_journal_floor(folder, JournalKind::direct);
  throw LoadError("nothing is called " + std::string(name));
}

}  // namespace reprise::bench
