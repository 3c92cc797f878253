// What the commands leave in a results folder, under the names that ./quickstart.sh gives.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace octet::app {

struct ResultsFolder {
  std::filesystem::path path;
  // null where the file is missing: float.json, control.json, ptq.json, qat.json, engine.json (evaluate), ranges.json
  // (calibrate), verify.json, bench.json.
  nlohmann::ordered_json float_result, control_result, ptq_result, qat_result, engine_result, ranges, verification,
      bench;

  bool empty() const;
  bool verified() const { return !verification.is_null() && verification.value("holds", false); }
  // Smallest latency in ms of a kind of bench.json ("octet_int8", "onnxruntime"); 0 when it was not measured.
  double latency(const std::string& kind) const;
  // The epochs of STAGE/history.json; an empty array when there is none.
  nlohmann::ordered_json history(const std::string& stage) const;
  std::string calibration_method() const;
  // summary.json: float_top1, control_top1, ptq_top1, qat_top1, engine_top1 (percent), engine_agreement (0 to 1),
  // int8_ms, fp32_ms, onnxruntime_fp32_ms, seconds, cpu; null for what is not known.
  nlohmann::ordered_json summary() const;
};

// UserError when the folder is missing or one of the files is damaged.
ResultsFolder read_results_folder(const std::filesystem::path& path);

}  // namespace octet::app
