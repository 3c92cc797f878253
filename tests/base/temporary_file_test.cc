// Several processes make the same temporary file at the same moment, as the ranks of a training do.
#include "base/temporary_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/files.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFile, StaysWhileOthersOfItsNameAreMade) {
  std::vector<std::unique_ptr<TemporaryFile>> files;
  for (const char* bytes : {"one", "two", "three"})
    files.push_back(std::make_unique<TemporaryFile>("network.onnx", bytes));
  EXPECT_EQ(read_file(files[0]->path()), "one");
  EXPECT_EQ(read_file(files[1]->path()), "two");
  EXPECT_EQ(read_file(files[2]->path()), "three");
  EXPECT_EQ(files[0]->path().filename(), "network.onnx");
}

TEST(TemporaryFile, GoesWithItsObject) {
  std::optional<TemporaryFile> file(std::in_place, "network.onnx", "one");
  const fs::path path = file->path();
  EXPECT_TRUE(fs::exists(path));
  file.reset();
  EXPECT_FALSE(fs::exists(path.parent_path()));
}

TEST(TemporaryFile, ProcessesDoNotTakeEachOthers) {
  constexpr int kProcesses = 4, kTimes = 200;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int lost = 0;
      for (int i = 0; i < kTimes; ++i) {
        const std::string own = std::to_string(p) + "/" + std::to_string(i);
        try {
          const TemporaryFile file("ranks.onnx", own);
          lost += read_file(file.path()) != own;
        } catch (const std::exception&) {
          ++lost;
        }
      }
      ::_exit(lost == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "a process lost its file to another";
  }
}

}  // namespace
}  // namespace octet
