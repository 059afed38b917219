// Files on the real disk, as a test wants them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Regular files below it, however deep, in order.
inline std::vector<std::filesystem::path> files_below(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

inline bool any_file_holds(const std::filesystem::path& directory, std::string_view text) {
  for (const auto& path : files_below(directory)) {
    if (read_file(path).find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace reprise::test
