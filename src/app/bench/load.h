// What an engine costs before it gives its first result.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "engine/prepared_plan.h"
#include "ir/input_shape.h"

namespace octet::app {

struct BenchModel {
  std::shared_ptr<const engine::PreparedPlan> prepared;
  std::optional<double> compile_ms;        // ONNX files: read, lowered, tactics estimated; no engine file written
  std::optional<double> load_to_first_ms;  // engine files: opened, checked, context made, first result; median of 5
  double rss_mb = 0;                       // resident memory of the process afterwards, in MiB
  double rss_engine_mb = 0;  // by how much the first load and inference raised it, without inputs and outputs

  const engine::Plan& plan() const { return prepared->plan(); }
  int64_t batch() const { return plan().buffers[static_cast<size_t>(plan().inputs.at(0))].shape.at(0); }
  double weights_mb() const;
  double derived_mb() const;  // weights that kernels want in an order of their own, beside those of the file
  double arena_mb() const;
};

// Reads an engine file, or compiles an ONNX file for the occasion, whose inputs have `shapes` (those of load_network),
// and runs it once.
BenchModel load_bench_model(const std::string& path, int64_t batch, int threads, Isa isa,
                            const std::vector<ir::InputShape>& shapes = {});

}  // namespace octet::app
