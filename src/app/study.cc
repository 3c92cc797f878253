#include "app/study.h"

#include <cstdio>

#include "base/cpu_features.h"
#include "base/error.h"
#include "report/format.h"

namespace octet::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string cell(const ordered_json& summary, const std::string& key, int digits) {
  return summary.contains(key) && summary.at(key).is_number() ? report::fixed(summary.at(key), digits) : "";
}

struct Column {
  const char *stage, *title;
};
constexpr Column kColumns[] = {
    {"float", "FP32"}, {"ptq", "PTQ"}, {"qat", "QAT"}, {"control", "FP32, trained on"}, {"engine", "INT8 engine"}};

}  // namespace

std::vector<StudyStep> study_steps(const std::vector<std::string>& spec_arguments, const std::string& network,
                                   const fs::path& folder) {
  std::vector<StudyStep> steps;
  // `output` in the folder; a word that begins with @ is a file of it.
  const auto add = [&](const std::string& output, const std::string& command, bool reads_spec,
                       const std::vector<std::string>& words) {
    StudyStep step{.output = folder / output, .arguments = {command}};
    if (reads_spec) {
      step.arguments.insert(step.arguments.end(), spec_arguments.begin(), spec_arguments.end());
      step.arguments.insert(step.arguments.end(), {"--set", "model.arch=" + network});
    }
    for (const std::string& word : words)
      step.arguments.push_back(word.starts_with("@") ? (folder / word.substr(1)).string() : word);
    steps.push_back(std::move(step));
  };
  const auto evaluate = [&](const std::string& stage, const std::string& model) {
    add(stage + ".json", "evaluate", true, {"-m", "@" + model, "--json", "@" + stage + ".json"});
  };
  const auto train = [&](const std::string& stage, const std::string& model) {
    std::vector<std::string> words = {"-r", "@" + stage, "--stage", stage};
    if (!model.empty()) words.insert(words.end(), {"-m", "@" + model});
    add(stage + "/model.onnx", "train", true, words);
  };
  train("float", "");
  evaluate("float", "float/model.onnx");
  add("calibrated.onnx", "calibrate", true,
      {"-m", "@float/model.onnx", "-o", "@calibrated.onnx", "--json", "@ranges.json"});
  evaluate("ptq", "calibrated.onnx");
  train("qat", "calibrated.onnx");
  evaluate("qat", "qat/model.onnx");
  train("control", "float/model.onnx");
  evaluate("control", "control/model.onnx");
  add("model.qdq.onnx", "export", true, {"-m", "@qat/model.onnx", "-o", "@model.qdq.onnx"});
  add("model.octet", "compile", false, {"-m", "@model.qdq.onnx", "-o", "@model.octet"});
  add("float.octet", "compile", false, {"-m", "@float/model.onnx", "-o", "@float.octet"});
  evaluate("engine", "model.octet");
  add("verify.json", "verify", true,
      {"-m", "@qat/model.onnx", "--engine_file", "@model.octet", "--json", "@verify.json"});
  add("bench.json", "bench", false, {"-m", "@model.octet", "--baseline", "@float.octet", "--json", "@bench.json"});
  return steps;
}

report::Report study_report(const std::vector<StudiedNetwork>& networks) {
  report::Report out;
  out.title = "Octet: quantization of " + str(networks.size()) + (networks.size() == 1 ? " network" : " networks");
  out.subtitle = "Accuracy by stage, and the speed of INT8 over FP32";
  out.created = report::current_time_text();
  out.cpu = cpu_model_name();
  report::Table accuracy{"Accuracy", {"network"}, {}, "FP32, trained on: as long as QAT, without quantizers."};
  report::Table latency{
      "Latency", {"network", "FP32 (ms)", "INT8 (ms)", "speed-up", "same answer as the trained graph"}, {}, ""};
  report::BarChart scores{.title = "Accuracy", .unit = ""}, speeds{.title = "Speed-up of INT8 over FP32", .unit = "x"};
  for (const Column& column : kColumns) {
    accuracy.columns.push_back(column.title);
    scores.groups.push_back(column.title);
  }
  for (const StudiedNetwork& network : networks) {
    const ordered_json summary = network.results.summary();
    const std::string metric = network.results.metric();
    accuracy.title = "Accuracy: " + network.results.metric_title();
    scores.title = accuracy.title;
    std::vector<std::string> row = {network.name};
    for (size_t i = 0; i < std::size(kColumns); ++i) {
      const std::string key = str(kColumns[i].stage, "_", metric);
      row.push_back(cell(summary, key, 2));
      if (summary.contains(key) && summary.at(key).is_number())
        scores.bars.push_back({.label = network.name + "  " + kColumns[i].title,
                               .to = summary.at(key).get<double>(),
                               .text = row.back(),
                               .group = static_cast<int>(i)});
    }
    accuracy.rows.push_back(row);
    const double full = network.results.latency("octet_fp32"), codes = network.results.latency("octet_int8");
    const double speedup = full > 0 && codes > 0 ? full / codes : 0;
    if (speedup > 0)
      speeds.bars.push_back({.label = network.name, .to = speedup, .text = report::fixed(speedup, 2) + " x"});
    latency.rows.push_back({network.name, cell(summary, "fp32_ms", 3), cell(summary, "int8_ms", 3),
                            speedup > 0 ? report::fixed(speedup, 2) : "",
                            summary.at("engine_agreement").is_number()
                                ? report::fixed(100 * summary["engine_agreement"].get<double>(), 2) + " %"
                                : ""});
  }
  out.tables = {accuracy, latency};
  out.bars = {scores, speeds};
  return out;
}

ordered_json study_json(const std::vector<StudiedNetwork>& networks) {
  ordered_json out = ordered_json::object();
  for (const StudiedNetwork& network : networks) out[network.name] = network.results.summary();
  return out;
}

}  // namespace octet::app
