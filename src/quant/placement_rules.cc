#include "quant/placement_rules.h"

#include <algorithm>

#include "ir/query.h"
#include "ir/traits.h"
#include "quant/fusion_model.h"

namespace octet::quant {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

bool is_clip_or_relu(const Node* node) {
  return node && (node->kind == OpKind::kRelu || (node->kind == OpKind::kClip && is_activation(*node)));
}

// What TAO's rewrite takes for a ReLU.
bool is_relu_family(const Node* node) {
  return is_clip_or_relu(node) ||
         (node && (node->kind == OpKind::kPRelu || node->kind == OpKind::kElu || node->kind == OpKind::kLeakyRelu));
}

// Gives out elements as they come in, so that their codes stay.
bool only_moves(const Node& node) {
  return ir::data_inputs(node) == 1 && (node.info().has(ir::trait::kMoves) || node.kind == OpKind::kDropout);
}

bool is_behind_weights(const Node& batch_norm) {
  return batch_norm.kind == OpKind::kBatchNormalization && !standalone_batch_norm(batch_norm);
}

bool is_quantized_by_tao(const Graph& graph, const Value& value) {
  const Node* node = value.producer;
  if (!node) return true;
  if (only_moves(*node)) return false;
  const Node* reader = ir::only_reader(graph, &value);
  if (is_weighted(*node) && reader && reader->kind == OpKind::kBatchNormalization) return false;
  return !((is_weighted(*node) || is_behind_weights(*node)) && is_relu_family(reader));
}

bool is_quantized_by_tfmot(const Graph& graph, const Value& value) {
  const Node* node = value.producer;
  if (!node) return true;
  if (only_moves(*node) || node->kind == OpKind::kMaxPool || node->kind == OpKind::kGlobalMaxPool) return false;
  const auto is_concat = [](const Node* user) { return user->kind == OpKind::kConcat; };
  if (!graph.is_output(&value) && !value.users.empty() &&
      std::all_of(value.users.begin(), value.users.end(), is_concat))
    return false;
  const Node* reader = ir::only_reader(graph, &value);
  if (is_weighted(*node) && reader && reader->kind == OpKind::kBatchNormalization) return false;
  return !((is_weighted(*node) || is_behind_weights(*node) || node->kind == OpKind::kAdd) && is_clip_or_relu(reader));
}

}  // namespace

OCTET_ENUM_NAMES(PlacementRule, {PlacementRule::kAuto, "auto"}, {PlacementRule::kResNetV1, "resnet_v1"},
                 {PlacementRule::kResNetV2, "resnet_v2"}, {PlacementRule::kMobileNet, "mobilenet"},
                 {PlacementRule::kEfficientNet, "efficientnet"}, {PlacementRule::kInception, "inception"},
                 {PlacementRule::kTao, "tao"}, {PlacementRule::kDla, "dla"}, {PlacementRule::kTfmot, "tfmot"})

Rules combine(const std::vector<PlacementRule>& families) {
  Rules r;
  for (const PlacementRule name : families) {
    const bool any = name == PlacementRule::kAuto;
    r.residual_add |= any || name == PlacementRule::kResNetV1 || name == PlacementRule::kResNetV2 ||
                      name == PlacementRule::kMobileNet || name == PlacementRule::kEfficientNet;
    r.squeeze_excite |= any || name == PlacementRule::kEfficientNet;
    r.standalone_batch_norm |= any || name == PlacementRule::kResNetV2;
    r.max_pool |= name == PlacementRule::kResNetV2 || name == PlacementRule::kInception;
    r.shared_max_pool |= any;
    r.tao |= name == PlacementRule::kTao;
    r.dla |= name == PlacementRule::kDla;
    r.tfmot |= name == PlacementRule::kTfmot;
  }
  return r;
}

bool is_quantized_tensor(const Graph& graph, const Value& value, const Rules& rules) {
  if (value.is_constant() || value.type.data_type != ir::DataType::kFloat32) return false;
  if (value.type.shape && value.type.shape->empty()) return false;  // a number is no tensor of codes
  return (rules.dla && !is_clip_or_relu(ir::only_reader(graph, &value))) ||
         (rules.tao && is_quantized_by_tao(graph, value)) || (rules.tfmot && is_quantized_by_tfmot(graph, value));
}

std::unordered_set<const Node*> tao_output_nodes(const Graph& graph) {
  std::unordered_set<const Node*> out;
  std::vector<const Value*> todo;
  for (const Value* value : graph.outputs())
    if (value->users.empty()) todo.push_back(value);
  while (!todo.empty()) {
    const Node* node = todo.back()->producer;
    todo.pop_back();
    if (!node || !out.insert(node).second) continue;
    const bool computes_without_weights = node->info().has(ir::trait::kElementwise) ||
                                          node->info().has(ir::trait::kMoves) || node->kind == OpKind::kSoftmax ||
                                          node->kind == OpKind::kLogSoftmax;
    if (!computes_without_weights) continue;
    for (const Value* input : node->inputs)
      if (input && !input->is_constant()) todo.push_back(input);
  }
  return out;
}

}  // namespace octet::quant
