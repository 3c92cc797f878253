#include "lower/wide_weights.h"

#include <algorithm>
#include <vector>

#include "ir/axes.h"
#include "ir/query.h"
#include "ir/traits.h"
#include "lower/quant_params.h"
#include "lower/weighted.h"

namespace octet::lower {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ir::Value;

// Its codes are those of a quantizer, moved about or clamped at most.
bool has_codes(const Value* v) {
  for (const Node* p = v->producer; p != nullptr; p = p->input(0)->producer) {
    if (is_quantizer(p)) return true;
    if (!commutes_with_quantizer(*p)) return false;
    if (ir::data_inputs(*p) > 1)
      return std::all_of(p->inputs.begin(), p->inputs.end(), [](const Value* in) { return has_codes(in); });
  }
  return false;
}

// q - z of every weight and its scale, in the order of the constant.
struct Centered {
  std::vector<int32_t> codes;
  std::vector<float> scales;
  bool wide() const {
    return std::any_of(codes.begin(), codes.end(), [](int32_t c) { return c < -128 || c > 127; });
  }
};

Centered centered_codes(const Node& quantizer) {
  const Tensor& tensor = *quantizer.input(0)->constant;
  const std::vector<float> values = tensor.to_floats(), scales = quantizer.input(1)->constant->to_floats();
  const std::vector<int64_t> zeros = quantizer.input(2)->constant->to_ints();
  const size_t rank = tensor.shape().size();
  // One scale for all has no axis: all elements are one run.
  const size_t axis = scales.size() == 1 ? 0 : ir::normal_axis(quantizer, quantizer.get_int("axis", 1), rank);
  int64_t inner = 1;
  for (size_t d = axis + 1; d < tensor.shape().size(); ++d) inner *= tensor.shape()[d];
  const auto qmin = static_cast<int32_t>(quantizer.get_int("qmin")),
             qmax = static_cast<int32_t>(quantizer.get_int("qmax"));
  Centered out;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = static_cast<size_t>(static_cast<int64_t>(i) / inner) % scales.size();
    const numerics::QuantParams p{scales[c], static_cast<int32_t>(zeros[zeros.size() == 1 ? 0 : c]), qmin, qmax};
    out.codes.push_back(numerics::quantize(values[i], p) - p.zero_point);
    out.scales.push_back(p.scale);
  }
  return out;
}

// Whether any code of the quantizer can leave s8 once its zero point is taken off.
bool can_be_wide(const Node& quantizer) {
  const std::vector<int64_t> zeros = quantizer.input(2)->constant->to_ints();
  const int64_t qmin = quantizer.get_int("qmin"), qmax = quantizer.get_int("qmax");
  return std::any_of(zeros.begin(), zeros.end(), [&](int64_t z) { return qmin - z < -128 || qmax - z > 127; });
}

class Splitter {
 public:
  Splitter(Graph& graph, Node* node) : graph_(graph), node_(node), quantizer_(*node->input(1)->producer) {}

  bool run() {
    if (!can_be_wide(quantizer_)) return false;
    const Centered weights = centered_codes(quantizer_);
    const auto beyond = [](int32_t c) { return c < -256 || c > 254; };
    if (!weights.wide() || std::any_of(weights.codes.begin(), weights.codes.end(), beyond)) return false;
    const bool transposed = node_->kind == OpKind::kConvTranspose;
    const int64_t groups = node_->kind == OpKind::kGemm ? 1 : node_->get_int("group", 1);
    if (groups > kMaxGroups || !has_codes(node_->input(0))) return false;
    // Weights [in, out] have their inputs in the first dimension, those of a ConvTranspose group after group.
    const bool inputs_first = transposed || (node_->kind == OpKind::kGemm && node_->get_int("transB") == 0);
    if (transposed && quantizer_.input(1)->constant->size() > 1 && quantizer_.get_int("axis", 1) == 0) return false;
    graph_.set_input(node_, 1, two_matrices(weights, inputs_first ? 0 : 1, transposed ? groups : 1));
    graph_.set_input(node_, 0, twice(node_->input(0), groups));
    return true;
  }

 private:
  Value* add(OpKind kind, const char* what, std::vector<Value*> inputs, ir::Attributes attributes = {}) {
    const std::string name = graph_.unique_name(node_->name + "/" + what);
    return graph_.add(kind, name, std::move(inputs), std::move(attributes), node_);
  }
  Value* ints(const char* what, const std::vector<int64_t>& values) {
    const auto count = static_cast<int64_t>(values.size());
    return graph_.add_constant(graph_.unique_name(node_->name + "/" + what), Tensor::of<int64_t>({count}, values));
  }

  Value* two_matrices(const Centered& weights, size_t axis, int64_t groups) {
    Shape shape = shape_of(quantizer_.input(0));
    size_t inner = 1;
    for (size_t d = axis; d < shape.size(); ++d) inner *= static_cast<size_t>(shape[d]);
    inner /= static_cast<size_t>(groups);
    shape[axis] *= 2;
    std::vector<float> values;
    for (size_t start = 0; start < weights.codes.size(); start += inner)
      for (const bool second : {false, true})
        for (size_t i = start; i < start + inner; ++i) {
          const int32_t first = std::clamp(weights.codes[i], -128, 127);
          values.push_back(static_cast<float>(second ? weights.codes[i] - first : first) * weights.scales[i]);
        }
    Value* floats =
        graph_.add_constant(graph_.unique_name(node_->name + "/two_matrices"), Tensor::of<float>(shape, values));
    const Shape& zero_shape = shape_of(quantizer_.input(1));
    const std::vector<int8_t> zeros(static_cast<size_t>(ir::element_count(zero_shape)), 0);
    Value* zero =
        graph_.add_constant(graph_.unique_name(node_->name + "/zero_point"), Tensor::of<int8_t>(zero_shape, zeros));
    ir::Attributes attributes = quantizer_.attributes;
    attributes["qmin"] = int64_t{-128}, attributes["qmax"] = int64_t{127};
    return add(OpKind::kFakeQuantize, "weights", {floats, quantizer_.input(1), zero}, attributes);
  }

  // The channels of each group, two times.
  Value* twice(Value* x, int64_t groups) {
    const Node* p = x->producer;
    if (node_->kind == OpKind::kGemm && (p->kind == OpKind::kFlatten || p->kind == OpKind::kReshape) &&
        shape_of(p->input(0)).size() == 4) {
      // A row of a flattened image: the image has the layout of codes.
      const Shape& row = shape_of(x);
      Value* image = twice(p->input(0), 1);
      return add(OpKind::kReshape, "flat", {image, ints("shape", {row[0], 2 * row[1]})});
    }
    std::vector<Value*> parts;
    const int64_t channels = shape_of(x)[1] / groups;
    for (int64_t g = 0; g < groups; ++g) {
      Value* part = x;
      if (groups > 1)
        part = add(OpKind::kSlice, "group",
                   {x, ints("from", {g * channels}), ints("to", {(g + 1) * channels}), ints("axis", {1})});
      parts.insert(parts.end(), 2, part);
    }
    return add(OpKind::kConcat, "twice", parts, {{"axis", int64_t{1}}});
  }

  Graph& graph_;
  Node* node_;
  const Node& quantizer_;
};

}  // namespace

int split_wide_weights(Graph& graph) {
  std::vector<Node*> weighted;
  for (const auto& node : graph.nodes()) {
    if (!starts_chain(node.get()) || node->input(1)->is_constant()) continue;
    const Node* q = node->input(1)->producer;
    if (is_quantizer(q) && q->input(0)->is_constant() && q->input(1)->is_constant() && q->has_input(2) &&
        q->input(2)->is_constant())
      weighted.push_back(node.get());
  }
  int split = 0;
  for (Node* node : weighted) split += Splitter(graph, node).run();
  return split;
}

}  // namespace octet::lower
