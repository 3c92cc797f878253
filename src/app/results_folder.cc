#include "app/results_folder.h"

#include <sstream>

#include "base/cpu_features.h"
#include "base/error.h"
#include "base/files.h"

namespace octet::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

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

bool ResultsFolder::empty() const {
  for (const ordered_json* j :
       {&float_result, &control_result, &ptq_result, &qat_result, &engine_result, &ranges, &verification, &bench})
    if (!j->is_null()) return false;
  return true;
}

bool ResultsFolder::has_worst_images() const {
  for (const ordered_json* j : {&float_result, &control_result, &ptq_result, &qat_result, &engine_result})
    if (!j->is_null() && j->contains("worst") && !j->at("worst").empty()) return true;
  return false;
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
  for (const ordered_json* j : {&float_result, &control_result, &ptq_result, &qat_result, &engine_result})
    if (!j->is_null()) return j->value(key, otherwise);
  return otherwise;
}

ordered_json ResultsFolder::summary() const {
  const std::string name = metric();
  const auto value = [&](const ordered_json& j) { return j.is_null() ? ordered_json(nullptr) : j.at(name); };
  ordered_json seconds = nullptr;
  if (fs::exists(path / "seconds.log")) {
    std::istringstream lines(read_file(path / "seconds.log"));
    double sum = 0;
    for (double s; lines >> s;) sum += s;
    seconds = sum;
  }
  return {{"float_" + name, value(float_result)},
          {"control_" + name, value(control_result)},
          {"ptq_" + name, value(ptq_result)},
          {"qat_" + name, value(qat_result)},
          {"engine_" + name, value(engine_result)},
          {"engine_agreement", verification.is_null() ? ordered_json(nullptr) : verification.at("agreement")},
          {"int8_ms", positive_or_null(latency("octet_int8"))},
          {"fp32_ms", positive_or_null(latency("octet_fp32"))},
          {"onnxruntime_fp32_ms", positive_or_null(latency("onnxruntime"))},
          {"seconds", seconds},
          {"cpu", cpu_model_name()}};
}

ResultsFolder read_results_folder(const fs::path& path) {
  if (!fs::is_directory(path)) fail_usage(path.string(), ": there is no such folder");
  ResultsFolder r;
  r.path = path;
  r.float_result = read_json(path / "float.json");
  r.control_result = read_json(path / "control.json");
  r.ptq_result = read_json(path / "ptq.json");
  r.qat_result = read_json(path / "qat.json");
  r.engine_result = read_json(path / "engine.json");
  r.ranges = read_json(path / "ranges.json");
  r.verification = read_json(path / "verify.json");
  r.bench = read_json(path / "bench.json");
  return r;
}

}  // namespace octet::app
