#include "models/freeze.h"

#include <set>

#include "ir/query.h"
#include "ir/traits.h"

namespace octet::models {
namespace {

void freeze_parameters(const ir::Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!ir::is_parameter_input(node.kind, i)) continue;
    ir::Value* value = node.inputs[i];
    if (value && is_quantizer(value->producer)) value = value->producer->inputs[0];
    if (value) value->trainable = false;
  }
}

}  // namespace

void freeze(ir::Graph& graph, const ModelOptions& options) {
  if (options.freeze_bn)
    for (const auto& node : graph.nodes())
      if (node->kind == ir::OpKind::kBatchNormalization) freeze_parameters(*node);
  if (options.freeze_blocks.empty()) return;
  const std::map<std::string, int64_t> blocks = build_backbone(options).blocks;
  std::set<int64_t> known, found;
  for (const auto& [node, block] : blocks) known.insert(block);
  const std::set<int64_t> frozen(options.freeze_blocks.begin(), options.freeze_blocks.end());
  for (const int64_t block : frozen)
    if (!known.contains(block))
      fail_usage("model.freeze_blocks: ", options.arch, " has no block ", block, "; its blocks are ", *known.begin(),
                 " to ", *known.rbegin());
  for (const auto& node : graph.nodes()) {
    const auto block = blocks.find(node->name);
    if (block == blocks.end() || !frozen.contains(block->second)) continue;
    found.insert(block->second);
    freeze_parameters(*node);
  }
  for (const int64_t block : frozen)
    if (!found.contains(block))
      fail_usage("model.freeze_blocks: the network has none of the layers that block ", block, " of ", options.arch,
                 " has; name the arch and the layout that it was built with");
}

}  // namespace octet::models
