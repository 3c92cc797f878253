#include "onnx/upgrade.h"

#include <algorithm>
#include <map>

#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

const std::map<std::string, UpgradeRow>& rules() {
  static const std::map<std::string, UpgradeRow> table = [] {
    std::map<std::string, UpgradeRow> all;
    for (const auto& subject :
         {old_form_rules(), resize_rules(), activation_rules(), arithmetic_rules(), normalization_rules(),
          reduction_rules(), indexing_rules(), layout_rules(), einsum_rules(), attention_rules(), affine_grid_rules()})
      for (const UpgradeRow& row : subject) OCTET_CHECK(all.emplace(row.op, row).second, row.op);
    return all;
  }();
  return table;
}

}  // namespace

bool is_rewritten(const std::string& op) {
  return rules().count(op) > 0;
}

std::vector<std::string> rewritten_operators() {
  std::vector<std::string> names;
  for (const auto& [name, row] : rules()) names.push_back(name);
  return names;
}

std::vector<SourceNode> upgrade(SourceNode node, int opset, UpgradeContext& context) {
  const auto it = rules().find(node.op);
  if (it == rules().end()) return {std::move(node)};
  if (node.outputs.empty()) fail("has no outputs");
  if (node.inputs.empty() || node.inputs[0].empty()) fail("has no input");
  return it->second.rule(std::move(node), opset, context);
}

}  // namespace octet::onnx
