#include "passes/quantize_program.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_set>

#include "dense/code_products.h"
#include "numerics/quantize.h"
#include "quant/node_selection.h"
#include "quant/placement.h"

namespace octet::passes {
namespace {

using dense::Operation;
using dense::ProductForm;
using dense::Program;

bool selected(const std::vector<quant::NodeSelector>& selectors, const Operation& operation) {
  return std::ranges::any_of(selectors, [&](const quant::NodeSelector& selector) {
    return quant::selects(selector, operation.name, operation.op);
  });
}

// Products behind which there is no other.
std::unordered_set<size_t> last_products(const Program& program, const std::vector<ProductForm>& products) {
  std::unordered_set<size_t> all, last;
  for (const ProductForm& form : products) all.insert(form.operation);
  std::unordered_set<int> before_one;  // values
  for (size_t i = program.operations.size(); i-- > 0;) {
    const Operation& operation = program.operations[i];
    const bool leads = std::ranges::any_of(operation.outputs, [&](int v) { return before_one.count(v) > 0; });
    if (all.count(i) > 0 && !leads) last.insert(i);
    if (!leads && all.count(i) == 0) continue;
    before_one.insert(operation.inputs.begin(), operation.inputs.end());
    for (const dense::Block& branch : operation.branches) {
      Program inside;
      inside.operations = branch.operations;
      before_one.merge(dense::read_values(inside));
    }
  }
  return last;
}

std::vector<ProductForm> chosen_products(const ir::Graph& graph, const quant::PlacementOptions& options) {
  if (!graph.program || options.only_cases || options.activation_bits != 8 || options.weight_bits != 8) return {};
  const Program& program = *graph.program;
  std::vector<ProductForm> products = dense::float_products(program);
  const std::unordered_set<size_t> last = last_products(program, products);
  std::erase_if(products, [&](const ProductForm& form) {
    const Operation& operation = program.operations[form.operation];
    return selected(options.exclude, operation) || (!options.only.empty() && !selected(options.only, operation)) ||
           (!options.quantize_last_layer && last.count(form.operation) > 0);
  });
  return products;
}

dense::CodedWeights coded_weights(const Program& program, const ProductForm& form,
                                  const quant::PlacementOptions& placement,
                                  const quant::WeightCalibrationOptions& options, dense::Memory& memory) {
  const std::string& name = program.values[static_cast<size_t>(form.weights)];
  const dense::Tensor floats =
      std::ranges::find(program.constants, form.weights, [](const auto& c) { return c.first; })->second;
  const ir::Tensor tensor = ir::Tensor::of<float>(floats.shape(), floats.values<float>());
  const int64_t channels = floats.shape()[static_cast<size_t>(form.channel_axis)];
  dense::CodedWeights out{.codes = memory.make<int8_t>(floats.shape()), .scales = {}};
  out.scales = quant::weight_scales(tensor, placement.weights_per_tensor ? -1 : form.channel_axis, name, options);
  out.scales.resize(static_cast<size_t>(channels), out.scales.front());
  int64_t inner = 1;  // elements of one channel that lie side by side
  for (size_t d = static_cast<size_t>(form.channel_axis) + 1; d < floats.rank(); ++d) inner *= floats.shape()[d];
  const auto from = floats.values<float>();
  const auto to = out.codes.mutable_values<int8_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / inner % channels);
    const numerics::QuantParams params{.scale = out.scales[channel], .zero_point = 0, .qmin = -127, .qmax = 127};
    to[i] = static_cast<int8_t>(numerics::quantize(from[i], params));
  }
  return out;
}

}  // namespace

std::vector<std::string> quantized_program_tensors(const ir::Graph& graph, const quant::PlacementOptions& options) {
  std::vector<std::string> names;
  for (const ProductForm& form : chosen_products(graph, options))
    names.push_back(graph.program->values[static_cast<size_t>(form.x)]);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

int quantize_program(ir::Graph& graph, const std::map<std::string, quant::Range>& ranges,
                     const quant::PlacementOptions& options, const quant::WeightCalibrationOptions& weights) {
  std::map<int, dense::CodeParams> params;
  std::map<int, dense::CodedWeights> coded;
  dense::Memory memory(std::numeric_limits<int64_t>::max());
  for (const ProductForm& form : chosen_products(graph, options)) {
    const auto range = ranges.find(graph.program->values[static_cast<size_t>(form.x)]);
    if (range == ranges.end()) continue;
    params[form.x] = {.scale = range->second.amax > 0 ? range->second.scale(127) : 1.0f, .zero_point = 0};
    if (coded.count(form.weights) == 0)
      coded.emplace(form.weights, coded_weights(*graph.program, form, options, weights, memory));
  }
  if (params.empty()) return 0;
  auto program = std::make_shared<Program>(*graph.program);
  dense::quantize_products(*program, params, coded);
  graph.program = std::move(program);
  return static_cast<int>(params.size());
}

}  // namespace octet::passes
