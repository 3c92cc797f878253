#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/error.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / str("octet-files-", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  int entries() const { return static_cast<int>(std::distance(fs::directory_iterator(folder_), {})); }
  fs::path folder_;
};

TEST_F(FilesTest, AtomicWriteReplacesTheWholeFile) {
  write_file_atomically(folder_ / "a", "first");
  write_file_atomically(folder_ / "a", "second");
  EXPECT_EQ(read_file(folder_ / "a"), "second");
  EXPECT_EQ(entries(), 1);
}

TEST_F(FilesTest, FailedWriteSaysWhereAndLeavesNothing) {
  try {
    write_file_atomically(folder_ / "missing" / "a", "x");
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("missing/a: cannot be created: No such file"), std::string::npos) << e.what();
    EXPECT_EQ(e.code(), ExitCode::kFailed);
  }
  EXPECT_EQ(entries(), 0);
}

// A full disk, as the limit on the size of a file makes one: writes past it fail with EFBIG.
TEST_F(FilesTest, FullDiskLeavesTheOldFileAndNoTemporary) {
  write_file_atomically(folder_ / "a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file_atomically(folder_ / "a", std::string(100000, 'x'));
    } catch (const UserError&) {
      ::_exit(7);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(entries(), 1);
}

TEST_F(FilesTest, DirectoryAppearsWholeOrNotAtAll) {
  const fs::path target = folder_ / "checkpoint";
  write_directory_atomically(target, [](const fs::path& d) { write_file_atomically(d / "x", "1"); });
  EXPECT_EQ(read_file(target / "x"), "1");
  EXPECT_THROW(write_directory_atomically(target,
                                          [](const fs::path& d) {
                                            write_file_atomically(d / "x", "2");
                                            fail("no more");
                                          }),
               UserError);
  EXPECT_EQ(read_file(target / "x"), "1");
  write_directory_atomically(target, [](const fs::path& d) { write_file_atomically(d / "y", "3"); });
  EXPECT_FALSE(fs::exists(target / "x"));
  EXPECT_EQ(entries(), 1);
}

TEST_F(FilesTest, OutputsAreNotOverwrittenUnasked) {
  write_file_atomically(folder_ / "a", "old");
  EXPECT_NO_THROW(require_writable_output(folder_ / "a", true));
  EXPECT_NO_THROW(require_writable_output(folder_ / "b", false));
  try {
    require_writable_output(folder_ / "a", false);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(e.what()).find("--force"), std::string::npos);
  }
}

TEST_F(FilesTest, MapsFilesOfAnySize) {
  write_file_atomically(folder_ / "empty", "");
  EXPECT_EQ(MappedFile(folder_ / "empty").bytes().size(), 0u);
  write_file_atomically(folder_ / "abc", "abc");
  const MappedFile mapped(folder_ / "abc");
  ASSERT_EQ(mapped.bytes().size(), 3u);
  EXPECT_EQ(static_cast<char>(mapped.bytes()[1]), 'b');
  EXPECT_THROW(MappedFile(folder_ / "nothing"), UserError);
  EXPECT_THROW(MappedFile{folder_}, UserError);
}

TEST_F(FilesTest, ResultsDirectoryMustBeADirectoryThatTakesFiles) {
  make_results_directory(folder_ / "r" / "s");
  EXPECT_TRUE(fs::is_directory(folder_ / "r" / "s"));
  EXPECT_TRUE(fs::is_empty(folder_ / "r" / "s"));
  write_file_atomically(folder_ / "file", "x");
  EXPECT_THROW(make_results_directory(folder_ / "file"), UserError);
  EXPECT_THROW(make_results_directory("/proc/octet-results"), UserError);
}

TEST(Hash, IsXxh3AndDependsOnSeed) {
  EXPECT_EQ(hex64(hash64("")), "2d06800538d394c2");  // XXH3_64bits of the empty string, from the specification
  EXPECT_NE(hash64("a"), hash64("b"));
  EXPECT_NE(hash64("a", 1), hash64("a", 2));
}

}  // namespace
}  // namespace octet
