#include "app/results_folder.h"

#include <algorithm>
#include <sstream>

#include "base/cpu_features.h"
#include "base/error.h"
#include "base/files.h"

namespace octet::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr StageFiles kStages[] = {
    {"float", "float", "float.octet", "octet_fp32", "trained network, FP32 engine"},
    {"control", "float control", "control/model.onnx", "", "float, further training without quantization"},
    {"ptq", "PTQ", "calibrated.onnx", "", "calibrated only, fake-quantized graph"},
    {"pruned", "pruned", "pruned.onnx", "", "channels taken out of the float network, not trained again"},
    {"qat", "QAT", "model.qdq.onnx", "", "trained quantization-aware, fake-quantized graph"},
    {"engine", "INT8 engine", "model.octet", "octet_int8", "the QAT model compiled"}};

ordered_json read_json(const fs::path& path) {
  if (!fs::exists(path)) return nullptr;
  ordered_json j = ordered_json::parse(read_file(path), nullptr, false);
  if (j.is_discarded()) fail(path.string(), ": is damaged; delete it and run the command that wrote it again");
  return j;
}

ordered_json positive_or_null(double value) {
  return value > 0 ? ordered_json(value) : ordered_json(nullptr);
}

}  // namespace

std::span<const StageFiles> stages() {
  return kStages;
}

bool ResultsFolder::empty() const {
  return evaluations.empty() && ranges.is_null() && verification.is_null() && bench.is_null();
}

bool ResultsFolder::has_worst_images() const {
  return std::any_of(evaluations.begin(), evaluations.end(), [](const Evaluation& each) {
    return each.result.contains("worst") && !each.result.at("worst").empty();
  });
}

double ResultsFolder::latency(const std::string& kind) const {
  if (bench.is_null()) return 0;
  for (const ordered_json& row : bench.at("results"))
    if (row.at("kind") == kind) return row.at("min_ms");
  return 0;
}

ordered_json ResultsFolder::history(const std::string& stage) const {
  ordered_json j = read_json(path / stage / "history.json");
  return j.is_array() ? j : ordered_json::array();
}

std::string ResultsFolder::calibration_method() const {
  return ranges.is_null() ? "none" : ranges.at("method").get<std::string>();
}

std::string ResultsFolder::metric_text(const char* key, const char* otherwise) const {
  return evaluations.empty() ? otherwise : evaluations.front().result.value(key, otherwise);
}

ordered_json ResultsFolder::summary() const {
  ordered_json seconds = nullptr;
  if (fs::exists(path / "seconds.log")) {
    std::istringstream lines(read_file(path / "seconds.log"));
    double sum = 0;
    for (double s; lines >> s;) sum += s;
    seconds = sum;
  }
  ordered_json out;
  for (const StageFiles& stage : stages()) out[str(stage.name, "_", metric())] = nullptr;
  for (const auto& [stage, result] : evaluations) out[str(stage->name, "_", metric())] = result.at(metric());
  // Without LibTorch the codes are proven, and nobody computes what the model predicts.
  out["engine_agreement"] =
      verification.is_null() ? ordered_json(nullptr) : verification.value("agreement", ordered_json(nullptr));
  out["int8_ms"] = positive_or_null(latency("octet_int8"));
  out["fp32_ms"] = positive_or_null(latency("octet_fp32"));
  out["onnxruntime_fp32_ms"] = positive_or_null(latency("onnxruntime"));
  out["seconds"] = seconds;
  out["cpu"] = cpu_model_name();
  return out;
}

ResultsFolder read_results_folder(const fs::path& path) {
  if (!fs::is_directory(path)) fail_usage(path.string(), ": there is no such folder");
  ResultsFolder r;
  r.path = path;
  for (const StageFiles& stage : stages())
    if (ordered_json result = read_json(path / str(stage.name, ".json")); !result.is_null())
      r.evaluations.push_back({&stage, std::move(result)});
  r.ranges = read_json(path / "ranges.json");
  r.diagnosis = read_json(path / "diagnosis.json");
  r.verification = read_json(path / "verify.json");
  r.bench = read_json(path / "bench.json");
  return r;
}

}  // namespace octet::app
