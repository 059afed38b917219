// RunbookReader: puts the files of a runbook together and checks that every name in it leads
// somewhere. One use each: read() every file, then finish().
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runbook/findings.h"
#include "runbook/node.h"
#include "runbook/runbook.h"

namespace reprise::runbook {

// Of queues, of pipelines and of workers.
inline constexpr std::size_t kMostDeclarations = 1000;

// The files that may say what the project is called.
bool is_config_file(std::string_view file);
// The name that a config file gives; nothing: it gives none, or a bad one, which the findings say.
std::optional<std::string> read_project_name(const Node& root, const std::string& file,
                                             Findings& findings);

class RunbookReader {
 public:
  explicit RunbookReader(Findings& findings) : findings_(findings) {}

  void read(const std::string& file, const Node& root);
  // What was declared; to be used only if there were no errors. `ns` and `root` are left empty.
  Runbook finish();
  // From [project].
  const std::optional<std::string>& name() const { return name_; }

 private:
  // Names that were declared, well or badly, and where.
  using Places = std::map<std::string, Place, std::less<>>;

  void read_queues(const Member& queues, const std::string& file);
  void read_pipelines(const Member& pipelines, const std::string& file);
  void read_workers(const Member& workers, const std::string& file);
  void read_worker(const std::string& name, const Node& table, const Subject& subject);
  void read_project(const Member& project, const Node& root, const std::string& file);
  template <class Read>
  void for_each_named(const Member& group, const std::string& file, Places& places, Read read);
  void check_workers();
  void check_unused();

  Findings& findings_;
  Runbook runbook_;
  Places queues_;
  Places pipelines_;
  Places workers_;
  std::map<std::string, Subject> queue_subjects_;
  // What workers name, to be looked up when all files are read.
  struct WorkerDraft {
    WorkerDeclaration worker;
    Subject queue;
    Subject pipeline;
  };
  std::vector<WorkerDraft> drafts_;
  std::optional<Place> project_;
  std::optional<std::string> name_;
};

}  // namespace reprise::runbook
