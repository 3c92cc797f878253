// Networks of the zoo with random weights, quantized by the placement rules.
#pragma once
#include "lower/lower_test_util.h"
#include "models/zoo.h"
#include "passes/fold_batch_norm.h"
#include "passes/place_fake_quant.h"
#include "passes/set_scales.h"

namespace octet::testing {

struct Quantized {
  ir::Graph graph;
  std::map<std::string, Array> inputs, expected;
};

// Ranges come from one random image.
inline Quantized quantized(const std::string& arch, int64_t size, bool is_unsigned = false) {
  models::ModelOptions options = models::default_options(arch);
  options.input = {3, size, size}, options.num_classes = 10;
  Quantized q{.graph = models::build_model(options)};
  passes::fold_batch_norm(q.graph);
  ir::set_batch(q.graph, 1);
  Random random(7);
  q.inputs["input"] = {{1, 3, size, size}, random.values(3 * size * size, -2, 2)};
  std::map<std::string, quant::Range> ranges;
  for (const auto& [name, array] : evaluate_graph(q.graph, q.inputs)) {
    quant::Range r;
    for (float v : array.data) r.amax = std::max(r.amax, std::abs(v));
    r.amax = std::max(r.amax, 1e-3f);
    ranges[name] = r;
  }
  passes::place_fake_quant(q.graph, {.unsigned_activations = is_unsigned});
  passes::set_scales(q.graph, ranges);
  ir::infer_shapes(q.graph);
  q.expected = evaluate_graph(q.graph, q.inputs);
  return q;
}

}  // namespace octet::testing
