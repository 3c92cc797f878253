// What stands where an output is to go: devices, pipes, links, folders, and the inputs themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "cli/program_fixture.h"

namespace {

namespace fs = std::filesystem;
using octet::test::Cli;
using octet::test::Outcome;
using testing::HasSubstr;
using testing::StartsWith;

class OutputFiles : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    ASSERT_EQ(octet("models resnet20 -o m.onnx --input 1,8,8").code, 0);
    original_ = read("m.onnx");
  }
  bool untouched() const { return read("m.onnx") == original_; }
  // Hidden names are those of outputs in work.
  int hidden_files() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      count += name[0] == '.' && name != ".stderr";
    }
    return count;
  }

  std::string original_;
};

// A device of the test's own: the machine's /dev/null is not to be risked.
TEST_F(OutputFiles, ADeviceStaysADevice) {
  const std::string node = folder_ + "/null";
  if (::mknod(node.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) GTEST_SKIP() << "a device node needs root";
  for (const char* const command : {"compile m.onnx -o null", "models resnet20 -o null", "inspect m.onnx --json null",
                                    "export --data_type fp32 -m m.onnx -o null --force"}) {
    const Outcome done = octet(command);
    EXPECT_EQ(done.code, 0) << command << done.err;
    struct stat info {};
    ASSERT_EQ(::lstat(node.c_str(), &info), 0);
    EXPECT_TRUE(S_ISCHR(info.st_mode)) << command;
  }
  EXPECT_EQ(hidden_files(), 0);
}

TEST_F(OutputFiles, APipeGetsTheBytes) {
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0666), 0);
  std::string got;
  std::thread reader([&] { got = read("pipe"); });
  EXPECT_EQ(octet("models resnet20 -o pipe --input 1,8,8").code, 0);
  reader.join();
  EXPECT_EQ(got, original_);
  EXPECT_TRUE(fs::is_fifo(folder_ + "/pipe"));
}

TEST_F(OutputFiles, StandardOutputHasANameToo) {
  const std::string json = octet("inspect m.onnx --json -").out;
  EXPECT_THAT(json, HasSubstr("\"parameters\""));
  EXPECT_EQ(octet("inspect m.onnx --json /dev/stdout").out, json);
  EXPECT_EQ(octet("inspect m.onnx --json /dev/stdout >to.json").code, 0);
  EXPECT_EQ(read("to.json"), json);
  EXPECT_EQ(octet("inspect m.onnx --json /dev/fd/5 5>five.json").code, 0);
  EXPECT_EQ(read("five.json"), json);
}

TEST_F(OutputFiles, ALinkStaysALink) {
  fs::create_directory(folder_ + "/kept");
  write("kept/target.octet", "old");
  fs::create_symlink("kept/target.octet", folder_ + "/second.octet");
  fs::create_symlink("second.octet", folder_ + "/first.octet");
  fs::create_symlink("kept/new.octet", folder_ + "/dangling.octet");
  EXPECT_EQ(octet("compile m.onnx -o first.octet").code, 2) << "replaced unasked";
  EXPECT_EQ(read("kept/target.octet"), "old");
  ASSERT_EQ(octet("compile m.onnx -o first.octet --force").code, 0);
  ASSERT_EQ(octet("compile m.onnx -o dangling.octet").code, 0);
  for (const char* const link : {"first.octet", "second.octet", "dangling.octet"})
    EXPECT_TRUE(fs::is_symlink(folder_ + "/" + link)) << link;
  EXPECT_THAT(read("kept/target.octet"), StartsWith("OCTET"));
  EXPECT_EQ(read("kept/new.octet"), read("kept/target.octet"));

  fs::create_symlink("b.json", folder_ + "/a.json");
  fs::create_symlink("a.json", folder_ + "/b.json");
  EXPECT_THAT(octet("inspect m.onnx --json a.json").err, HasSubstr("circle"));
}

TEST_F(OutputFiles, AnOutputThatIsTheInputIsRefused) {
  fs::create_symlink("m.onnx", folder_ + "/soft.onnx");
  fs::create_hard_link(folder_ + "/m.onnx", folder_ + "/hard.onnx");
  fs::create_directory(folder_ + "/sub");
  write("spec.yaml", "train: {epochs: 1}\n");
  for (const std::string output : {"m.onnx", "./sub/../m.onnx", "soft.onnx", "hard.onnx"})
    for (const std::string command : {"compile m.onnx --force -o ", "export --data_type fp32 -m m.onnx --force -o ",
                                      "inspect m.onnx --json ", "bench m.onnx --runs 1 --json ",
                                      "bench m.onnx --runs 1 --trace ", "bench hard.onnx --baseline m.onnx --json "}) {
      const Outcome done = octet(command + output);
      EXPECT_EQ(done.code, 2) << command << output;
      EXPECT_THAT(done.err, HasSubstr("same file as the input")) << command << output;
      EXPECT_EQ(done.out, "") << command << output;
      ASSERT_TRUE(untouched()) << command << output;
    }
  const std::string spec = read("spec.yaml");
  EXPECT_EQ(octet("export -e spec.yaml -m m.onnx --force -o spec.yaml").code, 2);
  EXPECT_EQ(octet("evaluate -e spec.yaml -m m.onnx --json spec.yaml").code, 2);
  EXPECT_EQ(read("spec.yaml"), spec);
  const Outcome twice = octet("bench m.onnx --runs 1 --json x.json --trace ./x.json");
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("also the output of --json"));
  EXPECT_FALSE(exists("x.json"));
}

TEST_F(OutputFiles, TheModelThatATrainingStartsFromIsKept) {
  if (octet("--version").out.find("without training") != std::string::npos) GTEST_SKIP() << "this build cannot train";
  fs::create_directories(folder_ + "/results/checkpoints/best");
  fs::copy_file(folder_ + "/m.onnx", folder_ + "/results/model.onnx");
  fs::copy_file(folder_ + "/m.onnx", folder_ + "/results/checkpoints/best/model.onnx");
  write("spec.yaml", "train: {epochs: 1}\n");
  for (const std::string model : {"results/model.onnx", "results/checkpoints/best/model.onnx"}) {
    const Outcome done = octet("train -e spec.yaml -r results --force --stage control -m " + model);
    EXPECT_EQ(done.code, 2) << model << done.err;
    EXPECT_EQ(read(model), original_) << model;
  }
}

TEST_F(OutputFiles, WhatCannotBeWrittenIsRefusedBeforeAnyWork) {
  fs::create_directory(folder_ + "/folder");
  for (const std::string command :
       {"compile m.onnx --force -o ", "export --data_type fp32 -m m.onnx --force -o ", "inspect m.onnx --json ",
        "bench m.onnx --runs 1 --json ", "bench m.onnx --runs 1 --trace "})
    for (const std::string output : {"folder", "missing/file"}) {
      const Outcome done = octet(command + output);
      EXPECT_EQ(done.code, 2) << command << output;
      EXPECT_EQ(done.out, "") << command << output;
    }
  EXPECT_TRUE(fs::is_empty(folder_ + "/folder"));
}

TEST_F(OutputFiles, AnEngineIsNotNamedLikeAModel) {
  const Outcome engine = octet("compile m.onnx -o n.onnx");
  EXPECT_EQ(engine.code, 2);
  EXPECT_THAT(engine.err, HasSubstr("let it end in .octet"));
  EXPECT_EQ(octet("export --data_type fp32 -m m.onnx -o n.octet").code, 2);
  EXPECT_FALSE(exists("n.onnx") || exists("n.octet"));
  EXPECT_EQ(octet("compile m.onnx -o engine").code, 0);
}

TEST_F(OutputFiles, LeftOversOfKilledRunsGoAndRefuseNobody) {
  for (const char* const name : {".a.octet.tmp-1-0", ".a.octet.tmp-1-1", ".a.octet.tmp-0123456789abcdef"})
    write(name, "x");
  write(".b.octet.tmp-1-0", "of another output");
  write(".a.octet.tmp-notes", "somebody's");
  ASSERT_EQ(octet("compile m.onnx -o a.octet").code, 0);
  EXPECT_EQ(hidden_files(), 2);
  EXPECT_TRUE(exists(".b.octet.tmp-1-0") && exists(".a.octet.tmp-notes"));
}

TEST_F(OutputFiles, InputsThatAreNoFilesAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0666), 0);
  for (const char* const command : {"inspect pipe", "compile pipe -o x.octet", "bench pipe",
                                    "evaluate -e spec.yaml -m pipe", "inspect /dev/zero"}) {
    write("spec.yaml", "train: {epochs: 1}\n");
    const Outcome done = octet(command);
    EXPECT_EQ(done.code, 2) << command;
    EXPECT_THAT(done.err, HasSubstr("expected a file")) << command;
  }
  EXPECT_EQ(octet("spec -e /dev/zero").code, 2);
}

TEST_F(OutputFiles, ASpecMayComeFromAPipe) {
  write("spec.yaml", "train: {epochs: 7}\n");
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0666), 0);
  std::thread writer([&] { write("pipe", "train: {epochs: 7}\n"); });
  EXPECT_THAT(octet("spec -e pipe").out, HasSubstr("epochs: 7"));
  writer.join();
  EXPECT_THAT(octet("spec -e /dev/stdin <spec.yaml").out, HasSubstr("epochs: 7"));
  EXPECT_EQ(octet("spec -e /dev/null").code, 0);
}

}  // namespace
