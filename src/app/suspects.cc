#include "app/suspects.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "ir/query.h"
#include "ir/traits.h"
#include "quant/fusion_model.h"

namespace octet::app {
namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g %%", 100 * share);
  return text;
}

// Of what a tensor's codes alone lose. 8 bits of a bell curve that nothing clips give about 40.
constexpr double kGoodDb = 30;
constexpr double kManyClipped = 0.01, kWideRatio = 16;

std::string exclusion(const ir::Node& quantizer) {
  const std::vector<ir::Node*>& users = quantizer.output()->users;
  return users.empty() ? "" : str("quant.exclude: [\"", users[0]->name, "\"]");
}

bool is_depthwise(const ir::Node& node) {
  return node.kind == ir::OpKind::kConv && node.get_int("group", 1) > 1;
}

}  // namespace

double channel_range_ratio(const ir::Tensor& tensor, size_t axis) {
  const ir::Shape& shape = tensor.shape();
  if (axis >= shape.size()) return 1;
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  std::vector<double> ranges(static_cast<size_t>(shape[axis]), 0.0);
  const std::vector<float> values = tensor.to_floats();
  for (size_t i = 0; i < values.size(); ++i) {
    double& range = ranges[i / static_cast<size_t>(inner) % ranges.size()];
    range = std::max(range, static_cast<double>(std::fabs(values[i])));
  }
  double least = 0, most = 0;
  for (const double range : ranges) {
    if (range <= 0) continue;
    least = least == 0 ? range : std::min(least, range);
    most = std::max(most, range);
  }
  return least > 0 ? most / least : 1;
}

std::string advice(const ir::Graph& graph, const Suspicion& suspicion) {
  const ir::Node* q = graph.find_node(suspicion.quantizer);
  OCTET_CHECK(q != nullptr, suspicion.quantizer);
  const bool one_scale = q->input(1)->constant->size() == 1;
  const ir::Node* reader = q->output()->users.empty() ? nullptr : q->output()->users[0];
  if (q->input(0)->is_constant()) {
    const double ratio = channel_range_ratio(*q->input(0)->constant, 0);
    if (one_scale && ratio > kWideRatio)
      return str("its channels, whose ranges differ ", std::lround(ratio),
                 " times, share a scale: quant.weights.granularity: channel, or quant.equalize: exact");
    if (reader && is_depthwise(*reader))
      return "weights of a depthwise convolution: quant.gptq: {images: 500}, or stage qat";
    return str("quant.gptq: {images: 500}, or float: ", exclusion(*q));
  }
  if (suspicion.clipped > kManyClipped)
    return str(percent(suspicion.clipped), " of it is clipped: a wider range, quant.calibration.tensors: [{name: \"",
               q->input(0)->name, "\", method: max}]");
  if (suspicion.own_db < kGoodDb && quant::hardly_negative(q->input(0)))  // channels cannot be scaled across Swish
    return str("few of its values fill the range",
               ir::has_symmetric_codes(*q) ? ": quant.activations.asymmetric: yes (not for TensorRT)" : ": stage qat",
               ", or float: ", exclusion(*q));
  if (suspicion.own_db < kGoodDb)
    return str("few of its values fill the range: quant.equalize: exact evens out its channels, or float: ",
               exclusion(*q));
  return str("what reads it is sensitive: stage qat, or float: ", exclusion(*q));
}

}  // namespace octet::app
