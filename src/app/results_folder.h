// What the commands leave in a results folder, under the names that ./quickstart.sh gives.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace octet::app {

// On the way from a network to its engine.
struct StageFiles {
  const char* name;   // its measurement is NAME.json (evaluate), its figure NAME_METRIC in summary.json
  const char* title;  // for people
  const char* model;  // file
  const char* kind;   // of its time in bench.json; "": it has none
  const char* what;
};

// From the first to the last.
std::span<const StageFiles> stages();

struct Evaluation {
  const StageFiles* stage;
  nlohmann::ordered_json result;
};

struct ResultsFolder {
  std::filesystem::path path;
  std::vector<Evaluation> evaluations;  // of the stages that were measured, from the first to the last
  // null where the file is missing: ranges.json (calibrate), diagnosis.json, verify.json, bench.json.
  nlohmann::ordered_json ranges, diagnosis, verification, bench;

  bool empty() const;
  // One of the evaluated stages names images that went wrong.
  bool has_worst_images() const;
  bool verified() const { return !verification.is_null() && verification.value("holds", false); }
  // Smallest latency in ms of a kind of bench.json ("octet_int8", "onnxruntime"); 0 when it was not measured.
  double latency(const std::string& kind) const;
  // The epochs of STAGE/history.json; an empty array when there is none.
  nlohmann::ordered_json history(const std::string& stage) const;
  std::string calibration_method() const;
  // The metric by which the task compares models: its key in the results ("top1") and its name for people ("top-1 %").
  std::string metric() const { return metric_text("metric", "top1"); }
  std::string metric_title() const { return metric_text("metric_title", "top-1 %"); }
  // summary.json, with METRIC as above: STAGE_METRIC of every stage, engine_agreement (0 to 1), int8_ms, fp32_ms,
  // onnxruntime_fp32_ms, seconds, cpu; null for what is not known.
  nlohmann::ordered_json summary() const;

 private:
  // Of the first result that there is.
  std::string metric_text(const char* key, const char* otherwise) const;
};

// UserError when the folder is missing or one of the files is damaged.
ResultsFolder read_results_folder(const std::filesystem::path& path);

}  // namespace octet::app
