#include "lower/channel_shuffle.h"

#include "ir/axes.h"
#include "ir/query.h"

namespace octet::lower {

using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Value;

std::optional<ChannelShuffle> channel_shuffle(const ir::Graph& graph, const Node& node) {
  if (node.kind != OpKind::kReshape || !node.output()->type.shape) return std::nullopt;
  const Node* turn = node.input(0)->producer;
  if (turn == nullptr || turn->kind != OpKind::kTranspose || !single_use(graph, turn->output())) return std::nullopt;
  const Node* split = turn->input(0)->producer;
  if (split == nullptr || split->kind != OpKind::kReshape || !single_use(graph, split->output())) return std::nullopt;
  const Value* x = split->input(0);
  if (!x->type.shape || !split->output()->type.shape) return std::nullopt;
  const Shape &image = *x->type.shape, &groups = *split->output()->type.shape;
  if (image.size() != 4 || *node.output()->type.shape != image || !ir::is_static(image) || groups.size() < 4)
    return std::nullopt;
  std::vector<int64_t> order = ir::all_axes(groups.size());
  std::swap(order[1], order[2]);
  const bool fits = groups[0] == image[0] && groups[1] * groups[2] == image[1] && groups[1] > 0;
  if (!fits || ir::permutation_of(*turn, groups.size()) != order) return std::nullopt;
  return ChannelShuffle{x, groups[1]};
}

}  // namespace octet::lower
