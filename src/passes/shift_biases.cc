#include "passes/shift_biases.h"

#include "base/error.h"
#include "passes/rewrite.h"

namespace octet::passes {

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
