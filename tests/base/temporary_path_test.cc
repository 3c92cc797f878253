#include "base/temporary_path.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

class TemporaryPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / str("octet-temporary-", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_)) out.insert(entry.path().filename().string());
    return out;
  }
  void put(const std::string& name) const { std::ofstream(folder_ / name) << "left over"; }

  // A process that makes a temporary for `output`, says so, and waits to be ended by `signal`.
  template <typename Work>
  pid_t stopped_while(Work work, int signal) const {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      work([&] {
        EXPECT_EQ(::write(ready[1], "r", 1), 1);
        for (;;) ::pause();
      });
      ::_exit(0);
    }
    char word = 0;
    EXPECT_EQ(::read(ready[0], &word, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
    if (signal != 0) {
      ::kill(child, signal);
      ::waitpid(child, nullptr, 0);
    }
    return child;
  }

  fs::path folder_;
};

TEST_F(TemporaryPathTest, LeftOversOfTheSameOutputGo) {
  for (const char* name :
       {".a.tmp-1-0", ".a.tmp-77-12", ".a.tmp-00ff00ff00ff00ff", ".b.tmp-1-0", ".a.tmp-readme", "a.tmp-1-0"})
    put(name);
  fs::create_directories(folder_ / ".a.tmp-3-4" / "x");
  write_file_atomically(folder_ / "a", "new");
  EXPECT_EQ(names(), (std::set<std::string>{"a", ".b.tmp-1-0", ".a.tmp-readme", "a.tmp-1-0"}));
  remove_leftovers(folder_);
  EXPECT_EQ(names(), (std::set<std::string>{"a", ".a.tmp-readme", "a.tmp-1-0"}));
}

TEST_F(TemporaryPathTest, ALivingWriterKeepsItsFileAndADeadOneDoesNot) {
  const auto write_a = [&](auto wait) {
    TemporaryPath mine(folder_ / "a", TemporaryPath::Kind::kFile);
    wait();
  };
  const pid_t living = stopped_while(write_a, 0);
  ASSERT_EQ(names().size(), 1u);
  const std::string theirs = *names().begin();
  write_file_atomically(folder_ / "a", "by another process");
  remove_leftovers(folder_);
  EXPECT_EQ(names(), (std::set<std::string>{"a", theirs}));
  ::kill(living, SIGKILL);
  ::waitpid(living, nullptr, 0);
  write_file_atomically(folder_ / "a", "again");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(TemporaryPathTest, AFolderThatAKilledWriterLeftGoes) {
  const auto write_folder = [&](auto wait) {
    write_directory_atomically(folder_ / "epoch-3", [&](const fs::path& d) {
      write_file_atomically(d / "x", "1");
      wait();
    });
  };
  const pid_t living = stopped_while(write_folder, 0);
  remove_leftovers(folder_);
  EXPECT_EQ(names().size(), 1u) << "taken from a living writer";
  ::kill(living, SIGKILL);
  ::waitpid(living, nullptr, 0);
  EXPECT_EQ(names().size(), 1u);
  write_directory_atomically(folder_ / "epoch-3", [](const fs::path& d) { write_file_atomically(d / "x", "2"); });
  EXPECT_EQ(names(), std::set<std::string>{"epoch-3"});
}

TEST_F(TemporaryPathTest, ASignalTakesTheFileWithIt) {
  const auto write_a = [&](auto wait) {
    install_end_handler();
    TemporaryPath mine(folder_ / "a", TemporaryPath::Kind::kFile);
    wait();
  };
  stopped_while(write_a, SIGTERM);
  EXPECT_TRUE(names().empty());
  stopped_while(write_a, SIGKILL);
  EXPECT_EQ(names().size(), 1u) << "the test cannot fail";
}

TEST_F(TemporaryPathTest, LongNamesFit) {
  const std::string longest(255, 'n');
  write_file_atomically(folder_ / longest, "x");
  EXPECT_EQ(names(), std::set<std::string>{longest});
}

TEST_F(TemporaryPathTest, AFolderIsExchangedNotMovedAside) {
  fs::create_directory(folder_ / "r");
  put("r/old");
  TemporaryPath temporary(folder_ / "r", TemporaryPath::Kind::kFolder);
  std::ofstream(temporary.path() / "new") << "x";
  ASSERT_EQ(temporary.rename_to(folder_ / "r"), 0);
  EXPECT_TRUE(fs::exists(folder_ / "r" / "new"));
  EXPECT_FALSE(fs::exists(folder_ / "r" / "old"));
}

}  // namespace
}  // namespace octet
