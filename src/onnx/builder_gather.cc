// A Gather that takes everything in its order is a Reshape, or nothing. PyTorch's newer exporter writes as_strided so,
// which it puts behind every global average pool: a Reshape to one axis, then a Gather of all its elements into the
// shape of before. Undone at import, the first axis stays that of the images for everything behind.
#include <algorithm>
#include <numeric>

#include "ir/axes.h"
#include "onnx/builder.h"

namespace octet::onnx {
namespace {

// Whether the indices of a Gather along an axis of `size` are 0, 1 ... size - 1.
bool takes_all_in_order(const ir::Tensor& indices, int64_t size) {
  if (indices.data_type() != ir::DataType::kInt64 && indices.data_type() != ir::DataType::kInt32) return false;
  if (indices.size() != size) return false;
  std::vector<int64_t> ascending(static_cast<size_t>(size));
  std::iota(ascending.begin(), ascending.end(), int64_t{0});
  return indices.to_ints() == ascending;
}

}  // namespace

SourceNode Builder::without_gather_of_all(SourceNode node) {
  if (node.op != "Gather" || node.inputs.size() != 2 || !node.has_input(0) || !node.has_input(1)) return node;
  const std::string &x = node.inputs[0], &indices = node.inputs[1];
  if (entry(x).known_before_run()) return node;
  const std::optional<ir::Shape> from = shape(x);
  const std::optional<ir::Tensor> taken = constant(indices);
  if (!from || from->empty() || !ir::is_static(*from) || !taken) return node;
  int64_t stated = 0;
  if (const auto it = node.attributes.find("axis"); it != node.attributes.end()) {
    const int64_t* value = std::get_if<int64_t>(&it->second);
    if (!value) return node;
    stated = *value;
  }
  const size_t axis = ir::normal_axis(stated, from->size());
  if (!takes_all_in_order(*taken, (*from)[axis])) return node;
  ir::Shape to = *from;
  const auto place = to.erase(to.begin() + static_cast<int64_t>(axis));
  to.insert(place, taken->shape().begin(), taken->shape().end());
  std::string source = x;
  const ir::Node* before = entry(x).value->producer;
  if (before && before->kind == ir::OpKind::kReshape && entries_.count(before->input(0)->name))
    source = before->input(0)->name;
  const std::optional<ir::Shape> original = shape(source);
  SourceNode made{"Identity", node.name, {source}, node.outputs, {}};
  if (original != to) {
    made.op = "Reshape";
    made.inputs.push_back(
        add_constant(node.name + "_shape", ir::Tensor::of<int64_t>({static_cast<int64_t>(to.size())}, to)));
  }
  return made;
}

}  // namespace octet::onnx
