// Runs bin/octet of the build (or what OCTET_BIN names) in a folder of the test's own.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace octet::test {

struct Outcome {
  int code = -1;
  std::string out, err;
};

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "octet_cli_test_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_TRUE(std::filesystem::exists(program())) << program() << ": build the target octet_cli, or set OCTET_BIN";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static bool can_train() {
    return std::filesystem::exists(std::filesystem::path(program()).parent_path() / "octet_training");
  }
  static std::string program() {
    const char* named = std::getenv("OCTET_BIN");
    return named ? named : OCTET_BINARY_DIR "/bin/octet";
  }

  // `arguments` as typed in a shell. Files are relative to the test's own folder.
  Outcome octet(const std::string& arguments) const {
    const std::string error_file = folder_ + "/.stderr";
    const std::string line = "cd '" + folder_ + "' && '" + program() + "' " + arguments + " 2>'" + error_file + "'";
    Outcome outcome;
    FILE* pipe = popen(line.c_str(), "r");
    if (!pipe) return outcome;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.out.append(buffer, n);
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::ifstream in(error_file);
    outcome.err.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    return outcome;
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + "/" + name) << text; }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ + "/" + name); }

  std::string folder_;
};

}  // namespace octet::test
