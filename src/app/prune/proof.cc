#include "app/prune/proof.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "base/error.h"
#include "base/log.h"
#include "engine/executor.h"
#include "ir/evaluate_graph.h"
#include "ir/infer.h"
#include "lower/lower.h"

namespace octet::app {
namespace {

using Outputs = std::vector<std::vector<double>>;
using Run = std::function<Outputs(const NetworkTensors&)>;

constexpr double kEngineRounding = 1e-4, kExactRounding = 1e-6;  // of the largest output

class EngineRun {
 public:
  EngineRun(const ir::Graph& graph, int threads)
      : executor_(std::make_shared<const engine::Plan>(lower::lower(graph)), {.threads = threads}) {
    for (const ir::Value* v : graph.outputs()) is_index_.push_back(v->type.data_type == ir::DataType::kInt64);
  }
  Outputs operator()(const NetworkTensors& input) {
    const engine::Plan& plan = executor_.plan();
    std::vector<const float*> in;
    std::vector<float*> out;
    for (const std::vector<float>& tensor : input) in.push_back(tensor.data());
    std::vector<std::vector<float>> memory;
    memory.reserve(plan.outputs.size());
    for (const int id : plan.outputs) {
      const auto elements = static_cast<size_t>(plan.buffers[static_cast<size_t>(id)].elements());
      out.push_back(memory.emplace_back(elements * 2).data());  // an index has 8 bytes
    }
    executor_.run(in.data(), out.data());
    Outputs numbers;
    for (size_t i = 0; i < memory.size(); ++i) {
      std::vector<double>& to = numbers.emplace_back();
      for (size_t k = 0; k < memory[i].size() / 2; ++k) {
        int64_t index = 0;
        if (is_index_[i]) std::memcpy(&index, memory[i].data() + 2 * k, sizeof index);
        to.push_back(is_index_[i] ? static_cast<double>(index) : memory[i][k]);
      }
    }
    return numbers;
  }
  std::string name() const {
    return str("the engine in FP32 (", isa_name(executor_.isa()), ", ", executor_.threads(),
               executor_.threads() == 1 ? " thread)" : " threads)");
  }

 private:
  engine::Executor executor_;
  std::vector<bool> is_index_;
};

Outputs evaluated(const ir::Graph& graph, const NetworkTensors& input) {
  std::vector<ir::Tensor> tensors;
  for (size_t i = 0; i < input.size(); ++i)
    tensors.push_back(ir::Tensor::of<float>(*graph.inputs()[i]->type.shape, input[i]));
  Outputs out;
  for (const ir::Tensor& tensor : ir::evaluate_graph(graph, tensors)) {
    const std::vector<float> values = tensor.to_floats();
    out.emplace_back(values.begin(), values.end());
  }
  return out;
}

PruneProof compare(const Run& masked, const Run& pruned, const std::vector<NetworkTensors>& inputs, double rounding) {
  PruneProof proof{.inputs = std::ssize(inputs)};
  for (const NetworkTensors& input : inputs) {
    const Outputs expected = masked(input), actual = pruned(input);
    for (size_t i = 0; i < expected.size(); ++i) {
      if (actual[i].size() != expected[i].size()) proof.largest_difference = std::numeric_limits<double>::infinity();
      for (size_t k = 0; k < std::min(expected[i].size(), actual[i].size()); ++k) {
        proof.largest_output = std::max(proof.largest_output, std::fabs(expected[i][k]));
        const bool same = expected[i][k] == actual[i][k] || (std::isnan(expected[i][k]) && std::isnan(actual[i][k]));
        const double difference = same ? 0 : std::fabs(expected[i][k] - actual[i][k]);
        if (!(difference <= proof.largest_difference)) proof.largest_difference = difference;
        if (std::isnan(difference)) return proof;
      }
    }
  }
  proof.allowed = rounding * proof.largest_output;
  return proof;
}

}  // namespace

ir::Graph with_sizes(const ir::Graph& graph) {
  ir::Graph out = graph.clone();
  for (ir::Value* input : out.inputs()) {
    require(input->type.shape.has_value(), "the rank of input '", input->name, "' is not known");
    for (size_t axis = 0; axis < input->type.shape->size(); ++axis) {
      int64_t& size = (*input->type.shape)[axis];
      if (size == ir::kDynamic) size = axis == 0 ? 1 : 64;
    }
  }
  ir::infer_shapes(out);
  return out;
}

std::vector<NetworkTensors> random_inputs(const ir::Graph& graph, int count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<NetworkTensors> out(static_cast<size_t>(count));
  for (NetworkTensors& input : out)
    for (const ir::Value* v : graph.inputs()) {
      std::vector<float>& tensor = input.emplace_back(static_cast<size_t>(ir::element_count(*v->type.shape)));
      for (float& number : tensor) number = normal(random);
    }
  return out;
}

PruneProof prove_pruned(const ir::Graph& masked, const ir::Graph& pruned, const std::vector<NetworkTensors>& inputs,
                        int threads) {
  try {
    EngineRun a(masked, threads), b(pruned, threads);
    PruneProof proof = compare([&](const NetworkTensors& x) { return a(x); },
                               [&](const NetworkTensors& x) { return b(x); }, inputs, kEngineRounding);
    proof.ran_by = b.name();
    if (proof.holds()) return proof;
    log_info("the engine's outputs differ by ", proof.largest_difference, ", more than the ", proof.allowed,
             " that its rounding usually makes; computing them in float64");
  } catch (const UserError& error) {
    log_info("the engine does not run this network (", error.what(), "); computing it in float64");
  }
  PruneProof proof = compare([&](const NetworkTensors& x) { return evaluated(masked, x); },
                             [&](const NetworkTensors& x) { return evaluated(pruned, x); }, inputs, kExactRounding);
  proof.ran_by = "plain evaluation in float64";
  return proof;
}

}  // namespace octet::app
