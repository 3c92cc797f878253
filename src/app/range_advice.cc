#include "app/range_advice.h"

#include <algorithm>

#include "base/error.h"
#include "ir/query.h"

namespace octet::app {
namespace {

// Of the codes below zero three quarters or more are unused.
bool hardly_negative(const quant::Range& range) {
  return range.count > 0 && range.min < 0 && -4 * range.min < std::min(range.max, range.amax);
}

}  // namespace

std::string asymmetry_advice(const ir::Graph& graph, const std::map<std::string, quant::Range>& ranges,
                             const quant::QuantOptions& options) {
  if (options.placement.asymmetric_activations.has_value() || options.placement.target == quant::Target::kTensorRt)
    return "";
  int all = 0, wasteful = 0;
  for (const auto& node : graph.nodes()) {
    if (node->kind != ir::OpKind::kFakeQuantize || node->input(0)->is_constant()) continue;
    ++all;
    const auto range = ranges.find(node->input(0)->name);
    wasteful += range != ranges.end() && ir::has_symmetric_codes(*node) && hardly_negative(range->second);
  }
  if (wasteful == 0 || 4 * wasteful < all) return "";
  return str(wasteful, " of ", all,
             " quantized activations reach far above zero and hardly below it, and use little more than half of their "
             "codes; quant.activations.asymmetric: yes (octet quantize --asymmetric) gives them nearly twice the "
             "steps, but TensorRT does not take that");
}

}  // namespace octet::app
