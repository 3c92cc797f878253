// The rules of upgrade(), by subject: one row an operator. A rule gets a node that has an output and its first input,
// and returns what replaces it. Every node that it returns is in its newest form: rules do not apply to one another.
#pragma once
#include <vector>

#include "onnx/upgrade.h"

namespace octet::onnx {

using Nodes = std::vector<SourceNode>;

struct UpgradeRow {
  const char* op;
  Nodes (*rule)(SourceNode node, int opset, UpgradeContext& context);
};

std::vector<UpgradeRow> old_form_rules();       // attributes that became inputs, and other changes of form
std::vector<UpgradeRow> resize_rules();         // Resize, Upsample
std::vector<UpgradeRow> activation_rules();     // Gelu, Swish, Selu ...
std::vector<UpgradeRow> arithmetic_rules();     // Sum, Mean, Reciprocal ...
std::vector<UpgradeRow> normalization_rules();  // InstanceNormalization, GroupNormalization, RMSNormalization ...
std::vector<UpgradeRow> reduction_rules();      // ReduceL2, ReduceLogSumExp, LpPool ...
std::vector<UpgradeRow> indexing_rules();       // Gather, ScatterND, Where, of constant indices
std::vector<UpgradeRow> layout_rules();         // Tile, SpaceToDepth ...
std::vector<UpgradeRow> einsum_rules();         // Einsum
std::vector<UpgradeRow> attention_rules();      // Attention
std::vector<UpgradeRow> affine_grid_rules();    // AffineGrid

}  // namespace octet::onnx
