// Reading and writing at constant places: slices, joined.
#include <algorithm>
#include <limits>

#include "ir/axes.h"
#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

using ir::normal_axis;
using ir::Shape;
using ir::Tensor;

constexpr size_t kMostPieces = 64;  // of one Gather
constexpr int64_t kFar = int64_t{1} << 40;

// Indices first, first + step ... that one Slice reads.
struct Piece {
  int64_t first, step, count;
  int64_t last() const { return first + step * (count - 1); }
  // The bound of a Slice: an end of -1 would be the last element.
  int64_t end() const {
    if (step > 0) return last() == -1 ? std::numeric_limits<int64_t>::max() : last() + 1;
    return last() == 0 ? std::numeric_limits<int64_t>::min() : last() - 1;
  }
};

// Longest pieces from the first index on; a pair of far indices makes no piece of a large step.
std::vector<Piece> pieces_of(const std::vector<int64_t>& at) {
  std::vector<Piece> out;
  for (size_t i = 0; i < at.size();) {
    Piece piece{at[i], 1, 1};
    size_t run = 1;
    if (i + 1 < at.size() && at[i + 1] != at[i]) {
      const int64_t step = at[i + 1] - at[i];
      while (i + run < at.size() && at[i + run] - at[i + run - 1] == step) ++run;
      if (run > 2 || step == 1 || step == -1) piece.step = step, piece.count = static_cast<int64_t>(run);
    }
    i += static_cast<size_t>(piece.count);
    out.push_back(piece);
  }
  return out;
}

// Gather of constant indices from an activation: a Slice for each run of them. `fits` is false where that is too many
// or the size of the axis, which tells whether an index is in range, is dynamic.
Nodes gather(SourceNode node, int, UpgradeContext& context) {
  if (node.inputs.size() != 2 || context.constant(node.inputs[0])) return {node};
  const auto indices = context.constant(node.inputs[1]);
  const auto shape = context.shape(node.inputs[0]);
  if (!indices || !shape || indices->size() == 0) return {node};
  const auto axis = static_cast<int64_t>(normal_axis(take<int64_t>(node, "axis").value_or(0), shape->size()));
  const int64_t size = (*shape)[static_cast<size_t>(axis)];
  std::vector<int64_t> at = indices->to_ints();
  for (int64_t& index : at) {
    if (index < -kFar || index > kFar) fail("an index is out of range");
    if (size == ir::kDynamic)
      fail("reads places of axis ", axis, ", whose size is dynamic; export the model with fixed sizes");
    if (index < -size || index >= size) fail("index ", index, " is out of range for axis ", axis, " of size ", size);
  }
  const bool negative = std::all_of(at.begin(), at.end(), [](int64_t i) { return i < 0; });
  if (!negative)
    for (int64_t& index : at) index += index < 0 ? size : 0;
  const std::vector<Piece> pieces = pieces_of(at);
  if (pieces.size() > kMostPieces)
    fail("reads ", pieces.size(), " runs of indices from what the network computes; supported are up to ", kMostPieces);
  Formula f(node, context);
  std::vector<std::string> parts;
  for (const Piece& p : pieces) parts.push_back(f.slice(node.inputs[0], axis, p.first, p.end(), p.step));
  if (parts.size() > 1) parts = {f("Concat", parts, {{"axis", axis}})};
  if (indices->shape().empty()) {
    f("Squeeze", {parts[0], f.ints("axes", {axis})});
  } else if (indices->shape().size() > 1) {
    Shape open = *shape;
    open.erase(open.begin() + axis);
    open.insert(open.begin() + axis, indices->shape().begin(), indices->shape().end());
    f.reshape(parts[0], reshape_target(open, static_cast<size_t>(axis)));
  }
  return f.nodes();
}

// A block of places, [low, high) in each of the leading axes.
struct Block {
  std::vector<int64_t> low, high;
};

// The block that the index tuples walk through in order; nothing where they do something else.
std::optional<Block> block_of(const Tensor& indices, const Shape& data) {
  const auto axes = static_cast<size_t>(indices.shape().back());
  const std::vector<int64_t> at = indices.to_ints();
  if (axes == 0 || at.empty()) return std::nullopt;
  const auto place = [&](size_t tuple, size_t a) {
    const int64_t index = at[tuple * axes + a];
    return index < 0 && data[a] != ir::kDynamic ? index + data[a] : index;
  };
  const size_t tuples = at.size() / axes;
  Block block;
  size_t count = 1;
  for (size_t a = 0; a < axes; ++a) {
    block.low.push_back(place(0, a));
    block.high.push_back(place(tuples - 1, a) + 1);
    const int64_t extent = block.high[a] - block.low[a];
    if (block.low[a] < 0 || extent < 1 || (data[a] != ir::kDynamic && block.high[a] > data[a])) return std::nullopt;
    if (static_cast<size_t>(extent) > tuples) return std::nullopt;
    count *= static_cast<size_t>(extent);
    if (count > tuples) return std::nullopt;
  }
  if (count != tuples) return std::nullopt;
  std::vector<int64_t> now = block.low;
  for (size_t t = 0; t < tuples; ++t) {
    for (size_t a = 0; a < axes; ++a)
      if (place(t, a) != now[a]) return std::nullopt;
    for (size_t a = axes; a-- > 0;) {
      if (++now[a] < block.high[a]) break;
      now[a] = block.low[a];
    }
  }
  return block;
}

// `data` with the block replaced by `updates`, from axis `a` on: what stands before it, what it changes, what is
// behind.
std::string pasted(Formula& f, const std::string& data, const std::string& updates, const Shape& shape,
                   const Block& block, size_t a) {
  if (a == block.low.size()) return updates;
  const auto axis = static_cast<int64_t>(a);
  if (block.low[a] == 0 && block.high[a] == shape[a]) return pasted(f, data, updates, shape, block, a + 1);
  std::vector<std::string> parts;
  if (block.low[a] > 0) parts.push_back(f.slice(data, axis, 0, block.low[a]));
  const bool deeper = a + 1 < block.low.size();
  parts.push_back(
      pasted(f, deeper ? f.slice(data, axis, block.low[a], block.high[a]) : data, updates, shape, block, a + 1));
  if (block.high[a] != shape[a])
    parts.push_back(f.slice(data, axis, block.high[a], std::numeric_limits<int64_t>::max()));
  return f("Concat", parts, {{"axis", axis}});
}

// Writing a block, as exporters write an assignment to a slice.
Nodes scatter_nd(SourceNode node, int, UpgradeContext& context) {
  if (node.inputs.size() != 3) fail("has ", node.inputs.size(), " inputs, expected data, indices and updates");
  if (const std::string how = take<std::string>(node, "reduction").value_or("none"); how != "none")
    fail("reduction=", how, " is not supported");
  const auto indices = context.constant(node.inputs[1]);
  if (!indices) fail("its indices '", node.inputs[1], "' are computed by the network; they should be constants");
  const Shape shape = known_shape(node.inputs[0], context);
  if (indices->shape().empty() || indices->shape().back() > static_cast<int64_t>(shape.size()))
    fail("indices ", ir::shape_string(indices->shape()), " do not fit data ", ir::shape_string(shape));
  const auto block = block_of(*indices, shape);
  if (!block)
    fail("its indices are no block of places in their order; export the assignment as slices that are joined (Concat)");
  Shape target = shape;
  for (size_t a = 0; a < block->low.size(); ++a) target[a] = block->high[a] - block->low[a];
  Shape given = indices->shape();
  given.pop_back();
  given.insert(given.end(), shape.begin() + static_cast<int64_t>(block->low.size()), shape.end());
  Formula f(node, context);
  const std::string updates = given == target ? node.inputs[2] : f.reshape(node.inputs[2], reshape_target(target, 0));
  if (pasted(f, node.inputs[0], updates, shape, *block, 0) == updates) f("Identity", {updates});
  return f.nodes();
}

// A constant choice: sums of products with ones and zeros, so the numbers that are not chosen should be finite.
Nodes where(SourceNode node, int, UpgradeContext& context) {
  if (node.inputs.size() != 3) fail("has ", node.inputs.size(), " inputs, expected a condition and two choices");
  const auto condition = context.constant(node.inputs[0]);
  if (!condition || (context.constant(node.inputs[1]) && context.constant(node.inputs[2]))) return {node};
  if (condition->data_type() != ir::DataType::kBool) fail("its condition should be bool");
  for (size_t i = 1; i < 3; ++i)
    if (context.data_type(node.inputs[i]) != ir::DataType::kFloat32) return {node};
  std::vector<float> chosen, left;
  for (const std::byte b : condition->bytes()) {
    chosen.push_back(b == std::byte{0} ? 0 : 1);
    left.push_back(1 - chosen.back());
  }
  Formula f(node, context);
  const auto part = [&](const std::string& x, const std::vector<float>& mask, const char* hint) {
    const auto numbers = context.constant(x);
    const std::string m = context.add_constant(node.outputs[0] + hint, Tensor::of<float>(condition->shape(), mask));
    if (!numbers || numbers->size() != 1) return f("Mul", {x, m});
    std::vector<float> values = mask;  // without the product of an infinity with zero
    for (float& v : values) v = v == 0 ? 0 : numbers->to_floats()[0];
    Shape shape = condition->shape();
    while (shape.size() < numbers->shape().size()) shape.insert(shape.begin(), 1);
    return context.add_constant(node.outputs[0] + hint, Tensor::of<float>(shape, values));
  };
  const std::string a = part(node.inputs[1], chosen, "_chosen"), b = part(node.inputs[2], left, "_left");
  f("Add", {a, b});
  return f.nodes();
}

}  // namespace

std::vector<UpgradeRow> indexing_rules() {
  return {{"Gather", gather}, {"ScatterND", scatter_nd}, {"Where", where}};
}

}  // namespace octet::onnx
