#include "app/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/network_input.h"
#include "engine/executor.h"
#include "ir/evaluate.h"
#include "ir/query.h"
#include "lower/lower.h"
#include "passes/partial_quantization.h"
#include "report/format.h"
#include "report/text_table.h"

namespace octet::app {
namespace {

NetworkOutputs run_plan(const std::shared_ptr<const engine::Plan>& plan, const std::vector<data::Batch>& batches,
                        const RunOptions& options) {
  engine::Executor executor(plan, {.threads = static_cast<int>(options.threads), .isa = chosen_isa(options.isa)});
  const auto buffer = [&](int id) -> const engine::Buffer& { return plan->buffers[static_cast<size_t>(id)]; };
  const engine::Buffer& image = buffer(plan->inputs.at(0));
  const data::NetworkInput input = data::read_network_input(image.name, {image.shape.begin(), image.shape.end()});
  std::vector<float> images(static_cast<size_t>(image.elements()));
  NetworkOutputs rows, out(plan->outputs.size());
  std::vector<float*> pointers;
  for (const int id : plan->outputs) rows.emplace_back(static_cast<size_t>(buffer(id).elements()));
  for (std::vector<float>& row : rows) pointers.push_back(row.data());
  for (const data::Batch& batch : batches) {
    data::require_fit(input, batch.channels, batch.height, batch.width);
    OCTET_CHECK(batch.size <= input.batch);
    data::arrange(batch, input, images);
    const float* in = images.data();
    executor.run(&in, pointers.data());
    for (size_t i = 0; i < out.size(); ++i) out[i].insert(out[i].end(), rows[i].begin(), rows[i].end());
  }
  return out;
}

// Whether no weight lies between two codes of its quantizer.
bool weights_are_codes(const ir::Graph& graph) {
  bool any = false;
  ir::MemoryBudget budget;
  for (const auto& node : graph.nodes()) {
    if (!is_quantizer(node.get()) || !node->input(0)->is_constant()) continue;
    any = true;
    const ir::Tensor &w = *node->input(0)->constant, &scale = *node->input(1)->constant,
                     &zero = *node->input(2)->constant;
    const std::optional<std::vector<ir::Tensor>> codes = ir::evaluate(*node, {&w, &scale, &zero}, budget);
    if (!codes || codes->at(0).to_floats() != w.to_floats()) return false;
  }
  return any;
}

}  // namespace

GraphRunner run_by_engine(data::Loader& loader, const RunOptions& options) {
  auto batches = std::make_shared<std::vector<data::Batch>>();
  loader.start_epoch(0);
  while (std::optional<data::Batch> batch = loader.next()) batches->push_back(std::move(*batch));
  require(!batches->empty(), "there is no image to compare networks on");
  return [batches, options](const ir::Graph& graph) {
    return run_plan(std::make_shared<const engine::Plan>(lower::lower(graph, {})), *batches, options);
  };
}

double signal_to_noise_db(const NetworkOutputs& wanted, const NetworkOutputs& got) {
  OCTET_CHECK(wanted.size() == got.size() && !wanted.empty());
  double sum = 0;
  for (size_t k = 0; k < wanted.size(); ++k) {
    OCTET_CHECK(wanted[k].size() == got[k].size());
    double signal = 0, noise = 0;
    for (size_t i = 0; i < wanted[k].size(); ++i) {
      const double x = wanted[k][i], d = x - static_cast<double>(got[k][i]);
      signal += x * x, noise += d * d;
    }
    if (noise > 0) sum += noise / signal;
  }
  return -10 * std::log10(sum / static_cast<double>(wanted.size()));
}

Sensitivity measure_sensitivity(const ir::Graph& quantized, const GraphRunner& run,
                                const std::function<void(int64_t)>& progress) {
  const std::vector<std::string> nodes = passes::quantized_nodes(quantized);
  require(!nodes.empty(), "nothing in this network is quantized; octet calibrate and octet quantize do it");
  const NetworkOutputs whole = run(passes::quantized_in_part(quantized, {}));
  Sensitivity out;
  out.codes_only = weights_are_codes(quantized);
  std::unordered_set<std::string> others(nodes.begin(), nodes.end());
  const auto against_float = [&](const std::unordered_set<std::string>& some) {
    return signal_to_noise_db(whole, run(passes::quantized_in_part(quantized, some)));
  };
  out.whole_db = against_float(others);
  for (const std::string& node : nodes) {
    LayerSensitivity layer{.node = node, .op = quantized.find_node(node)->info().name};
    layer.alone_db = against_float({node});
    others.erase(node);
    layer.without_db = against_float(others);
    others.insert(node);
    out.layers.push_back(std::move(layer));
    if (progress) progress(std::ssize(out.layers));
  }
  std::stable_sort(out.layers.begin(), out.layers.end(),
                   [](const LayerSensitivity& a, const LayerSensitivity& b) { return a.alone_db < b.alone_db; });
  return out;
}

std::string sensitivity_table(const Sensitivity& sensitivity, size_t rows) {
  const auto decibels = [](double db) { return std::isfinite(db) ? report::fixed(db, 1) : std::string("-"); };
  report::TextTable table({"layer", "operator", "alone dB", "all others dB"});
  for (const LayerSensitivity& layer : sensitivity.layers) {
    if (rows > 0 && table.rows() == rows) break;
    table.add_row({layer.node, layer.op, decibels(layer.alone_db), decibels(layer.without_db)});
  }
  return table.text() + "all quantized: " + decibels(sensitivity.whole_db) + " dB\n";
}

nlohmann::ordered_json sensitivity_json(const Sensitivity& sensitivity) {
  const auto decibels = [](double db) { return std::isfinite(db) ? nlohmann::ordered_json(db) : nullptr; };
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerSensitivity& layer : sensitivity.layers)
    layers.push_back({{"layer", layer.node},
                      {"operator", layer.op},
                      {"alone_db", decibels(layer.alone_db)},
                      {"without_db", decibels(layer.without_db)}});
  return {{"sqnr_db", decibels(sensitivity.whole_db)},
          {"weights_are_codes", sensitivity.codes_only},
          {"layers", std::move(layers)}};
}

}  // namespace octet::app
