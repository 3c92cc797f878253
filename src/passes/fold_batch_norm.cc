#include "passes/fold_batch_norm.h"

#include <cmath>

#include "ir/query.h"
#include "passes/channel_arithmetic.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

ChannelAffine affine_of(const Node& bn) {
  const std::vector<float> gamma = bn.input(1)->constant->to_floats(), beta = bn.input(2)->constant->to_floats(),
                           mean = bn.input(3)->constant->to_floats(), variance = bn.input(4)->constant->to_floats();
  const double epsilon = bn.get_float("epsilon");
  ChannelAffine a;
  for (size_t c = 0; c < gamma.size(); ++c) {
    a.scale.push_back(static_cast<double>(gamma[c]) / std::sqrt(static_cast<double>(variance[c]) + epsilon));
    a.center.push_back(mean[c]);
    a.shift.push_back(beta[c]);
  }
  return a;
}

bool can_fold(const Graph& graph, const Node& bn) {
  if (bn.kind != OpKind::kBatchNormalization || bn.get_int("training_mode") != 0) return false;
  for (size_t i = 1; i < 5; ++i)
    if (!bn.input(i)->is_constant()) return false;
  for (size_t i = 1; i < bn.outputs.size(); ++i)
    if (bn.output(i) && (!bn.output(i)->users.empty() || graph.is_output(bn.output(i)))) return false;
  const Value* x = bn.input(0);
  return x->producer && single_use(graph, x) && can_fold_affine(*x->producer, bn.input(1)->constant->size());
}

void fold(Graph& graph, Node* bn) {
  Value* before = bn->input(0);
  fold_affine(graph, before->producer, affine_of(*bn), bn->input(2)->trainable,
              str("BatchNormalization '", bn->name, "'"));
  supersede(graph, bn->output(), before);
}

}  // namespace

int fold_batch_norm(Graph& graph) {
  int folded = 0;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node* node = (it++)->get();  // first, because folding erases the node
    if (fold_channel_arithmetic(graph, node)) {
      ++folded;
    } else if (can_fold(graph, *node)) {
      fold(graph, node);
      ++folded;
    }
  }
  graph.remove_dead();
  return folded;
}

}  // namespace octet::passes
