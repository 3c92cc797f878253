#include <algorithm>
#include <limits>

#include "ir/axes.h"
#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

using ir::Shape;

constexpr int64_t kMostCopies = 4096;

// Axes of one element are expanded, others joined with themselves.
Nodes tile(SourceNode node, int, UpgradeContext& context) {
  if (node.inputs.size() != 2) fail("has ", node.inputs.size(), " inputs, expected 2");
  if (context.constant(node.inputs[0])) return {node};  // folded
  const std::vector<int64_t> repeats = constant_ints(node, 1, "repeats", context);
  const Shape shape = known_shape(node.inputs[0], context);
  if (repeats.size() != shape.size()) fail("has ", repeats.size(), " repeats for a tensor of rank ", shape.size());
  Formula f(node, context);
  std::string y = node.inputs[0];
  std::vector<int64_t> wide(shape.size(), 1);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (repeats[i] < 1 || repeats[i] > kMostCopies)
      fail("repeats axis ", i, " ", repeats[i], " times; supported are 1 to ", kMostCopies);
    if (shape[i] == 1) {
      wide[i] = repeats[i];
    } else if (repeats[i] > 1) {
      y = f("Concat", std::vector<std::string>(static_cast<size_t>(repeats[i]), y),
            {{"axis", static_cast<int64_t>(i)}});
    }
  }
  if (std::any_of(wide.begin(), wide.end(), [](int64_t r) { return r > 1; }))
    y = f("Expand", {y, f.ints("shape", wide)});
  if (y == node.inputs[0]) f("Identity", {y});
  return f.nodes();
}

// Output channels are (row in the block, column in the block, input channel): every blocksize-th pixel from each start,
// joined. So it needs no sizes.
Nodes space_to_depth(SourceNode node, int, UpgradeContext& context) {
  const int64_t block = take<int64_t>(node, "blocksize").value_or(0);
  require_no_attributes(node);
  if (block < 1 || block > 64) fail("blocksize is ", block, ", expected 1 to 64");
  const Shape shape = known_shape(node.inputs[0], context);
  if (shape.size() != 4) fail("its input has ", shape.size(), " axes, expected 4");
  for (size_t i = 2; i < 4; ++i)
    if (shape[i] != ir::kDynamic && shape[i] % block != 0)
      fail("blocksize ", block, " does not divide the size ", shape[i], " of axis ", i);
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  Formula f(node, context);
  std::vector<std::string> parts;
  for (int64_t row = 0; row < block; ++row) {
    const std::string rows = block == 1 ? node.inputs[0] : f.slice(node.inputs[0], 2, row, kEnd, block);
    for (int64_t column = 0; column < block; ++column)
      parts.push_back(block == 1 ? rows : f.slice(rows, 3, column, kEnd, block));
  }
  f("Concat", parts, {{"axis", int64_t{1}}});
  return f.nodes();
}

}  // namespace

std::vector<UpgradeRow> layout_rules() {
  return {{"Tile", tile}, {"SpaceToDepth", space_to_depth}};
}

}  // namespace octet::onnx
