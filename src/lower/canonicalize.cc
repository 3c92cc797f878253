#include "lower/canonicalize.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "ir/traits.h"
#include "lower/moved_codes.h"
#include "lower/products.h"
#include "lower/quant_params.h"
#include "lower/weighted.h"
#include "passes/rewrite.h"

namespace octet::lower {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

bool same_params(const Node& a, const Node& b) {
  const auto x = quantizer_params(a), y = quantizer_params(b);
  return std::bit_cast<uint32_t>(x.scale) == std::bit_cast<uint32_t>(y.scale) && x.zero_point == y.zero_point &&
         x.qmin == y.qmin && x.qmax == y.qmax;
}

// Codes have a layout in ranks 2 and 4; a quantizer stays where it has one.
bool has_layout(const Value* v) {
  return v->type.shape->size() == 2 || v->type.shape->size() == 4;
}

// Nobody has floats for codes if the quantizer moves from the result of `op` to its inputs: the engine moves the codes,
// or products read through `op`. A rank without a layout has none to lose.
bool codes_reach_readers(const Graph& graph, const Node& op, const Value* quantized) {
  if (!has_layout(op.output()) || moves_codes(op)) return true;
  return flattens_images(op) && !graph.is_output(quantized) &&
         std::all_of(quantized->users.begin(), quantized->users.end(), [&](const Node* user) {
           return user->kind == OpKind::kGemm && is_constant_gemm(*user) && user->input(0) == quantized;
         });
}

// `bias` as a constant of `channels` elements that lies along `axis` of a tensor of `rank`; nothing when it does not.
std::optional<std::vector<float>> row_constant(const Value* bias, int64_t channels, size_t rank, size_t axis) {
  if (!bias->is_constant() || bias->constant->size() != channels) return std::nullopt;
  const ir::Shape& shape = bias->constant->shape();
  if (shape.size() > rank) return std::nullopt;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 && i + rank - shape.size() != axis) return std::nullopt;
  if (channels > 1 && (rank - axis > shape.size() || shape[shape.size() - (rank - axis)] != channels))
    return std::nullopt;
  return bias->constant->to_floats();
}

// The Add behind `node` and its constant, when it can be the node's bias.
Node* bias_add(const Graph& graph, const Node& node, int64_t channels, size_t rank, size_t axis,
               std::vector<float>* bias) {
  if (!single_use(graph, node.output())) return nullptr;
  Node* add = node.output()->users[0];
  if (add->kind != OpKind::kAdd) return nullptr;
  const Value* other = add->input(0) == node.output() ? add->input(1) : add->input(0);
  const auto values = row_constant(other, channels, rank, axis);
  if (!values) return nullptr;
  *bias = *values;
  return add;
}

Value* add_bias_constant(Graph& graph, const Node& node, const std::vector<float>& bias) {
  return graph.add_constant(graph.unique_name(node.name + "/bias"),
                            ir::Tensor::of<float>({static_cast<int64_t>(bias.size())}, bias));
}

}  // namespace

int fold_bias_adds(Graph& graph) {
  int folded = 0;
  // Only these: the Adds among the nodes go on the way.
  std::vector<Node*> weighted;
  for (Node* node : node_list(graph))
    if (node->kind == OpKind::kConv || node->kind == OpKind::kConvTranspose || node->kind == OpKind::kMatMul)
      weighted.push_back(node);
  for (Node* node : weighted) {
    std::vector<float> bias;
    if (node->kind != OpKind::kMatMul && !node->has_input(2) && node->output()->type.shape->size() == 4) {
      const int64_t channels = (*node->output()->type.shape)[1];
      Node* add = bias_add(graph, *node, channels, 4, 1, &bias);
      if (add == nullptr || *add->output()->type.shape != *node->output()->type.shape) continue;
      passes::take_bias(graph, node, add, add_bias_constant(graph, *node, bias));
      ++folded;
    } else if (node->kind == OpKind::kMatMul && is_constant(node->input(1)) && !is_constant(node->input(0)) &&
               node->input(0)->type.shape->size() == 2 && node->input(1)->type.shape->size() == 2) {
      const int64_t columns = (*node->output()->type.shape)[1];
      Node* add = bias_add(graph, *node, columns, 2, 1, &bias);
      if (add && *add->output()->type.shape != *node->output()->type.shape) continue;
      if (add)
        passes::take_bias(graph, node, add, add_bias_constant(graph, *node, bias));
      else
        node->kind = OpKind::kGemm;
      ++folded;
    }
  }
  return folded;
}

int merge_quantizers(Graph& graph) {
  std::vector<Node*> merged;  // erased at the end: their outputs are among the values that are walked over
  for (Value* v : graph.values()) {
    if (v->is_constant()) continue;
    std::vector<Node*> quantizers;
    for (Node* user : v->users)
      if (is_quantizer(user) && user->input(0) == v) quantizers.push_back(user);
    for (size_t i = 1; i < quantizers.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        if (quantizers[j] == nullptr || !same_params(*quantizers[i], *quantizers[j])) continue;
        if (graph.is_output(quantizers[i]->output())) continue;
        graph.replace_uses(quantizers[i]->output(), quantizers[j]->output());
        merged.push_back(quantizers[i]);
        quantizers[i] = nullptr;
        break;
      }
  }
  for (Node* node : merged) graph.erase(node);
  graph.sort_topologically();
  return static_cast<int>(merged.size());
}

int hoist_quantizers(Graph& graph) {
  int changes = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (Node* quantizer : node_list(graph)) {
      if (!is_quantizer(quantizer) || is_constant(quantizer->output()) || feeds_products(*quantizer)) continue;
      Value* x = quantizer->input(0);
      Node* op = x->producer;
      if (op == nullptr || !lets_quantizer_pass(*op) || !single_use(graph, x) || op->outputs.size() != 1) continue;
      if (has_layout(x) && !has_layout(op->input(0))) continue;
      if (!codes_reach_readers(graph, *op, quantizer->output())) continue;
      quantizer_params(*quantizer);  // refuses what cannot be moved
      for (size_t i = 0; i < ir::data_inputs(*op); ++i) {
        Value* in = op->input(i);
        if (in->is_constant()) continue;
        const std::string name = graph.unique_name(in->name + "/hoisted");
        Node* moved = graph.add_node(OpKind::kFakeQuantize, name, {in, quantizer->input(1), quantizer->input(2)},
                                     {name}, quantizer->attributes, op);
        moved->output()->type = in->type;
        graph.set_input(op, i, moved->output());
      }
      passes::supersede(graph, quantizer->output(), x);
      changed = true;
      ++changes;
      break;
    }
    changes += merge_quantizers(graph);
  }
  return changes;
}

}  // namespace octet::lower
