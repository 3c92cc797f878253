#include "passes/train_scales.h"

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
    case quant::ScaleGradient::kPact:
      return ir::kLearnedClip;
  }
  return ir::kFrozen;
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
  }
  return static_cast<int>(trained.size());
}

}  // namespace octet::passes
