#include "lower/products.h"

#include <algorithm>
#include <optional>

#include "engine/kernels/int8_matmul.h"
#include "ir/axes.h"
#include "ir/query.h"
#include "ir/traits.h"
#include "lower/emit_float.h"
#include "lower/moves.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using engine::Layout;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Value;
using Strides = std::vector<int64_t>;

bool is_factor(const Value* v) {
  return is_quantizer(v->producer) && !is_constant(v) && v->producer->input(1)->is_constant() &&
         v->producer->input(1)->constant->size() == 1;
}

// The strides of the same elements in another shape; nothing where they need a copy.
std::optional<Strides> reshaped(const Shape& from, const Strides& strides, const Shape& to) {
  Strides out(to.size(), 0);
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    // The least number of axes on both sides with as many elements.
    size_t i_end = i + 1, j_end = j + 1;
    int64_t left = from[i], right = to[j];
    while (left != right) {
      if (left < right) {
        if (i_end == from.size()) return std::nullopt;
        left *= from[i_end++];
      } else {
        if (j_end == to.size()) return std::nullopt;
        right *= to[j_end++];
      }
    }
    int64_t inner = -1;  // the last axis with more than one element; those before must follow on it
    for (size_t a = i; a < i_end; ++a)
      if (from[a] != 1) inner = static_cast<int64_t>(a);
    if (inner >= 0) {
      int64_t step = strides[static_cast<size_t>(inner)], expected = step;
      for (size_t a = static_cast<size_t>(inner) + 1; a-- > i;) {
        if (from[a] == 1) continue;
        if (strides[a] != expected) return std::nullopt;
        expected *= from[a];
      }
      for (size_t a = j_end; a-- > j; step *= to[a]) out[a] = step;
    }
    i = i_end, j = j_end;
  }
  return out;  // what is left on either side are ones
}

// The view of `node`'s output, given that of its input.
std::optional<FloatView> behind(const FloatView& in, const Node& node, const Value* value) {
  const Shape& shape = shape_of(node.input(0));
  FloatView out{.source = in.source, .offset = in.offset};
  if (node.kind == OpKind::kTranspose) {
    for (int64_t axis : ir::permutation_of(node, shape.size())) out.strides.push_back(in.strides[axis]);
    return out;
  }
  if (node.info().has(ir::trait::kReshapes)) {
    auto strides = reshaped(shape, in.strides, shape_of(value));
    if (!strides) return std::nullopt;
    out.strides = std::move(*strides);
    return out;
  }
  const BoxMoves boxes = *box_moves(node);
  for (const BoxMove& move : boxes.moves)
    if (node.output(move.output) == value) {
      out.strides = in.strides;
      for (size_t i = 0; i < out.strides.size(); ++i)
        out.offset += move.from[i] * in.strides[i], out.strides[i] *= move.step[i];
      return out;
    }
  return std::nullopt;
}

bool is_view(const Node* node) {
  return node != nullptr && (node->kind == OpKind::kTranspose || node->kind == OpKind::kSplit ||
                             node->kind == OpKind::kSlice || node->info().has(ir::trait::kReshapes));
}

// The Softmax over the last axis that gives its result as codes.
const Node* softmax_of(const ir::Graph& graph, const Value* factor) {
  const Value* x = factor->producer->input(0);
  const Node* node = x->producer;
  if (node == nullptr || node->kind != OpKind::kSoftmax || !single_use(graph, x)) return nullptr;
  const size_t rank = shape_of(x).size();
  return ir::normal_axis(*node, node->get_int("axis"), rank) + 1 == rank ? node : nullptr;
}

// The codes of a factor: rows, or of the second factor columns where its floats lie so.
int codes_of(PlanBuilder& b, const ir::Graph& graph, const Value* quantized, bool may_swap) {
  const Node& quantizer = *quantized->producer;
  if (const Node* softmax = softmax_of(graph, quantized)) {
    if (const int known = b.code_rows(quantized, Layout::kCodeRows); known >= 0) return known;
    const int out = b.define_code_rows(quantized, quantizer_params(quantizer), Layout::kCodeRows);
    b.set_source(*softmax, *softmax, "Softmax", "computes in floats; its result is codes");
    emit_softmax_rows(b, *softmax, out);
    return out;
  }
  const FloatView view = float_view(quantizer.input(0));
  const size_t rank = view.strides.size();
  const bool swapped = may_swap && view.strides[rank - 1] != 1 && view.strides[rank - 2] == 1;
  const Layout layout = swapped ? Layout::kCodeColumns : Layout::kCodeRows;
  if (const int known = b.code_rows(quantized, layout); known >= 0) return known;
  const int in = b.dense(view.source), out = b.define_code_rows(quantized, quantizer_params(quantizer), layout);
  Strides strides = view.strides;
  if (swapped) std::swap(strides[rank - 1], strides[rank - 2]);
  strides.insert(strides.begin(), 4 - rank, 0);  // rank 3: one image
  engine::Step& s = b.step("quantize_rows", quantizer, {in}, {out});
  s.int8 = true;
  s.lists["in_strides"] = strides;
  if (view.offset != 0) s.ints["in_offset"] = view.offset;
  return out;
}

}  // namespace

bool is_int8_product(const Node& node) {
  if (node.kind != OpKind::kMatMul || !is_factor(node.input(0)) || !is_factor(node.input(1))) return false;
  const Shape &a = shape_of(node.input(0)), &b = shape_of(node.input(1));
  return a.size() == b.size() && (a.size() == 3 || a.size() == 4) && std::equal(a.begin(), a.end() - 2, b.begin()) &&
         a.back() <= kernels::kMaxMatMulDepth;
}

bool feeds_products(const Node& quantizer) {
  const Value* codes = quantizer.output();
  return is_factor(codes) && !codes->users.empty() &&
         std::all_of(codes->users.begin(), codes->users.end(), [](const Node* user) { return is_int8_product(*user); });
}

FloatView float_view(const Value* value) {
  std::vector<const Value*> chain = {value};
  while (is_view(chain.back()->producer) && !is_constant(chain.back()))
    chain.push_back(chain.back()->producer->input(0));
  const auto whole = [](const Value* v) { return FloatView{.source = v, .strides = dense_strides(shape_of(v))}; };
  FloatView view = whole(chain.back());
  for (size_t i = chain.size() - 1; i-- > 0;) {
    auto next = behind(view, *chain[i]->producer, chain[i]);
    view = next ? std::move(*next) : whole(chain[i]);
  }
  return view;
}

const Value* floats_of_factor(const ir::Graph& graph, const Value* factor) {
  const Node* softmax = softmax_of(graph, factor);
  return softmax != nullptr ? softmax->input(0) : float_view(factor->producer->input(0)).source;
}

void emit_int8_product(PlanBuilder& b, const ir::Graph& graph, const Node& node) {
  const int left = codes_of(b, graph, node.input(0), false), right = codes_of(b, graph, node.input(1), true);
  const int out = b.define_dense(node.output());
  b.step("int8_matmul", node, {left, right}, {out}).int8 = true;
}

}  // namespace octet::lower
