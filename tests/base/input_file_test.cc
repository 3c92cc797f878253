#include "base/input_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/output_guard.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

class InputFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / str("octet-input-", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    pipe_ = folder_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe_.c_str(), 0600), 0);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_, pipe_;
};

TEST_F(InputFileTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  for (const fs::path& path : {pipe_, fs::path("/dev/zero"), folder_}) {
    EXPECT_THROW(read_file(path), UserError) << path;
    EXPECT_THROW(MappedFile{path}, UserError) << path;
  }
  EXPECT_THROW(read_file_or_pipe("/dev/zero"), UserError);
}

TEST_F(InputFileTest, FilesOfAnySizeAreRead) {
  for (const size_t size : {0, 1, 4095, 4096, 4097, 1 << 20}) {
    std::string bytes(size, 'x');
    if (size > 2) bytes[size - 2] = '\0';
    write_file_atomically(folder_ / "f", bytes);
    EXPECT_EQ(read_file(folder_ / "f"), bytes);
    EXPECT_EQ(read_file_or_pipe(folder_ / "f"), bytes);
  }
  EXPECT_NE(read_file("/proc/self/status"), "") << "a file whose size is said to be 0";
}

TEST_F(InputFileTest, PartsAreReadFromWhereTheyLie) {
  write_file_atomically(folder_ / "f", "0123456789");
  const InputFile file(folder_ / "f");
  std::string part(4, '?');
  EXPECT_EQ(file.read_at(3, part), 4u);
  EXPECT_EQ(part, "3456");
  EXPECT_EQ(file.read_at(8, part), 2u);
  EXPECT_EQ(part.substr(0, 2), "89");
  EXPECT_EQ(file.read_at(20, part), 0u);
}

TEST_F(InputFileTest, ATextComesFromAPipe) {
  EXPECT_EQ(read_file_or_pipe("/dev/null"), "");
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // comes later than the reader
    std::ofstream out(pipe_);
    out << "first " << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    out << "second";
  });
  EXPECT_EQ(read_file_or_pipe(pipe_), "first second");
  writer.join();
}

TEST_F(InputFileTest, APipeWithoutAWriterIsNotWaitedForLong) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(read_file_or_pipe(pipe_), UserError);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

// In a child process, because what is guarded is the process's own.
TEST_F(InputFileTest, AGuardedOutputIsNoInput) {
  write_file_atomically(folder_ / "model", "x");
  fs::create_symlink("model", folder_ / "link");
  fs::create_hard_link(folder_ / "model", folder_ / "twin");
  const pid_t child = ::fork();
  if (child == 0) {
    int wrong = 0;
    const auto refuses = [&](auto work) {
      try {
        work();
        ++wrong;
      } catch (const UserError& e) {
        wrong += e.code() != ExitCode::kUsage;
      }
    };
    guard_output(folder_ / "link", "-o");
    guard_output(folder_ / "link", "-o");
    guard_output(folder_ / "new", "--trace");
    guard_output("/dev/null", "--trace");
    guard_output("/dev/null", "--json");
    for (const char* name : {"model", "link", "twin", "../link"}) {
      const fs::path path = folder_ / (name[0] == '.' ? fs::path("..") / folder_.filename() / "link" : fs::path(name));
      refuses([&] { read_file(path); });
      refuses([&] { read_file_or_pipe(path); });
      refuses([&] { MappedFile{path}; });
      refuses([&] { require_no_output(path); });
    }
    refuses([&] { guard_output(folder_ / "model", "--json"); });
    refuses([&] { guard_output(folder_ / "." / "new", "--json"); });
    // What was an output's file and is no longer under its name, as a removed file's number goes to another.
    write_file_atomically(folder_ / "before", "x");
    guard_output(folder_ / "before", "-r");
    fs::rename(folder_ / "before", folder_ / "after");
    require_no_output(folder_ / "after");
    ::_exit(wrong);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(folder_ / "model"), "x");
}

}  // namespace
}  // namespace octet
