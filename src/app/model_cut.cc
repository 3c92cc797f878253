#include "app/model_cut.h"

#include <algorithm>

#include "base/error.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "ir/traits.h"

namespace octet::app {
namespace {

numerics::QuantParams params_of(const ir::Node& q) {
  return {q.input(1)->constant->to_floats().at(0), static_cast<int32_t>(q.input(2)->constant->to_ints().at(0)),
          static_cast<int32_t>(q.get_int("qmin")), static_cast<int32_t>(q.get_int("qmax"))};
}

// Those of weights are left out, also where operators on constants lie before them.
std::vector<ir::Node*> activation_quantizers(const ir::Graph& graph) {
  std::vector<ir::Node*> out;
  std::set<const ir::Value*> fixed{nullptr};
  const auto is_fixed = [&](const ir::Value* v) { return fixed.count(v) > 0 || v->is_constant(); };
  for (const auto& node : graph.nodes()) {
    if (std::all_of(node->inputs.begin(), node->inputs.end(), is_fixed))
      fixed.insert(node->outputs.begin(), node->outputs.end());
    else if (node->kind == ir::OpKind::kFakeQuantize)
      out.push_back(node.get());
  }
  return out;
}

// All that a reader of `value` makes of it is moved, and then quantized by `params`.
bool only_quantizes(const ir::Graph& graph, const ir::Node& reader, const ir::Value* value,
                    const numerics::QuantParams& params) {
  std::vector<std::pair<const ir::Node*, const ir::Value*>> front{{&reader, value}};
  std::set<const ir::Value*> seen;  // what is split and joined again is looked at once
  for (size_t i = 0; i < front.size(); ++i) {
    const auto [node, in] = front[i];
    if (ir::is_quantizer(node) && node->input(0) == in && params_of(*node) == params) continue;
    if (!node->info().has(ir::trait::kMoves) || !ir::commutes_with_quantizer(*node)) return false;
    for (const ir::Value* out : node->outputs) {
      if (out == nullptr || !seen.insert(out).second) continue;
      if (graph.is_output(out)) return false;
      for (const ir::Node* user : out->users) front.push_back({user, out});
    }
  }
  return true;
}

// The nearest tensor behind `v` that is compared, or an output of the graph.
std::string next_compared(const ir::Graph& graph, const ir::Value* v, const std::set<std::string>& compared) {
  std::vector<const ir::Value*> front{v};
  std::set<const ir::Value*> seen{v};
  for (size_t i = 0; i < front.size(); ++i) {
    if (i > 0 && (compared.count(front[i]->name) || graph.is_output(front[i]))) return front[i]->name;
    for (const ir::Node* user : front[i]->users)
      for (const ir::Value* out : user->outputs)
        if (out != nullptr && seen.insert(out).second) front.push_back(out);
  }
  return graph.outputs().at(0)->name;
}

// What has the elements of `v` in their order and lies before it.
const ir::Value* same_elements(const ir::Value* v) {
  if (v->producer == nullptr) return nullptr;
  switch (v->producer->kind) {
    case ir::OpKind::kIdentity:
    case ir::OpKind::kDropout:
    case ir::OpKind::kFlatten:
    case ir::OpKind::kReshape:
    case ir::OpKind::kSqueeze:
    case ir::OpKind::kUnsqueeze:
      return v->producer->input(0);
    default:
      return nullptr;
  }
}

// The names that an engine may have for the codes of `q`: its own, that of its rows (lower/rewrite_forms.cc), and those
// of quantizers that lowering moved.
std::vector<std::string> engine_names(const ir::Node& q) {
  const std::string& own = q.output()->name;
  std::vector<std::string> names{own, own + "/rows", own + "/quantized"};
  for (const ir::Value* v = q.input(0); v != nullptr; v = same_elements(v))
    for (const char* end : {"/hoisted", "/rows/hoisted"}) names.push_back(v->name + end);
  return names;
}

bool one_pixel(const ir::Value* v) {
  const auto& shape = v->type.shape;
  return shape && (shape->size() == 2 || (shape->size() == 4 && (*shape)[2] == 1 && (*shape)[3] == 1));
}

// What the engine calls the codes on the way to a factor of one pixel, which a squeeze-and-excite keeps to itself
// (engine::TensorDump): by quantizer, counted from the factor back to the mean.
std::map<const ir::Node*, std::string> gate_names(const ir::Graph& graph) {
  std::map<const ir::Node*, std::string> names;
  for (const auto& node : graph.nodes()) {
    if (node->kind != ir::OpKind::kFakeQuantize || one_pixel(node->output())) continue;
    const ir::Node* product = node->input(0)->producer;
    while (product && product->kind != ir::OpKind::kMul && product->info().has(ir::trait::kActivation))
      product = product->input(0)->producer;
    if (!product || product->kind != ir::OpKind::kMul) continue;
    for (const ir::Value* v : product->inputs) {
      size_t k = 0;
      for (; v && !v->is_constant() && v->producer && one_pixel(v); v = v->producer->input(0))
        if (v->producer->kind == ir::OpKind::kFakeQuantize)
          names.emplace(v->producer, str(node->output()->name, "/gate/", k++));
    }
  }
  return names;
}

// The tensor whose codes a quantizer repeats: one of the same source and parameters, or its own input.
const QuantizedTensor* same_codes(const QuantizedTensor& tensor, const std::vector<QuantizedTensor>& all) {
  for (const QuantizedTensor& other : all)
    if (other.place == TensorPlace::kCompared && other.params == tensor.params &&
        (other.source == tensor.source || other.tensor == tensor.source))
      return &other;
  return nullptr;
}

}  // namespace

TensorDumps tensors_by_name(std::vector<engine::TensorDump> dumps) {
  TensorDumps out;
  for (engine::TensorDump& dump : dumps) {
    const std::string name = dump.name;
    if (dump.is_codes || !out.count(name)) out[name] = std::move(dump);
  }
  return out;
}

std::vector<int32_t> codes_of(const engine::TensorDump& dump, const numerics::QuantParams& params) {
  std::vector<int32_t> codes;
  if (dump.is_codes) {
    codes = dump.codes;
    if (dump.inner && params.qmin < 0)
      for (int32_t& code : codes) code -= 128;
    return codes;
  }
  codes.reserve(dump.values.size());
  for (float value : dump.values) {
    codes.push_back(numerics::quantize(value, params));
    if (numerics::dequantize(codes.back(), params) != value) return {};
  }
  return codes;
}

std::vector<QuantizedTensor> find_quantized_tensors(const ir::Graph& graph, const TensorDumps& found,
                                                    const TensorDumps& expected) {
  std::vector<QuantizedTensor> tensors;
  std::set<std::string> compared;
  // The first of the names under which there are codes; empty: none.
  const auto held = [](const TensorDumps& dumps, const std::vector<std::string>& names,
                       const numerics::QuantParams& params) {
    for (const std::string& name : names)
      if (const auto dump = dumps.find(name); dump != dumps.end() && !codes_of(dump->second, params).empty())
        return name;
    return std::string();
  };
  const std::map<const ir::Node*, std::string> gates = gate_names(graph);
  for (const ir::Node* q : activation_quantizers(graph)) {
    QuantizedTensor t{.tensor = q->output()->name,
                      .source = q->input(0)->name,
                      .engine_tensor = {},
                      .params = params_of(*q),
                      .of_image = q->input(0) == graph.inputs().at(0),
                      .note = {}};
    std::vector<std::string> names = engine_names(*q);
    if (const auto inner = gates.find(q); inner != gates.end()) names.push_back(inner->second);
    t.engine_tensor = held(found, names, t.params);
    if (t.engine_tensor.empty()) {
      t.place = held(expected, names, t.params).empty() ? TensorPlace::kMerged : TensorPlace::kMissing;
      t.note = "the engine has no codes of that name";
    } else if (const engine::TensorDump& dump = found.at(t.engine_tensor);
               dump.is_codes && !dump.inner &&
               (dump.scale != t.params.scale || dump.zero_point != t.params.zero_point)) {
      t.place = TensorPlace::kOtherScale;
      t.note = str("scale ", t.params.scale, " and zero point ", t.params.zero_point, " in the model, ", dump.scale,
                   " and ", dump.zero_point, " in the engine");
    } else {
      compared.insert(t.tensor);
    }
    tensors.push_back(std::move(t));
  }
  for (QuantizedTensor& t : tensors) {
    if (t.place != TensorPlace::kMerged) continue;
    const QuantizedTensor* same = same_codes(t, tensors);
    t.note =
        same ? "has the codes of '" + same->tensor + "'"
             : "is part of the step that makes '" + next_compared(graph, graph.find_value(t.tensor), compared) + "'";
  }
  return tensors;
}

int64_t count_activation_quantizers(const ir::Graph& graph) {
  return static_cast<int64_t>(activation_quantizers(graph).size());
}

CutModel cut_model(const ir::Graph& graph, const std::vector<QuantizedTensor>& tensors) {
  CutModel out{graph.clone(), {}, {}};
  out.pieces.program = nullptr;  // it has other outputs from now on
  ir::Graph& g = out.pieces;
  std::map<std::string, ir::Value*> forced;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].place != TensorPlace::kCompared) continue;
    ir::Value* value = g.find_value(tensors[i].tensor);
    forced[tensors[i].tensor] = g.add_input(g.unique_name("forced/" + tensors[i].tensor), value->type);
    out.compared.push_back(i);
  }
  // A tensor with the codes of another is that one: computed again, it might fall on the other side of a border.
  for (const QuantizedTensor& t : tensors) {
    const QuantizedTensor* as = t.place == TensorPlace::kCompared ? &t
                                : t.place == TensorPlace::kMerged ? same_codes(t, tensors)
                                                                  : nullptr;
    if (as != nullptr) g.replace_uses(g.find_value(t.tensor), forced.at(as->tensor));
  }
  // What two quantizers round, the one that the engine has must see as it was: else a tie of the first would look like
  // a wrong code of the second.
  for (const QuantizedTensor& t : tensors) {
    if (t.place != TensorPlace::kMerged) continue;
    ir::Value* rounded = g.find_value(t.tensor);
    const numerics::QuantParams params = params_of(*rounded->producer);
    for (ir::Node* user : std::vector<ir::Node*>(rounded->users))
      for (size_t i = 0; i < user->inputs.size(); ++i)
        if (user->input(i) == rounded && only_quantizes(g, *user, rounded, params))
          g.set_input(user, i, rounded->producer->input(0));
  }
  out.scores = g.clone();
  for (size_t i : out.compared)
    if (!tensors[i].of_image) g.add_output(g.find_value(tensors[i].tensor)->producer->input(0));
  for (ir::Graph* cut : {&out.pieces, &out.scores}) {
    cut->remove_dead();
    ir::infer_shapes(*cut);
  }
  return out;
}

}  // namespace octet::app
