#include "passes/shift_biases.h"

#include "base/error.h"
#include "ir/query.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

bool is_corrected(const ir::Node& node) {
  const bool has_bias = node.kind == ir::OpKind::kConv || node.kind == ir::OpKind::kConvTranspose ||
                        (node.kind == ir::OpKind::kGemm && node.get_float("beta") == 1.0f);
  if (!has_bias || !node.input(1)->producer || !ir::is_quantizer(node.input(1)->producer)) return false;
  return ir::constant_behind(node.input(1)) && (!node.has_input(2) || node.input(2)->is_constant());
}

}  // namespace

std::vector<const ir::Node*> nodes_to_correct(const ir::Graph& graph) {
  std::vector<const ir::Node*> out;
  for (const auto& node : graph.nodes())
    if (is_corrected(*node)) out.push_back(node.get());
  return out;
}

int shift_biases(ir::Graph& graph, const std::map<std::string, std::vector<double>>& shifts) {
  for (const auto& [name, shift] : shifts) {
    ir::Node* node = graph.find_node(name);
    OCTET_CHECK(node, name);
    const std::vector<double> ones(shift.size(), 1), zeros(shift.size(), 0);
    fold_affine(graph, node, {.scale = ones, .center = zeros, .shift = shift}, /*trainable_bias=*/true,
                "the correction of its bias");
  }
  return static_cast<int>(shifts.size());
}

}  // namespace octet::passes
