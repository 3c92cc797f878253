#include "passes/channel_layout.h"

#include "ir/query.h"

namespace octet::passes {

using ir::OpKind;

std::optional<ChannelLayout> channel_layout(const ir::Node& node) {
  const ir::Value* w = ir::constant_behind(node.input(1));
  if (!w || w->constant->shape().size() < 2) return std::nullopt;
  const ir::Shape& shape = w->constant->shape();
  ChannelLayout out{.rows = static_cast<size_t>(shape[0]), .columns = static_cast<size_t>(shape[1])};
  if (out.rows == 0 || out.columns == 0) return std::nullopt;
  const std::optional<ir::Shape>& read = node.input(0)->type.shape;
  switch (node.kind) {
    case OpKind::kConv:
    case OpKind::kConvTranspose:
      out.groups = static_cast<size_t>(node.get_int("group"));
      out.taps = static_cast<size_t>(w->constant->size()) / (out.rows * out.columns);
      out.rows_are_outputs = node.kind == OpKind::kConv;
      return out.groups > 0 && out.rows % out.groups == 0 ? std::optional(out) : std::nullopt;
    case OpKind::kGemm:
      if (node.get_int("transA") != 0) return std::nullopt;
      out.rows_are_outputs = node.get_int("transB") != 0;
      return out;
    case OpKind::kMatMul:
      // Of matrices only: the channels of higher ranks are not on axis 1.
      if (shape.size() != 2 || !read || read->size() != 2) return std::nullopt;
      out.rows_are_outputs = false;
      return out;
    default:
      return std::nullopt;
  }
}

std::vector<double> sums_over_taps(const ChannelLayout& layout, std::span<const float> weights) {
  std::vector<double> out(layout.rows * layout.columns);
  for (size_t i = 0; i < weights.size(); ++i) out[i / layout.taps] += weights[i];
  return out;
}

}  // namespace octet::passes
