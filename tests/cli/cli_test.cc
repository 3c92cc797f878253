// The program as people and scripts meet it: exit codes, one line of error, what goes to which stream. Runs bin/octet
// of the build (or what OCTET_BIN names).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/program_fixture.h"

namespace {

namespace fs = std::filesystem;
using octet::test::Cli;
using octet::test::Outcome;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Cli, HelpListsTheCommands) {
  const Outcome help = octet("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* command : {"train", "models", "spec", "inspect"}) EXPECT_THAT(help.out, HasSubstr(command));
  const Outcome nothing = octet("");
  EXPECT_EQ(nothing.code, 2);
  EXPECT_EQ(nothing.out, "");
  EXPECT_EQ(nothing.err, help.out);
  EXPECT_THAT(octet("--version").out, StartsWith("octet "));
}

// Every command's --help explains it and shows a line to copy.
TEST_F(Cli, EveryHelpTeaches) {
  const std::string list = octet("--help").out;
  size_t checked = 0;
  for (size_t begin = list.find("commands:\n") + 10; list[begin] == ' ';) {
    const size_t end = list.find('\n', begin);
    const std::string line = list.substr(begin, end - begin);
    begin = end + 1;
    if (line.find("(not in this build)") != std::string::npos) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    const Outcome help = octet(name + " --help");
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_THAT(help.out, HasSubstr("Example")) << name;
    EXPECT_THAT(help.out, HasSubstr("\n  octet " + name)) << name;
    EXPECT_EQ(octet("help " + name).out, help.out);
    ++checked;
  }
  EXPECT_GE(checked, 3u);
}

TEST_F(Cli, UsageErrorsAreOneLineAndExitCode2) {
  const struct {
    const char *arguments, *message;
  } cases[] = {
      {"modles", "octet: unknown command 'modles'; did you mean 'models'?\n"},
      {"models --jsn x", "octet: models: unknown option '--jsn'; did you mean '--json'?\n"},
      {"models resnet20 extra", "octet: models: unexpected argument 'extra'; see 'octet models --help'\n"},
      {"spec -e missing.yaml", "octet: missing.yaml: cannot be opened: No such file or directory\n"},
      {"spec --set train.epoch=3",
       "octet: --set train.epoch=3: unknown key 'epoch' in 'train'; did you mean 'epochs'?\n"},
      {"spec trian", "octet: the experiment file has no section 'trian'; did you mean 'train'?\n"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = octet(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.err, message);
    EXPECT_EQ(outcome.out, "") << arguments;
  }
}

TEST_F(Cli, SpecChecksAFile) {
  write("good.yaml", "train: {epochs: 4}\n");
  const Outcome good = octet("spec -e good.yaml --set train.seed=9");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("epochs: 4"));
  EXPECT_THAT(good.out, HasSubstr("seed: 9"));
  write("resolved.yaml", good.out);
  EXPECT_EQ(octet("spec -e resolved.yaml").out, good.out);

  write("bad.yaml", "train:\n  epochs: 4\n  optimizer: {lr: fast}\n");
  const Outcome bad = octet("spec -e bad.yaml");
  EXPECT_EQ(bad.code, 2);
  EXPECT_EQ(bad.err, "octet: bad.yaml:3:19: 'train.optimizer.lr' takes a number, found 'fast'\n");
}

TEST_F(Cli, LostOutputIsAnError) {
  const Outcome full = octet("spec --markdown >/dev/full");
  EXPECT_EQ(full.code, 1);
  EXPECT_EQ(full.err, "octet: standard output cannot be written\n");
}

TEST_F(Cli, ABuildWithoutTrainingSaysSo) {
  if (octet("--version").out.find("without training") == std::string::npos) GTEST_SKIP() << "this build can train";
  const Outcome train = octet("train classification -e spec.yaml -r results --any-flag");
  EXPECT_EQ(train.code, 2);
  EXPECT_EQ(train.err, "octet: 'train' is missing: this build has no training; configure it with -DOCTET_TRAIN=ON\n");
}

// LibTorch takes longer to load than most commands take, so only the program of those that need it has it.
TEST_F(Cli, TrainingIsAProgramOfItsOwn) {
  if (octet("--version").out.find("without training") != std::string::npos) GTEST_SKIP() << "this build cannot train";
  EXPECT_EQ(std::system(("ldd '" + program() + "' | grep -q libtorch").c_str()), 256) << "octet loads LibTorch";
  // What single files need is loaded with them: it would take longer to load than most commands do.
  EXPECT_EQ(std::system(("ldd '" + program() + "' | grep -q -E 'libhdf5|libcurl|libcrypto'").c_str()), 256);
  for (const char* command : {"train", "calibrate", "quantize", "diagnose", "verify", "evaluate", "infer"})
    EXPECT_THAT(octet(std::string(command) + " --help").out, HasSubstr(std::string("octet ") + command));
  EXPECT_EQ(octet("help train").out, octet("train --help").out);

  fs::copy_file(program(), folder_ + "/alone");
  const auto alone = [&](const std::string& arguments) {
    EXPECT_EQ(std::system(("'" + folder_ + "/alone' " + arguments + " 2>'" + folder_ + "/err'").c_str()), 2 << 8);
    std::ifstream in(folder_ + "/err");
    return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  };
  const std::string install =
      "; that takes LibTorch: install the package octet-training, or keep octet_training beside octet\n";
  EXPECT_EQ(alone("train --data '" + folder_ + "' -r y"), "octet: 'octet train' learns weights" + install);
  EXPECT_EQ(alone("diagnose -m '" + folder_ + "/alone'"),
            "octet: 'octet diagnose' runs a network with one quantizer at a time" + install);
  // It answers mistakes in what is to be trained by itself.
  EXPECT_EQ(alone("train --data . --epoch 3 -r y"),
            "octet: train: unknown option '--epoch'; did you mean '--epochs'?\n");
  EXPECT_EQ(alone("train"), "octet: train: --results_dir is required; see 'octet train --help'\n");
  EXPECT_THAT(alone("train -e missing.yaml -r y"), HasSubstr("missing.yaml"));
  write("wrong.yaml", "train:\n  epoch: 3\n");
  EXPECT_THAT(alone("train -e '" + folder_ + "/wrong.yaml' -r y"), HasSubstr("wrong.yaml:2"));
}

// libgomp reads its environment when it is loaded, so it must be there before octet_training starts.
TEST_F(Cli, ThreadsOfTrainingDoNotSpinForLong) {
  if (octet("--version").out.find("without training") != std::string::npos) GTEST_SKIP() << "this build cannot train";
  fs::copy_file(program(), folder_ + "/octet");
  write("octet_training", "#!/bin/sh\necho \"$GOMP_SPINCOUNT/$OMP_WAIT_POLICY\"\n");
  fs::permissions(folder_ + "/octet_training", fs::perms::owner_all);
  const auto environment = [&](const std::string& before) {
    const std::string line = "cd '" + folder_ + "' && env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY " + before;
    EXPECT_EQ(std::system((line + " ./octet train --data . -r results > out").c_str()), 0);
    std::ifstream in(folder_ + "/out");
    std::string text;
    std::getline(in, text);
    return text;
  };
  const std::string ours = environment("");
  EXPECT_THAT(ours, testing::MatchesRegex("[1-9][0-9]*/"));
  EXPECT_EQ(environment("GOMP_SPINCOUNT=77"), "77/");
  EXPECT_EQ(environment("OMP_WAIT_POLICY=active"), "/active");

  // Started without octet, it starts itself once more; libgomp shows what it has read at each load. How often it looks
  // in 0.8 ms is measured anew, so another number comes out.
  const std::string direct =
      "cd '" + folder_ + "' && env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose '" +
      fs::path(program()).replace_filename("octet_training").string() +
      "' --version 2>&1 >/dev/null | sed -n \"s/.*GOMP_SPINCOUNT = '\\([0-9]*\\)'.*/\\1/p\" >loads";
  ASSERT_EQ(std::system(direct.c_str()), 0) << direct;
  std::ifstream loads(folder_ + "/loads");
  double first = 0, second = 0, more = 0;
  EXPECT_TRUE(loads >> first >> second);
  EXPECT_FALSE(loads >> more);
  EXPECT_NE(first, second);
  EXPECT_GT(second, std::stod(ours) / 3);
  EXPECT_LT(second, std::stod(ours) * 3);
}

TEST_F(Cli, ModelsAreListedAndWritten) {
  EXPECT_THAT(octet("models").out, HasSubstr("resnet20"));
  EXPECT_THAT(octet("models --json -").out, HasSubstr("\"name\": \"resnet20\""));

  const Outcome written = octet("models resnet20 -o net.onnx --num_classes 7 --input 1,28,28");
  ASSERT_EQ(written.code, 0) << written.err;
  const Outcome table = octet("inspect -m net.onnx");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("[?, 1, 28, 28]"));
  EXPECT_THAT(octet("inspect -m net.onnx --json -").out, HasSubstr("\"parameters\""));

  // Never overwritten unasked; the same seed gives the same bytes.
  const Outcome again = octet("models resnet20 -o net.onnx");
  EXPECT_EQ(again.code, 2);
  EXPECT_EQ(again.err, "octet: net.onnx: exists already; name another output or give --force to replace it\n");
  ASSERT_EQ(octet("models resnet20 -o other.onnx --num_classes 7 --input 1,28,28").code, 0);
  std::ifstream a(folder_ + "/net.onnx", std::ios::binary), b(folder_ + "/other.onnx", std::ios::binary);
  EXPECT_TRUE(std::equal(std::istreambuf_iterator<char>(a), std::istreambuf_iterator<char>(),
                         std::istreambuf_iterator<char>(b), std::istreambuf_iterator<char>()));
  EXPECT_EQ(octet("models resnet20 -o net.onnx --force").code, 0);
}

TEST_F(Cli, BadModelsLeaveNothingBehind) {
  const Outcome unknown = octet("models resnet21 -o net.onnx");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("resnet20"));
  EXPECT_FALSE(exists("net.onnx"));
  EXPECT_EQ(octet("models resnet20 -o nowhere/net.onnx").code, 2);
  EXPECT_EQ(octet("models resnet20 -o net.onnx --input 1,28").code, 2);
  EXPECT_EQ(octet("models -o net.onnx").code, 2);
  EXPECT_EQ(octet("models resnet20 -o net.onnx --num_classes 0").code, 2);
  EXPECT_EQ(octet("models resnet20 -o net.onnx --num_classes ten").code, 2);
  EXPECT_FALSE(exists("net.onnx"));

  EXPECT_EQ(octet("inspect -m missing.onnx").err, "octet: -m missing.onnx: there is no such file\n");
  write("broken.onnx", "this is no model");
  const Outcome broken = octet("inspect -m broken.onnx");
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.err, StartsWith("octet: broken.onnx"));
  EXPECT_EQ(broken.out, "");
}

}  // namespace
