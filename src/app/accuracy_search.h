// Post-training quantization until an accuracy holds, or as accurate as a time or a size allows: first what costs no
// speed, then the layers that lose most stay in float, as few of them as will do, or as many as the budget has room
// for.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "quant/options.h"

namespace octet::app {

// What the result is to keep, and what is tried for it; at least one is given.
struct SearchBounds {
  std::optional<double> drop;    // at most so much worse than the float network, in the metric's unit
  std::optional<double> ms;      // that an image takes the engine at most
  std::optional<int64_t> bytes;  // that the ONNX file has at most
  bool methods = false;          // every method of calibration is tried, and the one with the best score taken
  bool has_budget() const { return ms || bytes; }
};

struct AccuracyStep {
  std::string what;  // "calibrated", "quant.bias_correction: empirical", "3 layers in float"
  double score = 0;  // of the task's metric, in its unit
  double ms = 0;     // an image takes the engine
  int64_t bytes = 0;
  bool kept = true;  // later steps build on it
};

struct AccuracySearch {
  double float_score = 0, float_ms = 0;
  int64_t float_bytes = 0;
  bool higher_is_better = true;
  std::vector<AccuracyStep> steps;  // in the order in which they were tried
  quant::QuantOptions options;      // the best ones; quant.exclude names the layers that stay float
  ir::Graph graph;                  // what they make
  double score = 0, ms = 0;         // of it
  int64_t bytes = 0;
  bool holds = false;  // all bounds

  double lost() const { return higher_is_better ? float_score - score : score - float_score; }
};

struct Measured {
  double score = 0, ms = 0;
  int64_t bytes = 0;  // of the ONNX file, with the codes of weights and without metadata
};

// What the search calls.
struct AccuracyTools {
  std::function<ir::Graph(const quant::QuantOptions&)> quantize;  // the float network
  // The same, but layers whose weights the second network has rounded by their results take these, without the time.
  std::function<ir::Graph(const quant::QuantOptions&, const ir::Graph& rounded)> quantize_as;
  std::function<Measured(const ir::Graph&)> measure;
  // Nodes with quantized inputs of a quantized network, the most harmful first.
  std::function<std::vector<std::string>(const ir::Graph&)> rank;
  std::function<void(const AccuracyStep&)> progress;  // may be empty
};

// Tries, in this order: `options` as they are; with bounds.methods the other methods of calibration; channel
// equalization, bias correction, GPTQ and, where that does not help, AdaRound, each where `options` do not have it, on
// top of the others that helped; then the most harmful layers in float: 1, 2, 4 ... of them until the bar holds, and
// then fewer, by bisection. Meanwhile the other layers keep the rounded weights that they have; the number that is
// found is rounded anew, and if that misses the bar, the next numbers are. Ends as soon as a score is at most
// `bounds.drop` worse than that of `network`, the float one. Without it, it takes of a budget the largest number of
// these layers that fits, and of all that fits the best score.
AccuracySearch search_accuracy(const ir::Graph& network, const quant::QuantOptions& options, const SearchBounds& bounds,
                               bool higher_is_better, const AccuracyTools& tools);

}  // namespace octet::app
