// bench --compare starts programs: only those of the source tree, and those that are named by absolute paths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cli/program_fixture.h"

namespace {

namespace fs = std::filesystem;
using octet::test::Cli;
using octet::test::Outcome;
using testing::HasSubstr;

class Rival : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    ASSERT_EQ(octet("models resnet20 -o m.onnx --input 1,8,8").code, 0);
    plant("");
  }
  // A script and an interpreter that leave a mark.
  void plant(const std::string& folder) const {
    fs::create_directories(folder_ + "/" + folder + "bench");
    fs::create_directories(folder_ + "/" + folder + "venv-peers-1/bin");
    write(folder + "bench/rival.py", "open('" + folder_ + "/mark', 'w')\n");
    write(folder + "venv-peers-1/bin/python", "#!/bin/sh\n: >'" + folder_ + "/mark'\n");
    fs::permissions(folder_ + "/" + folder + "venv-peers-1/bin/python", fs::perms::owner_all);
  }
  // The benchmark by `binary` with nothing in the environment but `settings`.
  Outcome compare(const std::string& binary, const std::string& settings) const {
    write("run.sh", "exec env -i " + settings + " '" + binary + "' bench m.onnx --runs 1 --compare onnxruntime\n");
    return sh("run.sh");
  }
  Outcome sh(const std::string& script) const {
    Outcome outcome;
    const int status = std::system(("cd '" + folder_ + "' && sh " + script + " >out 2>err").c_str());
    outcome.code = WEXITSTATUS(status);
    outcome.err = read("err");
    return outcome;
  }
};

TEST_F(Rival, NothingOfTheCurrentFolderRuns) {
  for (const std::string settings :
       {"", "HOME=", "HOME=.", "XDG_CACHE_HOME=.", "OCTET_CACHE=.", "OCTET_PEERS_PYTHON=venv-peers-1/bin/python"}) {
    const Outcome done = compare(program(), settings);
    EXPECT_EQ(done.code, 1) << settings;
    EXPECT_THAT(done.err, testing::AnyOf(HasSubstr("is not installed"), HasSubstr("must be an absolute path")))
        << settings;
    EXPECT_FALSE(exists("mark")) << settings;
  }
  EXPECT_EQ(compare(program(), "OCTET_PEERS_PYTHON='" + folder_ + "/venv-peers-1/bin/python'").code, 1);
  EXPECT_TRUE(exists("mark")) << "what is named by an absolute path runs; else this test cannot fail";
}

TEST_F(Rival, NothingAboveACopiedProgramRuns) {
  fs::create_directories(folder_ + "/above/bin");
  plant("above/");
  fs::copy_file(program(), folder_ + "/above/bin/octet");
  const std::string python = "OCTET_PEERS_PYTHON='" + folder_ + "/venv-peers-1/bin/python'";
  for (const std::string script : {"", " OCTET_RIVAL_SCRIPT=bench/rival.py"}) {
    const Outcome done = compare(folder_ + "/above/bin/octet", python + script);
    EXPECT_EQ(done.code, 1);
    EXPECT_FALSE(exists("mark")) << done.err;
  }
}

}  // namespace
