#include "passes/analytic_bias_correction.h"

#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "ir/evaluate.h"
#include "ir/query.h"
#include "passes/channel_layout.h"
#include "passes/shift_biases.h"

namespace octet::passes {
namespace {

// Quantized minus as they are, summed over taps.
std::vector<double> weight_errors(const ir::Node& node, const ChannelLayout& layout) {
  const ir::Node& quantizer = *node.input(1)->producer;
  std::vector<const ir::Tensor*> inputs;
  for (const ir::Value* input : quantizer.inputs) inputs.push_back(&*ir::constant_behind(input)->constant);
  ir::MemoryBudget budget;
  const auto quantized = ir::evaluate(quantizer, inputs, budget);
  OCTET_CHECK(quantized && quantized->size() == 1, quantizer.name);
  std::vector<float> errors = quantized->front().to_floats();
  const std::vector<float> weights = inputs[0]->to_floats();
  for (size_t i = 0; i < errors.size(); ++i) errors[i] -= weights[i];
  return sums_over_taps(layout, errors);
}

}  // namespace

AnalyticCorrections analytic_bias_corrections(const ir::Graph& quantized, std::map<std::string, ChannelMoments> known,
                                              const std::map<std::string, std::vector<int>>& divided) {
  for (const auto& [value, exponents] : divided) {
    const auto it = known.find(value);
    if (it == known.end()) continue;
    for (size_t c = 0; c < exponents.size(); ++c) {
      it->second.mean[c] = std::ldexp(it->second.mean[c], -exponents[c]);
      it->second.deviation[c] = std::ldexp(it->second.deviation[c], -exponents[c]);
    }
  }
  const std::map<std::string, std::vector<double>> means = channel_means(quantized, known);
  AnalyticCorrections out;
  for (const ir::Node* node : nodes_to_correct(quantized)) {
    const auto mean = means.find(node->input(0)->name);
    const std::optional<ChannelLayout> layout = channel_layout(*node);
    if (mean == means.end() || !layout || layout->inputs() != mean->second.size()) {
      out.unknown.push_back(node->name);
      continue;
    }
    const std::vector<double> errors = weight_errors(*node, *layout);
    const double alpha = node->kind == ir::OpKind::kGemm ? node->get_float("alpha") : 1;
    std::vector<double>& shift = out.shifts[node->name];
    shift.resize(layout->outputs());
    for (size_t row = 0, i = 0; row < layout->rows; ++row)
      for (size_t column = 0; column < layout->columns; ++column, ++i)
        shift[layout->channel(row, column, true)] -=
            alpha * errors[i] * mean->second[layout->channel(row, column, false)];
  }
  return out;
}

}  // namespace octet::passes
