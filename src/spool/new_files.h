// NewFiles: files on their way into a directory. They are written under temporary names and synced
// together, then given their own names, and the directory is synced.
// Whatever has not got its name is gone with the object.
// Threads: one owner, who holds the directory's writing lock as long as this lives.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "spool/spool_files.h"

namespace reprise::spool {

class NewFiles {
 public:
  // All of it must outlive this.
  NewFiles(int directory, const std::filesystem::path& path, const StepObserver& observer)
      : directory_(directory), path_(path), observer_(observer) {}
  ~NewFiles();
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  // Writes and syncs them under temporary names.
  Status write(const std::vector<NewFile>& files);
  // A file that is made by somebody else, who writes and syncs it: the temporary's descriptor.
  Result<UniqueFd> make(const std::string& name);

  // Then one of these. Names that are taken are left as they are and returned; on an error what was
  // named already is taken back.
  Result<std::vector<std::string>> publish();
  // Each takes the place of the file of its name. Returns those that are not there (any more).
  Result<std::vector<std::string>> exchange();
  // Each takes its name, whatever had it.
  Status overwrite();

 private:
  struct Pending {
    std::string temporary;
    std::string name;
  };

  Result<UniqueFd> make_temporary(const std::string& name);
  int correct_mode(int fd);
  Status sync_each(const std::vector<UniqueFd>& open);
  Status sync_names();
  void remove(const std::string& name) const;
  Error failed(const std::string& name, int code) const;
  void reached(std::string_view step) const {
    if (observer_) observer_(step);
  }

  int directory_;
  const std::filesystem::path& path_;
  const StepObserver& observer_;
  std::vector<Pending> pending_;
  bool mode_is_right_ = false;
};

// Gives `from` the name `to`, which must be free. 0, or an errno: EEXIST when it is not.
int rename_to_free_name(int directory, const std::string& from, const std::string& to);
// The same where the file system knows no such rename.
int link_to_free_name(int directory, const std::string& from, const std::string& to);

// All of `bytes`. 0, or an errno.
int write_whole(int fd, std::string_view bytes);

}  // namespace reprise::spool
