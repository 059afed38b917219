#include "support/memory_disk.h"

#include <set>
#include <vector>

#include "base/check.h"

namespace reprise::test {
namespace {

std::vector<std::string> names_in(rocksdb::Env& env, const std::string& directory) {
  std::vector<std::string> names;
  if (!env.GetChildren(directory, &names).ok()) names.clear();
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  return names;
}

// In memory a directory opens like a file and a file lists like an empty directory, so only one
// that holds something is known for one.
void read_into(rocksdb::Env& env, const std::string& directory, const std::string& prefix,
               DiskImage& image) {
  for (const std::string& name : names_in(env, directory)) {
    const std::string path = directory + "/" + name;
    bool is_directory = false;
    const bool known = env.IsDirectory(path, &is_directory).ok();
    if ((known && is_directory) || !names_in(env, path).empty()) {
      if (prefix.empty()) read_into(env, path, name + "/", image);
      continue;
    }
    std::string content;
    if (rocksdb::ReadFileToString(&env, path, &content).ok()) {
      image.emplace(prefix + name, std::move(content));
    }
  }
}

}  // namespace

DiskImage read_image(rocksdb::Env& env, const std::string& directory) {
  DiskImage image;
  read_into(env, directory, "", image);
  return image;
}

void write_image(rocksdb::Env& env, const std::string& directory, const DiskImage& image) {
  REPRISE_CHECK(env.CreateDirIfMissing(directory).ok());
  std::set<std::string> made;
  for (const auto& [path, content] : image) {
    const auto slash = path.find('/');
    if (slash != std::string::npos && made.insert(path.substr(0, slash)).second) {
      REPRISE_CHECK(env.CreateDirIfMissing(directory + "/" + path.substr(0, slash)).ok());
    }
    REPRISE_CHECK(rocksdb::WriteStringToFile(&env, content, directory + "/" + path).ok());
  }
}

MemoryDisk::MemoryDisk()
    : memory_(rocksdb::NewMemEnv(rocksdb::Env::Default())),
      files_(std::make_shared<FaultyFileSystem>(memory_->GetFileSystem())),
      env_(make_env(files_)) {}

MemoryDisk::~MemoryDisk() = default;

}  // namespace reprise::test
