// A test with a directory of its own, removed at its end.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"

namespace octet::report {

class DirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 str("octet-report-", ::getpid(), "-", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_;
};

}  // namespace octet::report
