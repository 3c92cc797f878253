#include "passes/free_batch.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "base/error.h"
#include "ir/infer.h"

namespace octet::passes {
namespace {

using ir::OpKind;

constexpr int64_t kPrime = 10'007;

int64_t count(const ir::Shape& shape, size_t from) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from), shape.end(), int64_t{1},
                         std::multiplies<>());
}

// A Reshape to [batch, ...] of what has that batch: from here on the size is copied (0 in ONNX).
void copy_batch_in_reshapes(ir::Graph& graph, int64_t batch) {
  for (const auto& node : graph.nodes()) {
    if (node->kind != OpKind::kReshape) continue;
    const ir::Value *x = node->input(0), *y = node->output(), *wanted = node->input(1);
    if (x->is_constant() || !wanted->is_constant() || !x->type.shape || !y->type.shape) continue;
    const ir::Shape &from = *x->type.shape, &to = *y->type.shape;
    if (from.empty() || to.empty() || from[0] != batch || to[0] != batch || !ir::is_static(from) || !ir::is_static(to))
      continue;
    std::vector<int64_t> sizes = wanted->constant->to_ints();
    if (sizes.size() != to.size() || sizes[0] != batch || count(from, 1) != count(to, 1)) continue;
    // PyTorch's newer exporter sets allowzero always; of sizes without a zero it says nothing.
    if (node->get_int("allowzero") != 0 && std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) continue;
    node->attributes.erase("allowzero");
    sizes[0] = 0;
    const std::string name = graph.unique_name(wanted->name + "/free_batch");
    graph.set_input(node.get(), 1,
                    graph.add_constant(name, ir::Tensor::of<int64_t>({static_cast<int64_t>(sizes.size())}, sizes)));
  }
  graph.remove_dead();
}

// Along the first axis, with sizes that do not show it.
bool goes_over_images(const ir::Node& node) {
  const auto rank = static_cast<int64_t>(node.input(0)->type.shape->size());
  switch (node.kind) {
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
    case OpKind::kArgMax: {
      const int64_t axis = node.get_int("axis", node.kind == OpKind::kArgMax ? 0 : -1);
      return axis == 0 || axis == -rank;
    }
    case OpKind::kSlice: {
      if (!node.has_input(4)) return false;
      if (!node.input(4)->is_constant()) return true;
      for (int64_t step : node.input(4)->constant->to_ints())
        if (step < 0) return true;
      return false;
    }
    default:
      return false;
  }
}

bool images_stay_apart(const ir::Graph& graph) {
  std::set<const ir::Value*> batched(graph.inputs().begin(), graph.inputs().end());
  for (const auto& node : graph.nodes()) {
    bool reads = false;
    for (const ir::Value* in : node->inputs) reads |= in != nullptr && batched.count(in) > 0;
    if (!reads) continue;
    if (!node->input(0)->type.shape || goes_over_images(*node)) return false;
    for (const ir::Value* out : node->outputs) {
      if (out == nullptr) continue;
      if (!out->type.shape || out->type.shape->empty() || out->type.shape->front() != kPrime) return false;
      for (size_t i = 1; i < out->type.shape->size(); ++i)
        if ((*out->type.shape)[i] > 0 && (*out->type.shape)[i] % kPrime == 0) return false;
      batched.insert(out);
    }
  }
  for (const ir::Value* output : graph.outputs())
    if (!batched.count(output)) return false;
  return true;
}

}  // namespace

bool free_batch(ir::Graph& graph) {
  if (graph.inputs().size() != 1 || !graph.inputs()[0]->type.shape || graph.inputs()[0]->type.shape->empty())
    return false;
  const int64_t batch = graph.inputs()[0]->type.shape->front();
  if (batch == ir::kDynamic) return true;
  ir::Graph freed = graph.clone();
  copy_batch_in_reshapes(freed, batch);
  try {
    ir::set_batch(freed, kPrime);
    if (!images_stay_apart(freed)) return false;
    ir::set_batch(freed, ir::kDynamic);
  } catch (const UserError&) {
    return false;  // no shape fits another batch
  }
  graph = std::move(freed);
  return true;
}

void require_batch(ir::Graph& graph, int64_t batch) {
  if (graph.inputs().size() != 1) return;
  const ir::Value* input = graph.inputs()[0];
  if (!input->type.shape || input->type.shape->empty()) return;
  const int64_t own = input->type.shape->front();
  if (own != ir::kDynamic && own != batch && !free_batch(graph))
    fail_usage("input '", input->name, "' is ", ir::type_string(input->type),
               ", and the network does not treat the images of another batch each by itself, so it can have the batch ",
               own, " only");
}

}  // namespace octet::passes
