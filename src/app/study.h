// One experiment for several networks: what quantization costs each of them in accuracy, and what it brings in speed.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "app/results_folder.h"
#include "report/html_report.h"

namespace octet::app {

// A command of this program that makes one file of a results folder.
struct StudyStep {
  std::filesystem::path output;
  std::vector<std::string> arguments;
};

// For one network: float, post-training quantization, training quantization-aware and its float control, the engine,
// its proof and its time; in the order in which they need one another. `spec_arguments` are -e and --set as the user
// gave them.
std::vector<StudyStep> study_steps(const std::vector<std::string>& spec_arguments, const std::string& network,
                                   const std::filesystem::path& folder);

struct StudiedNetwork {
  std::string name;
  ResultsFolder results;
};

// Two tables and their charts: accuracy by stage, and the latency of the INT8 engine as speed-up over FP32.
report::Report study_report(const std::vector<StudiedNetwork>& networks);
nlohmann::ordered_json study_json(const std::vector<StudiedNetwork>& networks);

}  // namespace octet::app
