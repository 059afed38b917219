#include "runbook/load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "model/limits.h"
#include "runbook/findings.h"
#include "runbook/node.h"
#include "runbook/runbook_reader.h"

namespace reprise::runbook {
namespace {

namespace fs = std::filesystem;

std::string directory_of(const std::string& root) {
  return (fs::path(root) / kRunbookDirectory).string();
}

std::string shown_name(const std::string& file) {
  return fmt::format("{}/{}", kRunbookDirectory, file);
}

bool is_runbook_file(std::string_view name) {
  return !name.starts_with('.') && (name.ends_with(".toml") || name.ends_with(".json"));
}

// The names of a runbook's files, in order.
Result<std::vector<std::string>> list_files(const std::string& root) {
  std::vector<std::string> names;
  std::error_code failed;
  fs::directory_iterator entry(directory_of(root), failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    std::string name = entry->path().filename().string();
    if (is_runbook_file(name)) names.push_back(std::move(name));
  }
  if (failed) {
    return Error{Errc::invalid_runbook,
                 fmt::format("the directory cannot be read: {}", failed.message())};
  }
  std::ranges::sort(names);
  return names;
}

class OpenFile {
 public:
  // Not blocking: a pipe by that name must not hold anybody up.
  explicit OpenFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// A file's text; the error says why there is none.
Result<std::string> read_text(const std::string& path) {
  const auto fail = [](std::string why) { return Error{Errc::invalid_runbook, std::move(why)}; };
  const OpenFile file(path);
  struct stat info {};
  if (file.fd() < 0 || ::fstat(file.fd(), &info) != 0) {
    return fail(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return fail("is not a regular file");
  std::string text;
  // One byte more than is taken, whatever size the file has said it has.
  while (text.size() <= kMostFileBytes) {
    char buffer[16384];
    const ssize_t got = ::read(file.fd(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(fmt::format("cannot be read: {}", std::strerror(errno)));
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return fail("is larger than 1 MiB");
}

Document read_document(const SourceFile& file) {
  return file.name.ends_with(".json") ? read_json(file.text) : read_toml(file.text);
}

// Its tree, if it has one; what is wrong with it goes to the findings.
std::optional<Node> read_tree(const SourceFile& file, Findings& findings) {
  if (file.text.size() > kMostFileBytes) {
    findings.error({file.name, "", {}}, "is larger than 1 MiB");
    return std::nullopt;
  }
  Document document = read_document(file);
  for (SyntaxProblem& problem : document.problems) {
    findings.error({file.name, problem.path, problem.position}, std::move(problem.message));
  }
  return std::move(document.root);
}

std::string directory_name(const std::string& root) {
  fs::path path = fs::path(root).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

// The directory's name, if a namespace can be called that.
Result<std::string> name_of_directory(const std::string& root) {
  std::string name = directory_name(root);
  if (const Status fine = check_name("namespace", name); !fine) {
    return Error{
        Errc::invalid_runbook,
        fmt::format("the project has no name, and its directory's cannot be one: {}; write "
                    "[project] name = \"…\" in {}",
                    fine.error().detail, shown_name("config.toml"))};
  }
  return name;
}

struct NamedText {
  std::string name;
  Result<std::string> text;
};

LoadResult parse(const std::string& root, const std::string& ns,
                 const std::vector<NamedText>& files) {
  Findings findings;
  RunbookReader reader(findings);
  LoadResult result;
  for (const NamedText& file : files) {
    result.files.push_back(file.name);
    if (!file.text) {
      findings.error({file.name, "", {}}, file.text.error().detail);
      continue;
    }
    if (const auto tree = read_tree({file.name, *file.text}, findings)) {
      reader.read(file.name, *tree);
    }
  }
  result.ns = !ns.empty() ? ns : reader.name().value_or("");
  if (result.ns.empty()) {
    auto name = name_of_directory(root);
    // With other errors the name may only be unread.
    if (!name && !findings.has_errors()) {
      findings.error({shown_name("config.toml"), "project.name", {}}, name.error().detail);
    }
    if (name) result.ns = std::move(*name);
  }
  Runbook runbook = reader.finish();
  if (!findings.has_errors()) {
    runbook.ns = result.ns;
    runbook.root = root;
    result.runbook = std::move(runbook);
  }
  result.findings = findings.take(result.files);
  return result;
}

LoadResult failed_load(Severity severity, std::string message) {
  LoadResult result;
  result.findings.push_back({severity, {kRunbookDirectory, 0, 0}, "", std::move(message)});
  return result;
}

// Nothing: all is well. Who owns it and who may write to it, beyond what is his own business.
Status check_owner(const std::string& path, const std::string& shown) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return Error{Errc::unsafe_project,
                 fmt::format("{} cannot be looked at: {}", shown, std::strerror(errno))};
  }
  if (S_ISLNK(info.st_mode)) {
    return Error{Errc::unsafe_project,
                 fmt::format("{} is a symbolic link, so nobody can say whose commands would run; "
                             "put the thing itself there",
                             shown)};
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return Error{Errc::unsafe_project,
                 fmt::format("{} belongs to user {}, and what it says would run as user {}; chown "
                             "it, or run the server as its owner",
                             shown, info.st_uid, ::geteuid())};
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return Error{Errc::unsafe_project,
                 fmt::format("{} can be written by everybody; chmod o-w it", shown)};
  }
  return ok();
}

void append_stat(std::string& out, const std::string& name, const struct stat& info) {
  out += fmt::format("{}\n{} {} {} {}.{} {}.{} {} {}\n", name, info.st_dev, info.st_ino,
                     info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                     info.st_ctim.tv_nsec, info.st_uid, info.st_mode);
}

}  // namespace

std::optional<std::string> find_project(const std::string& directory) {
  std::error_code failed;
  fs::path path = fs::canonical(directory, failed);
  if (failed) return std::nullopt;
  while (true) {
    if (fs::is_directory(path / kRunbookDirectory, failed)) return path.string();
    if (!path.has_relative_path()) return std::nullopt;
    path = path.parent_path();
  }
}

Result<std::string> project_name(const std::string& root) {
  std::optional<std::string> name;
  for (const char* file : {"config.json", "config.toml"}) {
    const std::string path = (fs::path(directory_of(root)) / file).string();
    std::error_code failed;
    if (!fs::exists(fs::symlink_status(path, failed))) continue;
    Findings findings;
    const auto text = read_text(path);
    if (text) {
      if (const auto tree = read_tree({shown_name(file), *text}, findings)) {
        if (auto found = read_project_name(*tree, shown_name(file), findings)) name = found;
      }
    } else {
      findings.error({shown_name(file), "", {}}, text.error().detail);
    }
    if (findings.has_errors()) {
      const auto all = findings.take({});
      return Error{Errc::invalid_runbook, to_text(all.front())};
    }
  }
  if (name) return *name;
  return name_of_directory(root);
}

LoadResult load_runbook(const std::string& root, const std::string& ns) {
  const auto names = list_files(root);
  if (!names) return failed_load(Severity::error, names.error().detail);
  std::vector<NamedText> files;
  for (const std::string& name : *names) {
    files.push_back({shown_name(name), read_text((fs::path(directory_of(root)) / name).string())});
  }
  LoadResult result = parse(root, ns, files);
  if (files.empty()) {
    result.findings.push_back({Severity::warning,
                               {kRunbookDirectory, 0, 0},
                               "",
                               "holds no .toml and no .json file: nothing is declared"});
  }
  return result;
}

LoadResult parse_runbook(const std::string& root, const std::string& ns,
                         const std::vector<SourceFile>& files) {
  std::vector<NamedText> texts;
  for (const SourceFile& file : files) texts.push_back({file.name, file.text});
  return parse(root, ns, texts);
}

std::string runbook_fingerprint(const std::string& root) {
  struct stat info {};
  const std::string directory = directory_of(root);
  if (::stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return {};
  // Its own times change with files that do not matter here.
  std::string print =
      fmt::format("{} {} {} {}\n", info.st_dev, info.st_ino, info.st_uid, info.st_mode);
  const auto names = list_files(root);
  if (!names) return print + names.error().detail;
  for (const std::string& name : *names) {
    struct stat file {};
    const std::string path = (fs::path(directory) / name).string();
    if (::stat(path.c_str(), &file) != 0) file = {};
    append_stat(print, name, file);
  }
  return print;
}

Status check_ownership(const std::string& root) {
  // The directory as well: commands run in it, and whoever can write to it can put another
  // .reprise/ in place of this one.
  REPRISE_TRY(check_owner(root, root));
  REPRISE_TRY(check_owner(directory_of(root), kRunbookDirectory));
  const auto names = list_files(root);
  if (!names) {
    return Error{Errc::unsafe_project,
                 fmt::format("{}: {}", kRunbookDirectory, names.error().detail)};
  }
  for (const std::string& name : *names) {
    REPRISE_TRY(check_owner((fs::path(directory_of(root)) / name).string(), shown_name(name)));
  }
  return ok();
}

}  // namespace reprise::runbook
