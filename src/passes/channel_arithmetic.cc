#include "passes/channel_arithmetic.h"

#include <cmath>
#include <optional>

#include "ir/query.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Value;

bool is_arithmetic(OpKind kind) {
  return kind == OpKind::kAdd || kind == OpKind::kSub || kind == OpKind::kMul || kind == OpKind::kDiv;
}

// A constant operand as one number for each of `channels` along `axis` of a tensor of `rank` dimensions.
std::optional<std::vector<double>> per_channel(const Value& constant, int64_t channels, size_t axis, size_t rank) {
  if (constant.type.data_type != ir::DataType::kFloat32) return std::nullopt;
  const Shape& shape = constant.constant->shape();
  const auto values = constant.constant->values<float>();
  if (shape.size() > rank) return std::nullopt;
  if (values.size() == 1) return std::vector<double>(static_cast<size_t>(channels), values[0]);
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && rank - shape.size() + d != axis) return std::nullopt;
  if (static_cast<int64_t>(values.size()) != channels) return std::nullopt;
  return std::vector<double>(values.begin(), values.end());
}

std::optional<ChannelAffine> affine_of(const Node& node, size_t constant, int64_t channels, size_t axis, size_t rank) {
  const auto operand = per_channel(*node.input(constant), channels, axis, rank);
  if (!operand) return std::nullopt;
  const size_t n = operand->size();
  ChannelAffine a{std::vector<double>(n, 1.0), std::vector<double>(n, 0.0), std::vector<double>(n, 0.0)};
  for (size_t c = 0; c < n; ++c) {
    const double v = (*operand)[c];
    if (!std::isfinite(v)) return std::nullopt;  // a mask
    switch (node.kind) {
      case OpKind::kAdd:
        a.shift[c] = v;
        break;
      case OpKind::kSub:
        a.shift[c] = constant == 1 ? -v : v;
        if (constant == 0) a.scale[c] = -1;
        break;
      case OpKind::kMul:
        a.scale[c] = v;
        break;
      default:
        if (constant == 0 || v == 0) return std::nullopt;
        a.scale[c] = 1 / v;
    }
  }
  return a;
}

}  // namespace

// y = arithmetic(layer(x), constant) -> y = layer'(x).
bool fold_channel_arithmetic(Graph& graph, Node* node) {
  if (!is_arithmetic(node->kind)) return false;
  const size_t constant = node->input(1)->is_constant() ? 1 : 0;
  Value* y = node->input(1 - constant);
  if (!node->input(constant)->is_constant() || !y->producer || !single_use(graph, y)) return false;
  if (!y->type.shape || y->type.shape->size() < 2) return false;
  const size_t rank = y->type.shape->size(), axis = y->producer->kind == OpKind::kMatMul ? rank - 1 : 1;
  const int64_t channels = (*y->type.shape)[axis];
  // The layer first, so that the channels are as many as it has weights, which fit into memory.
  if (channels == ir::kDynamic || !can_fold_affine(*y->producer, channels, /*moves=*/false)) return false;
  const auto affine = affine_of(*node, constant, channels, axis, rank);
  if (!affine || !can_fold_affine(*y->producer, channels, affine->moves())) return false;
  fold_affine(graph, y->producer, *affine, node->input(constant)->trainable,
              str(node->info().name, " '", node->name, "'"));
  supersede(graph, node->output(), y);
  return true;
}

}  // namespace octet::passes
