#include "passes/train_scales.h"

#include <algorithm>
#include <set>
#include <string>

#include "ir/query.h"

namespace octet::passes {
namespace {

const char* state_of(quant::ScaleGradient gradient) {
  switch (gradient) {
    case quant::ScaleGradient::kNo:
      return ir::kFrozen;
    case quant::ScaleGradient::kLsq:
      return ir::kLearned;
    case quant::ScaleGradient::kLsqPlus:
      return ir::kLearnedOffset;
    case quant::ScaleGradient::kPact:
      return ir::kLearnedClip;
  }
  return ir::kFrozen;
}

// A zero point that is to learn belongs to quantizers of one scale.
void own_zero_point(ir::Graph& graph, ir::Node& node) {
  ir::Value* zero_point = node.input(2);
  const bool shared = std::any_of(zero_point->users.begin(), zero_point->users.end(), [&](const ir::Node* user) {
    return !ir::is_quantizer(user) || user->input(1) != node.input(1);
  });
  if (!shared) return;
  ir::Value* own = graph.add_constant(graph.unique_name(node.input(1)->name + "/zero_point"), *zero_point->constant);
  const std::vector<ir::Node*> users = zero_point->users;
  for (ir::Node* user : users)
    if (ir::is_quantizer(user) && user->input(1) == node.input(1)) graph.set_input(user, 2, own);
}

}  // namespace

int train_scales(ir::Graph& graph, const quant::ScaleTraining& training) {
  std::set<const ir::Value*> trained;
  for (const auto& node : graph.nodes()) {
    if (!ir::is_quantizer(node.get()) || node->get_string("state") == ir::kObserving) continue;
    const bool of_weights = node->input(0)->is_constant();
    const quant::ScaleGradient gradient = of_weights ? training.weights : training.activations;
    node->attributes["state"] = std::string(state_of(gradient));
    if (gradient != quant::ScaleGradient::kNo) trained.insert(node->input(1));
    if (gradient == quant::ScaleGradient::kLsqPlus) own_zero_point(graph, *node);
  }
  return static_cast<int>(trained.size());
}

}  // namespace octet::passes
