#include "base/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "base/error.h"

namespace octet {
namespace {

TEST(FolderLock, DiesWithItsProcess) {
  const auto folder = std::filesystem::temp_directory_path() / str("octet-lock-", ::getpid());
  std::filesystem::create_directories(folder);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder);
    static_cast<void>(!::write(ready[1], "x", 1));
    ::pause();
  }
  char x = 0;
  ASSERT_EQ(::read(ready[0], &x, 1), 1);
  try {
    const FolderLock second(folder);
    ADD_FAILURE() << "two processes hold the folder";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    EXPECT_THAT(e.what(), testing::HasSubstr(str(folder.string(), ": process ", child, " is at work there")));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  auto lock = std::make_unique<FolderLock>(folder);
  EXPECT_THROW(FolderLock second(folder), UserError);
  lock.reset();
  const FolderLock again(folder);
  ::close(ready[0]);
  ::close(ready[1]);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace octet
