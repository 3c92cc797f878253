// --json -: standard output is JSON and nothing else, in every command that has the flag.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/network_files.h"

namespace {

using octet::test::NetworkFiles;
using octet::test::Outcome;

using JsonOutput = NetworkFiles;

TEST_F(JsonOutput, IsAloneOnStandardOutput) {
  write_images(32);
  expect(0, "models resnet20 -o m.onnx --num_classes 3");
  expect(0, "calibrate -e spec.yaml -m m.onnx -o q.onnx");
  expect(0, "compile q.onnx -o q.octet --profiles 1,4");
  const std::map<std::string, std::string> lines = {{"models", ""},
                                                    {"inspect", "q.octet"},
                                                    {"lint", "q.onnx"},
                                                    {"bench", "q.octet --runs 2"},
                                                    {"infer", "-m q.octet data/a/0.ppm data/b/0.ppm -e spec.yaml"},
                                                    {"evaluate", "-e spec.yaml -m q.octet"},
                                                    {"verify", "-e spec.yaml -m q.onnx --engine_file q.octet"},
                                                    {"compare", "m.onnx q.octet --images data"},
                                                    {"sensitivity", "-e spec.yaml -m q.onnx"},
                                                    {"diagnose", "-e spec.yaml -m q.onnx"},
                                                    {"calibrate", "-e spec.yaml -m m.onnx -o again.onnx"},
                                                    {"quantize", "-m m.onnx --images data -o quantized.onnx"},
                                                    {"prune", "-m m.onnx -o pruned.onnx -pth 0.2"}};
  for (const auto& [command, arguments] : lines) {
    const Outcome outcome = octet(command + " " + arguments + " --json -");
    EXPECT_EQ(outcome.code, 0) << command << ": " << outcome.err;
    EXPECT_TRUE(nlohmann::json::accept(outcome.out)) << command << ": " << outcome.out;
    if (command == "models" || command == "inspect") continue;  // which do no work
    const nlohmann::json report = nlohmann::json::parse(outcome.out, nullptr, false);
    EXPECT_EQ(report.value("command", ""), "octet " + command + " " + arguments + " --json -");
  }
  // Also where the work turns out to take LibTorch, and another program goes on with it.
  const Outcome elsewhere = octet("evaluate -e spec.yaml -m q.onnx --json -");
  EXPECT_EQ(elsewhere.code, 0) << elsewhere.err;
  EXPECT_TRUE(nlohmann::json::accept(elsewhere.out)) << elsewhere.out;
  // Names of files may be any bytes.
  std::filesystem::copy_file(folder_ + "/data/a/0.ppm", folder_ + "/caf\xe9.ppm");
  const Outcome latin = octet("infer -m q.octet caf\xe9.ppm -e spec.yaml --json -");
  EXPECT_EQ(latin.code, 0) << latin.err;
  EXPECT_TRUE(nlohmann::json::accept(latin.out)) << latin.out;
  // None is forgotten.
  std::istringstream help(octet("--help").out);
  std::set<std::string> with_json;
  for (std::string line; std::getline(help, line);) {
    if (line.rfind("  ", 0) != 0 || line.rfind("  octet", 0) == 0 || line.rfind("   ", 0) == 0) continue;
    const std::string command = line.substr(2, line.find(' ', 2) - 2);
    if (octet(command + " --help").out.find("\n  --json ") != std::string::npos) with_json.insert(command);
  }
  EXPECT_GE(with_json.size(), lines.size());
  for (const std::string& command : with_json) EXPECT_TRUE(lines.count(command)) << command;
}

// What fails leaves it empty.
TEST_F(JsonOutput, IsEmptyAfterAnError) {
  const Outcome outcome = octet("inspect nothing.onnx --json -");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
