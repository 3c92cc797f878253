#include "app/pretrained.h"

#include <sstream>

#include "base/log.h"
#include "report/text_table.h"
#include "weights/weight_file.h"

namespace octet::app {
namespace {

using State = weights::LoadedWeight::State;

const char* state_text(State state) {
  switch (state) {
    case State::kLoaded:
      return "loaded";
    case State::kMissing:
      return "missing: starts from random";
    case State::kMismatched:
      return "mismatched: starts from random";
    case State::kFolded:
      return "folded batch norm: left out";
  }
  return "";
}

}  // namespace

std::string pretrained_text(const weights::WeightReport& report, size_t rows) {
  std::string text = str("weights: ", report.count(State::kLoaded), " loaded, ", report.count(State::kMissing),
                         " missing, ", report.count(State::kMismatched) + report.count(State::kFolded), " mismatched; ",
                         report.unused.size(), " of the file are not used");
  report::TextTable table({"weight", "network", "file", "what became of it"});
  size_t left_out = 0;
  for (const weights::LoadedWeight& w : report.weights) {
    if (w.state == State::kLoaded) continue;
    if (table.rows() == rows && ++left_out) continue;
    table.add_row({w.name, w.state == State::kFolded ? "-" : ir::shape_string(w.network),
                   w.state == State::kMissing ? "-" : ir::shape_string(w.file), state_text(w.state)});
  }
  if (table.rows() > 0) text += "\n" + table.text();
  if (left_out > 0) text += str("and ", left_out, " more\n");
  return text;
}

namespace {

weights::WeightReport take_weights(ir::Graph& graph, const std::string& file) {
  weights::WeightReport report = weights::load_weights(graph, weights::read_weights(file));
  // A message of the log is one line.
  std::istringstream lines(file + ": " + pretrained_text(report));
  for (std::string line; std::getline(lines, line);) log_info(line);
  return report;
}

}  // namespace

void take_pretrained(ir::Graph& graph, const std::string& file, bool allow_modification) {
  weights::require_loaded(take_weights(graph, file), file, allow_modification);
}

void take_all_weights(ir::Graph& graph, const std::string& file) {
  weights::require_all_loaded(take_weights(graph, file), file);
}

}  // namespace octet::app
