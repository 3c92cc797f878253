// Post-training quantization of small graphs by ir::evaluate_graph(): what the trainer's executor does for large ones.
#pragma once
#include <cmath>
#include <vector>

#include "ir/evaluate_graph.h"
#include "passes/pipelines.h"
#include "quant/observer.h"

namespace octet::testing {

// The calibrated network of a float one. `images`: each an input of its only input.
inline ir::Graph calibrated(const ir::Graph& graph, const quant::QuantOptions& options,
                            const std::vector<ir::Tensor>& images) {
  ir::Graph out = graph.clone();
  passes::PlacementRecord placed;
  passes::run_pipeline(out, passes::placement_passes(options, {}, &placed));
  ir::Graph whole = out.clone();
  passes::run_pipeline(whole, {passes::find_pass("remove_fake_quant")});
  quant::CalibrationSet set(out);
  set.set_layers(placed.layers);
  // An output that is quantized has its name back in `whole`.
  const auto watched = [&](const std::string& name) -> std::string {
    for (const std::string& n : {name, name + "/float"})
      if (set.observers().count(n)) return n;
    return "";
  };
  for (const ir::Tensor& image : images)
    ir::evaluate_graph(whole, {image}, [&](const ir::Value& value, const ir::Tensor& tensor) {
      if (const std::string name = watched(value.name); !name.empty()) set.observe(name, tensor.to_floats());
    });
  passes::run_pipeline(
      out, passes::scale_passes(set.ranges(options.calibration), with_layers(options.weights, placed.layers)));
  return out;
}

// Signal to noise in decibels over the first outputs of both.
inline double sqnr_db(const ir::Graph& wanted, const ir::Graph& graph, const std::vector<ir::Tensor>& images) {
  double signal = 0, noise = 0;
  for (const ir::Tensor& image : images) {
    const std::vector<float> a = ir::evaluate_graph(wanted, {image})[0].to_floats(),
                             b = ir::evaluate_graph(graph, {image})[0].to_floats();
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = a[i], d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
      signal += x * x, noise += d * d;
    }
  }
  return 10 * std::log10(signal / noise);
}

}  // namespace octet::testing
