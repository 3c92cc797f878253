#include "lower/moved_codes.h"

#include <unordered_map>
#include <vector>

#include "ir/traits.h"
#include "lower/channel_shuffle.h"
#include "lower/emit_float.h"
#include "lower/lowering.h"
#include "lower/moves.h"
#include "lower/quant_params.h"
#include "lower/weighted.h"

namespace octet::lower {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

bool unit_steps(const BoxMoves& boxes) {
  for (const BoxMove& move : boxes.moves)
    for (int64_t step : move.step)
      if (step != 1) return false;
  return true;
}

bool has_one_scale(const Node& quantizer) {
  return quantizer.input(1)->is_constant() && quantizer.input(1)->constant->size() == 1;
}

// Relu makes other codes, and the compiler reads it as a clamp (Lowering::carries_codes).
bool moves_elements(const Node& node) {
  return ir::commutes_with_quantizer(node) && node.kind != OpKind::kRelu;
}

// Whose codes a tensor has, were all moves done on codes, and whether one of them is not.
struct Origin {
  const Node* quantizer = nullptr;
  bool moved_as_floats = false;
};
using Origins = std::unordered_map<const Value*, Origin>;

Origin origin_of_result(const Graph& graph, const Node& node, const Origins& known) {
  const auto origin = [&](const Value* v) {
    const auto found = known.find(v);
    return found == known.end() ? Origin{} : found->second;
  };
  if (node.inputs.empty() || node.input(0) == nullptr) return {};
  if (const auto shuffle = channel_shuffle(graph, node)) return origin(shuffle->x);
  if (is_quantizer(&node)) return is_constant(node.output()) || !has_one_scale(node) ? Origin{} : Origin{&node, false};
  Origin out = origin(node.input(0));
  if (out.quantizer == nullptr || node.kind == OpKind::kIdentity || node.kind == OpKind::kDropout) return out;
  if (!moves_elements(node)) return {};
  if (node.kind == OpKind::kConcat)
    for (const Value* in : node.inputs) {
      const Origin other = origin(in);
      if (other.quantizer == nullptr || quantizer_params(*other.quantizer) != quantizer_params(*out.quantizer))
        return {};
      out.moved_as_floats |= other.moved_as_floats;
    }
  // Pools over one axis become pools over images.
  const bool pool = node.kind == OpKind::kMaxPool || node.kind == OpKind::kGlobalMaxPool;
  out.moved_as_floats |= !pool && !moves_codes(node);
  return out;
}

bool takes_codes(const Node& node) {
  return node.info().has(ir::trait::kWeighted) && is_constant(node.input(1)) && is_quantizer(node.input(1)->producer);
}

}  // namespace

bool lets_quantizer_pass(const Node& node) {
  switch (node.kind) {
    case OpKind::kRelu:      // a clamp is part of the step that makes its input, with the quantizer behind it
    case OpKind::kSplit:     // its results have quantizers of their own
    case OpKind::kExpand:    // the engine repeats floats
    case OpKind::kIdentity:  // what is left of these keeps the names of two outputs apart
    case OpKind::kDropout:
      return false;
    default:
      return ir::commutes_with_quantizer(node);
  }
}

bool moves_codes(const Node& node) {
  switch (node.kind) {
    case OpKind::kMaxPool:
    case OpKind::kGlobalMaxPool:
      return node.input(0)->type.shape->size() == 4 && node.outputs.size() == 1;
    case OpKind::kConcat:
      return true;
    case OpKind::kSplit:
    case OpKind::kSlice:
      return unit_steps(*box_moves(node));
    case OpKind::kPad:
      return repeated_pixels(node).has_value();
    case OpKind::kResize:
      if (node.get_string("mode") != "nearest") return false;
      check_resize(node);
      return true;
    default:
      return node.info().has(ir::trait::kReshapes) && keeps_features(node);
  }
}

const Value* codes_before_moves(const Value* value) {
  for (const Node* p = value->producer; p != nullptr; p = value->producer) {
    if (is_quantizer(p)) return is_constant(value) ? nullptr : value;
    if (!moves_elements(*p)) return nullptr;
    value = p->input(0);
  }
  return nullptr;
}

int quantize_behind_moves(Graph& graph) {
  int layers = 0;
  Origins origins;
  std::unordered_map<const Value*, Value*> quantized;
  for (Node* node : node_list(graph)) {
    if (takes_codes(*node) && !is_constant(node->input(0))) {
      Value* x = node->input(0);
      Origin from = origins[x];
      // A Gemm reads rows that are flattened images as these.
      if (node->kind == OpKind::kGemm && x->producer != nullptr && flattens_images(*x->producer))
        from = origins[x->producer->input(0)];
      if (from.quantizer != nullptr && from.moved_as_floats) {
        Value*& again = quantized[x];
        if (again == nullptr) {
          again = graph.add(OpKind::kFakeQuantize, graph.unique_name(x->name + "/codes"),
                            {x, from.quantizer->input(1), from.quantizer->input(2)}, from.quantizer->attributes, node);
          again->type = x->type;
        }
        graph.set_input(node, 0, again);
        ++layers;
      }
    }
    for (const Value* out : node->outputs)
      if (out != nullptr)
        if (const Origin origin = origin_of_result(graph, *node, origins); origin.quantizer != nullptr)
          origins[out] = origin;
  }
  return layers;
}

}  // namespace octet::lower
