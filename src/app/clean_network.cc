#include "app/clean_network.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "dense/code_products.h"
#include "ir/infer.h"
#include "passes/place_fake_quant.h"

namespace octet::app {
namespace {

std::string origin_text(const quant::TensorRange& range) {
  switch (range.origin) {
    case quant::RangeOrigin::kQuantizer:
      return "quantizer";
    case quant::RangeOrigin::kDerived:
      return "derived: " + range.how;
    case quant::RangeOrigin::kMeasured:
      return "measured";
  }
  return {};
}

}  // namespace

CleanNetwork take_quantizers_out(const ir::Graph& quantized) {
  CleanNetwork out{.graph = quantized.clone(), .ranges = {}, .losses = quant::cache_losses(quantized)};
  const std::map<const ir::Value*, quant::TensorRange> ranges = quant::quantizer_ranges(out.graph);
  passes::remove_fake_quant(out.graph);
  if (out.graph.program) {
    auto program = std::make_shared<dense::Program>(*out.graph.program);
    dense::dequantize_products(*program);
    out.graph.program = std::move(program);
  }
  ir::infer_shapes(out.graph);
  // A tensor takes over the name of an output of the graph where its quantizer had that.
  for (const ir::Value* value : out.graph.values())
    if (const auto it = ranges.find(value); it != ranges.end()) out.ranges[value->name] = it->second;
  return out;
}

void complete_ranges(CleanNetwork& network, const MeasureRanges& measure) {
  const size_t of_quantizers = network.ranges.size();
  int derived = quant::derive_ranges(network.graph, network.ranges);
  const std::vector<std::string> rest = quant::tensors_without_range(network.graph, network.ranges);
  if (!rest.empty())
    for (const auto& [tensor, range] : measure(network.graph, rest))
      network.ranges[tensor] = {.scale = range.scale(127), .origin = quant::RangeOrigin::kMeasured, .how = {}};
  log_info("ranges of all ", network.ranges.size(), " tensors: ", of_quantizers, " of quantizers, ", derived,
           " that follow from others, ", rest.size(), " measured");
  const std::vector<std::string> unequal = quant::unequal_ranges(network.graph, network.ranges);
  if (!unequal.empty())
    log_info("a DLA wants equal ranges around pooling and element-wise operators and leaves others to the GPU: ",
             some_of(unequal, "node"));
}

quant::CalibrationCache make_cache(const quant::TensorRanges& ranges, const quant::TensorRtVersion& version) {
  if (version.major >= 11)
    fail_usage("TensorRT ", version.text(),
               " takes no calibration caches; give it the QDQ ONNX file (-o), and a cache to versions before 11");
  quant::CalibrationCache cache;
  cache.version = str(version.cache_number());
  for (const auto& [name, range] : ranges) cache.scales[name] = range.scale;
  return cache;
}

nlohmann::ordered_json ranges_json(const quant::TensorRanges& ranges) {
  nlohmann::ordered_json scales = nlohmann::ordered_json::object(), origins = nlohmann::ordered_json::object();
  for (const auto& [name, range] : ranges) {
    scales[name] = range.scale * 127.0f;
    origins[name] = origin_text(range);
  }
  return {{"tensor_scales", scales}, {"origins", origins}};
}

std::string some_of(const std::vector<std::string>& names, const std::string& what) {
  constexpr size_t kShown = 3;
  std::string out = str(names.size(), " ", what, names.size() == 1 ? "" : "s");
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) out += (i ? ", " : ": ") + names[i];
  if (names.size() > kShown) out += str(" and ", names.size() - kShown, " more");
  return out;
}

}  // namespace octet::app
