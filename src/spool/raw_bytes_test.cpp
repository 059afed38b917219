#include "spool/raw_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "base/unique_fd.h"
#include "spool/new_files.h"
#include "support/files.h"
#include "support/temp_directory.h"

namespace reprise::spool {
namespace {

class RawBytes : public testing::Test {
 protected:
  UniqueFd open(const std::string& name, int flags) {
    return UniqueFd(::open((directory_ / name).c_str(), flags | O_CLOEXEC, 0600));
  }
  int same(const std::string& one, const std::string& other) {
    test::write_file(directory_ / "one", one);
    test::write_file(directory_ / "other", other);
    return same_bytes(open("one", O_RDONLY).get(), open("other", O_RDONLY).get());
  }

  test::TempDirectory directory_;
};

TEST_F(RawBytes, ACopyHasAllBytes) {
  for (const std::size_t size : {0, 1, 262144, 1000001}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
    test::write_file(directory_ / "from", bytes);
    ASSERT_EQ(
        copy_bytes(open("from", O_RDONLY).get(), open("to", O_WRONLY | O_CREAT | O_TRUNC).get()),
        0);
    EXPECT_TRUE(test::read_file(directory_ / "to") == bytes) << size;
  }
}

TEST_F(RawBytes, ACopyTellsItsTrouble) {
  test::write_file(directory_ / "from", "x");
  EXPECT_EQ(copy_bytes(open("from", O_RDONLY).get(), open("from", O_RDONLY).get()), EBADF);
}

TEST_F(RawBytes, AreTheSameOnlyToTheLastByte) {
  const std::string piece(300'000, 'x');
  EXPECT_EQ(same("", ""), 1);
  EXPECT_EQ(same(piece, piece), 1);
  EXPECT_EQ(same(piece, piece + "y"), 0);
  EXPECT_EQ(same(piece + "y", piece), 0);
  EXPECT_EQ(same(piece + "x", piece + "y"), 0);
}

TEST_F(RawBytes, ALinkNeverTakesANameThatIsTaken) {
  const UniqueFd directory(::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const auto name_it : {&link_to_free_name, &rename_to_free_name}) {
    test::write_file(directory_ / "new", "new");
    test::write_file(directory_ / "taken", "old");
    EXPECT_EQ(name_it(directory.get(), "new", "taken"), EEXIST);
    EXPECT_EQ(test::read_file(directory_ / "taken"), "old");
    EXPECT_EQ(name_it(directory.get(), "new", "free"), 0);
    EXPECT_EQ(test::read_file(directory_ / "free"), "new");
    EXPECT_EQ(::unlinkat(directory.get(), "new", 0), -1);
    EXPECT_EQ(::unlinkat(directory.get(), "free", 0), 0);
  }
}

}  // namespace
}  // namespace reprise::spool
