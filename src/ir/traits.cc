#include "ir/traits.h"

#include <iterator>

namespace octet::ir {

size_t data_inputs(const Node& node) {
  return node.info().has(trait::kOperands) ? node.inputs.size() : 1;
}

bool commutes_with_quantizer(const Node& node) {
  if (node.kind == OpKind::kResize) return node.get_string("mode") == "nearest";
  if (node.kind == OpKind::kPad) return node.get_string("mode", "constant") != "constant";
  return node.info().has(trait::kCommutes);
}

bool is_parameter_input(OpKind kind, size_t index) {
  constexpr Trait kTrains[] = {trait::kTrains0, trait::kTrains1, trait::kTrains2};
  return index < std::size(kTrains) && op_info(kind).has(kTrains[index]);
}

}  // namespace octet::ir
