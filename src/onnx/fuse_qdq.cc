#include "onnx/fuse_qdq.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "base/name_lines.h"
#include "ir/axes.h"
#include "ir/infer.h"
#include "numerics/quantize_span.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

struct Range {
  int64_t qmin, qmax;
};

Range full_range(DataType type) {
  return type == DataType::kUInt8 ? Range{0, 255} : Range{-128, 127};
}

std::string quantizer_text(const Node& node) {
  return str("node '", node.name, "' (", node.info().name, ")");
}

bool same_tensor(const Value* a, const Value* b) {
  if (a == b) return true;
  if (!a || !b || !a->is_constant() || !b->is_constant()) return false;
  return a->constant->data_type() == b->constant->data_type() && a->constant->size() == b->constant->size() &&
         std::equal(a->constant->bytes().begin(), a->constant->bytes().end(), b->constant->bytes().begin(),
                    b->constant->bytes().end());
}

void check_scales(const Node& node, const std::vector<float>& scales) {
  for (const float s : scales)
    if (!(s > 0) || !std::isfinite(s))
      fail(quantizer_text(node), ": scale '", node.inputs[1]->name, "' holds ", s, ", expected a positive number");
}

// Scale and zero point of one Q or DQ node, element by element of its input.
class LinearParameters {
 public:
  LinearParameters(const Node& node, const ir::Shape& shape, Range range) : range_(range) {
    scales_ = node.input(1)->constant->to_floats();
    check_scales(node, scales_);
    zeros_ = node.has_input(2) ? node.input(2)->constant->to_ints() : std::vector<int64_t>(scales_.size(), 0);
    if (scales_.size() != zeros_.size() || scales_.empty())
      fail(quantizer_text(node), ": scale and zero point should have the same number of elements");
    if (scales_.size() == 1) return;
    const size_t axis = ir::normal_axis(node, node.get_int("axis", 1), shape.size());
    if (shape[axis] != static_cast<int64_t>(scales_.size()))
      fail(quantizer_text(node), ": ", scales_.size(), " scales do not fit axis ", axis, " of ",
           ir::shape_string(shape));
    for (size_t d = axis + 1; d < shape.size(); ++d) inner_ *= static_cast<size_t>(shape[d]);
  }
  numerics::QuantParams at(size_t element) const {
    const size_t c = (element / std::max<size_t>(inner_, 1)) % scales_.size();
    return {scales_[c], static_cast<int32_t>(zeros_[c]), static_cast<int32_t>(range_.qmin),
            static_cast<int32_t>(range_.qmax)};
  }
  // f(start, count, params) for every run of elements with the same parameters.
  template <typename F>
  void for_each_run(size_t elements, F f) const {
    const size_t run = scales_.size() == 1 ? elements : inner_;
    for (size_t start = 0; start < elements; start += run) f(start, run, at(start));
  }
  bool symmetric() const {
    return std::all_of(zeros_.begin(), zeros_.end(), [](int64_t z) { return z == 0; });
  }

 private:
  Range range_;
  std::vector<float> scales_;
  std::vector<int64_t> zeros_;
  size_t inner_ = 1;
};

struct Note {
  int64_t qmin, qmax;
  std::string state;
};

std::unordered_map<std::string, Note> parse_notes(const std::string& text) {
  std::unordered_map<std::string, Note> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    Note note;
    std::string name;
    const bool read = static_cast<bool>(in >> note.qmin >> note.qmax >> note.state) && in.get() == ' ' &&
                      static_cast<bool>(std::getline(in, name));
    const auto& states = ir::kQuantizerStates;
    const bool known = std::find(states.begin(), states.end(), note.state) != states.end();
    if (!read || !known || note.qmin >= note.qmax || note.qmin < -128 || note.qmax > 255)
      fail("the metadata entry '", kFakeQuantizeKey, "' holds the line '", line,
           "', expected 'qmin qmax state name'; remove the entry to read the file without it");
    out[unescape_line(name)] = note;
  }
  return out;
}

class Fuser {
 public:
  Fuser(Graph& graph, const std::string& notes) : graph_(graph), notes_(parse_notes(notes)) {}

  void run() {
    std::vector<Node*> dequantizers;
    for (const auto& node : graph_.nodes())
      if (node->kind == OpKind::kDequantizeLinear) dequantizers.push_back(node.get());
    for (Node* node : dequantizers) {
      if (!parameters_constant(*node)) continue;
      const Value* x = node->input(0);
      if (x->is_constant() && x->constant->data_type() == DataType::kInt32) {
        fuse_bias(node);
      } else if (x->is_constant()) {
        fuse_constant(node);
      } else if (x->producer && x->producer->kind == OpKind::kQuantizeLinear && matches(*x->producer, *node)) {
        fuse_pair(node);
      } else if (x->producer && x->producer->kind == OpKind::kQuantizeLinear && can_rescale(*x->producer, *node)) {
        fuse_requantized(node);
      }
    }
    for (const auto& [old, made] : replacements_) {
      if (!old->users.empty() || graph_.is_output(old)) continue;
      const std::string name = old->name;
      graph_.rename(old, graph_.unique_name(name + "_old"));
      graph_.rename(made.front(), name);
    }
    for (const auto& [name, note] : notes_)
      if (!graph_.find_node(name) || graph_.find_node(name)->kind != OpKind::kFakeQuantize)
        log_warning("the metadata entry '", kFakeQuantizeKey, "' names '", name,
                    "', which is no quantizer of this model any more; its line is ignored");
  }

 private:
  static bool parameters_constant(const Node& node) {
    return node.input(1) && node.input(1)->is_constant() && (!node.has_input(2) || node.input(2)->is_constant());
  }

  bool matches(const Node& q, const Node& dq) const {
    return parameters_constant(q) && same_tensor(q.input(1), dq.input(1)) && same_tensor(q.input(2), dq.input(2)) &&
           (q.input(1)->constant->size() == 1 || same_axis(q, dq));
  }

  static bool same_axis(const Node& q, const Node& dq) {
    const auto& shape = q.input(0)->type.shape;
    if (!shape) return q.get_int("axis", 1) == dq.get_int("axis", 1);
    return ir::normal_axis(q, q.get_int("axis", 1), shape->size()) ==
           ir::normal_axis(dq, dq.get_int("axis", 1), shape->size());
  }

  // Values of a float constant whose Q and DQ are the parameters of `node`.
  static bool never_lowest(const Node& node, const Tensor& floats, Range range) {
    const LinearParameters parameters(node, floats.shape(), range);
    if (!parameters.symmetric()) return false;
    std::vector<float> space;
    const std::span<const float> values = floats.as_floats(space);
    std::vector<int8_t> codes(values.size());
    parameters.for_each_run(values.size(), [&](size_t start, size_t count, const numerics::QuantParams& p) {
      numerics::quantize_centered(values.subspan(start, count), p, std::span(codes).subspan(start, count));
    });
    return std::find(codes.begin(), codes.end(), range.qmin) == codes.end();
  }

  void fuse_bias(Node* dq) {
    Value* codes = dq->input(0);
    const Tensor old = *codes->constant;
    const LinearParameters parameters(*dq, old.shape(), {INT32_MIN, INT32_MAX});
    const std::span<const int32_t> q = old.values<int32_t>();
    Tensor numbers = Tensor::made<float>(old.shape(), [&](std::span<float> out) {
      for (size_t i = 0; i < out.size(); ++i) {
        // Wider than the 8-bit codes that numerics::dequantize takes: subtract before rounding to float.
        const numerics::QuantParams p = parameters.at(i);
        out[i] = static_cast<float>(int64_t{q[i]} - p.zero_point) * p.scale;
      }
    });
    Value* floats = float_twin(codes, std::move(numbers));
    graph_.replace_uses(dq->output(), floats);
    graph_.erase(dq);
  }

  void fuse_constant(Node* dq) {
    Value* codes = dq->input(0);
    const Tensor old = *codes->constant;
    Range range = full_range(old.data_type());
    const LinearParameters parameters(*dq, old.shape(), range);
    if (old.data_type() == DataType::kInt8) {
      const std::span<const int8_t> q = old.values<int8_t>();
      if (parameters.symmetric() && std::find(q.begin(), q.end(), -128) == q.end()) range.qmin = -127;
      become_fake_quantize(dq, float_twin(codes, dequantized(old.shape(), q, parameters)), old.data_type(), range);
    } else {
      const std::span<const uint8_t> q = old.values<uint8_t>();
      become_fake_quantize(dq, float_twin(codes, dequantized(old.shape(), q, parameters)), old.data_type(), range);
    }
  }

  template <typename Code>
  static Tensor dequantized(const ir::Shape& shape, std::span<const Code> codes, const LinearParameters& parameters) {
    return Tensor::made<float>(shape, [&](std::span<float> out) {
      parameters.for_each_run(codes.size(), [&](size_t start, size_t count, const numerics::QuantParams& p) {
        numerics::dequantize(codes.subspan(start, count), p, out.subspan(start, count));
      });
    });
  }

  Value* float_twin(Value* codes, Tensor floats) {
    const std::string name = codes->name;
    // The name goes to the first float constant; the codes may have further users.
    if (codes->type.data_type != DataType::kFloat32) graph_.rename(codes, graph_.unique_name(name + "_codes"));
    return graph_.add_constant(graph_.unique_name(name), std::move(floats));
  }

  void fuse_pair(Node* dq) {
    Node* q = dq->input(0)->producer;
    Value* x = q->input(0);
    const DataType type = dq->input(0)->type.data_type;
    // One FakeQuantize is enough for all DequantizeLinear of one QuantizeLinear.
    for (Node* user : x->users) {
      const auto it = made_from_.find(user);
      if (it == made_from_.end() || it->second != q || graph_.is_output(dq->output()) || notes_.count(dq->name))
        continue;
      graph_.replace_uses(dq->output(), user->output());
      graph_.erase(dq);
      return drop_if_unused(q);
    }
    Range range = full_range(type);
    if (type == DataType::kInt8 && x->is_constant() && never_lowest(*q, *x->constant, range)) range.qmin = -127;
    if (q->input(1)->constant->size() > 1) dq->attributes["axis"] = q->get_int("axis", 1);
    become_fake_quantize(dq, x, type, range);
    made_from_[dq] = q;
    drop_if_unused(q);
  }

  // One scale each, and neither so far from the other that float32 has no quotient.
  static bool can_rescale(const Node& q, const Node& dq) {
    for (const Node* n : {&q, &dq})
      if (!parameters_constant(*n) || n->input(1)->constant->size() != 1 || !n->has_input(2)) return false;
    return std::isnormal(dq.input(1)->constant->to_floats()[0] / q.input(1)->constant->to_floats()[0]);
  }

  // Codes that are read with another scale or zero point: (q - z2) s2 = (q - z1) s1 * (s2 / s1) + (z1 - z2) s2, which
  // has the scale s2 and the zero point z2. Between the two quantizers the engine makes a table of it, and every code
  // stays as it is.
  void fuse_requantized(Node* dq) {
    Node* q = dq->input(0)->producer;
    const DataType type = dq->input(0)->type.data_type;
    check_scales(*q, q->input(1)->constant->to_floats());
    check_scales(*dq, dq->input(1)->constant->to_floats());
    const float s1 = q->input(1)->constant->to_floats()[0], s2 = dq->input(1)->constant->to_floats()[0];
    const int64_t z1 = q->input(2)->constant->to_ints()[0], z2 = dq->input(2)->constant->to_ints()[0];
    const auto affine = [&](OpKind kind, const char* what, Value* x, float operand) {
      const std::string name = graph_.unique_name(dq->name + what);
      Value* constant = graph_.add_constant(graph_.unique_name(name + "_by"), Tensor::scalar(operand));
      return graph_.add(kind, name, {x, constant}, {}, dq);
    };
    const std::string name = graph_.unique_name(q->name + "_dequantize");
    Node* first = graph_.add_node(OpKind::kDequantizeLinear, name, q->inputs, {name}, {}, dq);
    graph_.set_input(first, 0, q->output());
    ir::infer_node(*first);
    Value* x = affine(OpKind::kMul, "_rescale", first->output(), s2 / s1);
    if (z1 != z2) x = affine(OpKind::kAdd, "_shift", x, static_cast<float>(z1 - z2) * s2);
    become_fake_quantize(dq, x, type, full_range(type));
    fuse_pair(first);
  }

  void drop_if_unused(Node* q) {
    if (!q->output()->users.empty() || graph_.is_output(q->output())) return;
    graph_.erase(q);
  }

  // Turns `node` in place, so that its name and output stay.
  void become_fake_quantize(Node* node, Value* x, DataType type, Range range) {
    check_scales(*node, node->input(1)->constant->to_floats());
    const Tensor scale = *node->input(1)->constant;
    const std::optional<size_t> axis =
        ir::find_axis(node->get_int("axis", 1), x->type.shape ? x->type.shape->size() : 0);
    const bool per_axis = scale.shape().size() == 1 && axis && (*x->type.shape)[*axis] == scale.size();
    const ir::Shape shape = per_axis ? scale.shape() : ir::Shape();
    if (!per_axis && scale.size() != 1) fail(quantizer_text(*node), ": ", scale.size(), " scales do not fit its input");
    std::string state = ir::kFrozen;
    if (const auto note = notes_.find(node->name); note != notes_.end()) {
      const Range allowed = full_range(type);
      if (note->second.qmin < allowed.qmin || note->second.qmax > allowed.qmax)
        fail(quantizer_text(*node), ": the metadata entry '", kFakeQuantizeKey, "' gives it codes that ",
             ir::data_type_name(type), " does not have");
      range = {note->second.qmin, note->second.qmax};
      state = note->second.state;
    }
    // Scales are float32, zero points of the codes' type, both of one shape.
    Value* scale_value = node->input(1);
    if (scale.data_type() != DataType::kFloat32 || scale.shape() != shape)
      scale_value = replacement(scale_value, Tensor::of<float>(shape, scale.to_floats()));
    Value* zero_value = node->input(2);
    if (!zero_value) {
      const std::vector<std::byte> zeros(static_cast<size_t>(scale.size()), std::byte{0});
      zero_value =
          graph_.add_constant(graph_.unique_name(node->output()->name + "_zero_point"), Tensor(type, shape, zeros));
    } else if (zero_value->constant->shape() != shape) {
      const auto bytes = zero_value->constant->bytes();
      zero_value = replacement(zero_value, Tensor(type, shape, {bytes.begin(), bytes.end()}));
    }
    node->attributes = {{"qmin", range.qmin}, {"qmax", range.qmax}, {"state", state}};
    if (per_axis) node->attributes["axis"] = static_cast<int64_t>(*axis);
    node->kind = OpKind::kFakeQuantize;
    graph_.set_input(node, 0, x);
    graph_.set_input(node, 1, scale_value);
    graph_.set_input(node, 2, zero_value);
    ir::infer_node(*node);
  }

  // A constant in place of `old`, whose name it takes in the end if nothing else needs `old`.
  Value* replacement(Value* old, Tensor tensor) {
    auto& known = replacements_[old];
    for (Value* v : known)
      if (v->constant->shape() == tensor.shape() && v->constant->data_type() == tensor.data_type()) return v;
    known.push_back(graph_.add_constant(graph_.unique_name(old->name), std::move(tensor)));
    return known.back();
  }

  Graph& graph_;
  std::unordered_map<std::string, Note> notes_;
  std::unordered_map<Node*, Node*> made_from_;  // FakeQuantize -> the QuantizeLinear it was
  std::unordered_map<Value*, std::vector<Value*>> replacements_;
};

}  // namespace

void fuse_qdq(Graph& graph, const std::string& notes) {
  Fuser(graph, notes).run();
}

}  // namespace octet::onnx
