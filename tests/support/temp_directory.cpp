#include "support/temp_directory.h"

#include <cstdlib>
#include <filesystem>

#include "base/check.h"

namespace reprise::test {

TempDirectory::TempDirectory()
    : path_((std::filesystem::temp_directory_path() / "reprise-XXXXXX").string()) {
  REPRISE_CHECK(::mkdtemp(path_.data()) != nullptr);
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace reprise::test
