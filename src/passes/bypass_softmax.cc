#include "passes/bypass_softmax.h"

#include <algorithm>
#include <vector>

#include "ir/infer.h"

namespace octet::passes {
namespace {

using ir::Node;
using ir::OpKind;

bool keeps_scores(const Node& node) {
  switch (node.kind) {
    case OpKind::kIdentity:
    case OpKind::kDropout:
    case OpKind::kCast:
    case OpKind::kFakeQuantize:
    case OpKind::kLog:
      return true;
    default:
      return node.info().has(ir::trait::kReshapes);
  }
}

// The axis counts the classes, and nothing but the batch lies beside it.
bool over_classes(const Node& softmax, int64_t classes) {
  const ir::Value* x = softmax.input(0);
  if (!x->type.shape) return false;
  const ir::Shape& shape = *x->type.shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = softmax.get_int("axis", -1);
  if (axis < 0) axis += rank;
  for (int64_t i = 0; i < rank; ++i)
    if (i == axis ? shape[static_cast<size_t>(i)] != classes : i > 0 && shape[static_cast<size_t>(i)] != 1)
      return false;
  return true;
}

}  // namespace

bool bypass_softmax(ir::Graph& graph) {
  if (graph.outputs().size() != 1 || graph.program) return false;
  const ir::Value* output = graph.outputs()[0];
  if (!output->type.shape || output->type.shape->empty()) return false;
  const int64_t classes = output->type.shape->back();
  std::vector<Node*> tail;  // from the output back
  Node* node = output->producer;
  for (; node != nullptr && keeps_scores(*node); node = node->input(0)->producer) tail.push_back(node);
  if (node == nullptr || (node->kind != OpKind::kSoftmax && node->kind != OpKind::kLogSoftmax)) return false;
  if (classes < 1 || !over_classes(*node, classes)) return false;
  ir::Value* scores = node->input(0);
  for (auto at = tail.rbegin(); at != tail.rend(); ++at) {
    if ((*at)->kind == OpKind::kFakeQuantize || (*at)->kind == OpKind::kLog) continue;
    graph.set_input(*at, 0, scores);
    scores = (*at)->output();
  }
  graph.set_output_value(0, scores);
  graph.remove_dead();
  ir::infer_shapes(graph);
  return true;
}

}  // namespace octet::passes
