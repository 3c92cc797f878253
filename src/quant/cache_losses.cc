#include "quant/cache_losses.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "ir/query.h"
#include "quant/fusion_model.h"
#include "quant/weight_calibrator.h"

namespace octet::quant {
namespace {

using ir::Node;
using ir::Value;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

// The node that multiplies with what the quantizer gives; nullptr where it is not for weights.
const Node* product_of(const Node& quantizer) {
  for (const Node* user : quantizer.output()->users)
    if (is_weighted(*user) && user->input(1) == quantizer.output()) return user;
  return nullptr;
}

// The largest relative distance of a scale from that of max|w| of its output channel.
double distance_from_max(const Node& quantizer, const Node& product) {
  const ir::Tensor& weights = *quantizer.input(0)->constant;
  const std::vector<float> scales = quantizer.input(1)->constant->to_floats();
  const std::vector<float> natural = weight_scales(weights, weight_axis(product).value_or(-1), quantizer.input(0)->name,
                                                   {.method = WeightMethod::kMax, .levels = 127});
  double largest = 0;
  for (size_t c = 0; c < natural.size(); ++c) {
    const double scale = scales.at(scales.size() == natural.size() ? c : 0);
    largest = std::max(largest, std::abs(scale - natural[c]) / natural[c]);
  }
  return largest;
}

class Losses {
 public:
  void add_weights(const Node& quantizer) {
    const Node* product = product_of(quantizer);
    if (!product) return;
    const std::string& name = quantizer.input(0)->name;
    const std::vector<int64_t> zeros = quantizer.input(2)->constant->to_ints();
    if (std::any_of(zeros.begin(), zeros.end(), [](int64_t z) { return z != 0; })) {
      zero_points_.push_back(str(name, ": ", zeros[0]));
      return;
    }
    const double distance = distance_from_max(quantizer, *product);
    if (distance > 1e-5) weights_.push_back(str(name, ": up to ", percent(distance)));
  }

  void add_activation(const Node& quantizer) {
    const Value* value = ir::behind_quantizers(quantizer.input(0));
    const std::vector<int64_t> zeros = quantizer.input(2)->constant->to_ints();
    const std::vector<float> scales = quantizer.input(1)->constant->to_floats();
    if (std::any_of(zeros.begin(), zeros.end(), [](int64_t z) { return z != 0; }))
      zero_points_.push_back(str(value->name, ": ", zeros[0]));
    else if (quantizer.get_int("qmin") >= 0)
      unsigned_.push_back(value->name);
    if (scales.size() > 1) channels_.push_back(str(value->name, ": ", scales.size(), " scales"));
    const auto known = std::find_if(read_.begin(), read_.end(), [&](const Read& read) { return read.value == value; });
    Read& read = known == read_.end() ? read_.emplace_back(Read{value, {}}) : *known;
    if (scales.size() == 1) read.scales.insert(scales[0]);
  }

  void add_float_readers(const ir::Graph& graph) {
    for (const Read& read : read_) {
      if (read.scales.size() > 1) several_.push_back(str(read.value->name, ": ", read.scales.size(), " scales"));
      for (const Node* reader : read.value->users)
        if (!ir::is_quantizer(reader))
          placement_.push_back(str(read.value->name, " for ", reader->info().name, " '", reader->name, "'"));
    }
    for (const auto& node : graph.nodes())
      if (is_weighted(*node) && !ir::is_quantizer(node->input(1)->producer))
        placement_.push_back(str("the weights of '", node->name, "'"));
  }

  std::vector<CacheLoss> list() && {
    std::vector<CacheLoss> out;
    const auto add = [&](const char* what, std::vector<std::string>& cases) {
      if (!cases.empty()) out.push_back({what, std::move(cases)});
    };
    add("scales of weights: TensorRT takes max|w| / 127 of each output channel", weights_);
    add("zero points: its codes are symmetric", zero_points_);
    add("unsigned codes: signed ones have half the resolution", unsigned_);
    add("a scale for each channel of an activation: the largest is taken", channels_);
    add("several scales of one tensor: the largest is taken", several_);
    add("what stays in floating point: TensorRT may take INT8 wherever there is a range", placement_);
    return out;
  }

 private:
  std::vector<std::string> weights_, zero_points_, unsigned_, channels_, several_, placement_;
  struct Read {
    const Value* value;
    std::set<float> scales;
  };
  std::vector<Read> read_;  // activations, in the order of the graph
};

}  // namespace

std::vector<CacheLoss> cache_losses(const ir::Graph& quantized) {
  Losses losses;
  for (const auto& node : quantized.nodes()) {
    if (!ir::is_quantizer(node.get())) continue;
    if (ir::constant_behind(node->input(0)))
      losses.add_weights(*node);
    else
      losses.add_activation(*node);
  }
  losses.add_float_readers(quantized);
  return std::move(losses).list();
}

}  // namespace octet::quant
