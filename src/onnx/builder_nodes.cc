// The second half of the builder: nodes in their newest form, to constants where they can be computed and else to the
// graph and its lanes.
#include <algorithm>

#include "dense/operators.h"
#include "ir/axes.h"
#include "ir/infer.h"
#include "onnx/at_node.h"
#include "onnx/builder.h"
#include "onnx/settle.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;

std::string text_of(const SourceNode& node) {
  return str("node '", node.name, "' (", node.op, ")");
}

// An axis list of a Slice, normalized; all axes in order when there is none.
std::vector<int64_t> slice_axes(const std::optional<Tensor>& axes, size_t count, size_t rank) {
  std::vector<int64_t> out = axes ? axes->to_ints() : ir::all_axes(count);
  for (int64_t& a : out) a = static_cast<int64_t>(ir::normal_axis(a, rank));
  return out;
}

// The sizes of this Resize are meant as they are.
bool keeps_no_aspect_ratio(const SourceNode& node) {
  const auto it = node.attributes.find("keep_aspect_ratio_policy");
  return it == node.attributes.end() ||
         (std::holds_alternative<std::string>(it->second) && std::get<std::string>(it->second) == "stretch");
}

Tensor int_vector(const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

}  // namespace

void Builder::add(const SourceNode& source) {
  at_node(text_of(source), [&] {
    const SourceNode node = with_zero_point(source);
    if (node.op == "Shape" || node.op == "Size") {
      if (!add_shape(node))
        fail("the shape of '", node.inputs.at(0), "' is needed, but it is dynamic and not known",
             lanes_error_.empty() ? "" : " (" + lanes_error_ + ")", advice());
      return;
    }
    if (add_folded(node) || add_behind_dequantize(node)) return;
    const ir::OpInfo* info = ir::find_op(node.op);
    if (!info && dense::find_operator(node.op)) return add_to_program(node);
    if (!info)
      fail(
          "this operator is supported on constants and shapes only, but its inputs are computed from the model's "
          "input");
    add_to_graph(node, info->kind);
    note_quantized(node);
  });
}

bool Builder::add_shape(const SourceNode& node) {
  if (node.inputs.empty() || node.outputs.size() != 1) fail("should have one input and one output");
  const std::string& x = node.inputs[0];
  const auto get = [&](const char* key) -> std::optional<int64_t> {
    const auto it = node.attributes.find(key);
    if (it == node.attributes.end()) return std::nullopt;
    if (const int64_t* v = std::get_if<int64_t>(&it->second)) return *v;
    fail("attribute '", key, "' should be an integer");
  };
  const std::optional<int64_t> start = get("start"), end = get("end");
  const auto answer = [&](const Shape& shape) {
    if (node.op == "Size") {
      int64_t count = 1;
      for (const int64_t d : shape) {
        if (d > 0 && count > (int64_t{1} << 40) / d) fail("the size of '", x, "' is impossible");
        count *= d;
      }
      return Tensor::scalar(count);
    }
    const auto rank = static_cast<int64_t>(shape.size());
    const auto place = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
    const int64_t from = place(start.value_or(0)), to = place(end.value_or(rank));
    return int_vector(from < to ? std::vector<int64_t>(shape.begin() + from, shape.begin() + to)
                                : std::vector<int64_t>());
  };
  const auto known = shape(x);
  if (known && ir::is_static(*known)) {
    define(node.outputs[0]).constant = answer(*known);
    return true;
  }
  if (lanes_.empty()) return false;
  std::vector<Tensor> answers;
  for (size_t p = 0; p < lanes_.size(); ++p) {
    Entry& e = entry(x);
    const std::optional<Shape> in_lane = e.varying.empty() ? value_in_lane(x, p)->type.shape : e.varying[p].shape();
    if (!in_lane || !ir::is_static(*in_lane)) return false;
    answers.push_back(answer(*in_lane));
  }
  Entry& e = define(node.outputs[0]);
  const bool equal =
      std::all_of(answers.begin(), answers.end(), [&](const Tensor& t) { return t.to_ints() == answers[0].to_ints(); });
  if (equal)
    e.constant = answers[0];
  else
    e.varying = std::move(answers);
  return true;
}

bool Builder::add_folded(const SourceNode& node) {
  if (!can_fold(node.op) || node.inputs.empty()) return false;
  bool varies = false;
  for (const std::string& name : node.inputs) {
    if (name.empty()) continue;
    Entry& e = entry(name);
    if (!e.known_before_run()) return false;
    varies = varies || !e.varying.empty();
    if (!e.varying.empty() && lanes_.empty()) fail_varying(name);
  }
  const auto evaluate = [&](size_t lane) {
    FoldRequest request{node.op, node.name, node.attributes, {}, node.outputs.size()};
    for (const std::string& name : node.inputs) {
      if (name.empty()) {
        request.inputs.push_back(nullptr);
        continue;
      }
      Entry& e = entry(name);
      request.inputs.push_back(e.varying.empty() ? &tensor_of(e) : &e.varying[lane]);
    }
    return fold(request, budget_);
  };
  std::vector<std::vector<Tensor>> results;
  for (size_t p = 0; p < (varies ? lanes_.size() : 1); ++p) {
    auto result = evaluate(p);
    if (!result) return false;
    OCTET_CHECK(result->size() == node.outputs.size() || result->size() == 1, node.op);
    results.push_back(std::move(*result));
  }
  if (results.front().size() != node.outputs.size()) fail("has ", node.outputs.size(), " outputs, expected 1");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Tensor& first = results[0][i];
    const bool equal = std::all_of(results.begin(), results.end(), [&](const std::vector<Tensor>& r) {
      return r[i].data_type() == first.data_type() && r[i].shape() == first.shape() &&
             std::equal(r[i].bytes().begin(), r[i].bytes().end(), first.bytes().begin(), first.bytes().end());
    });
    Entry& e = define(node.outputs[i]);
    if (equal) {
      e.constant = first;
    } else {
      for (const std::vector<Tensor>& r : results) e.varying.push_back(r[i]);
    }
  }
  return true;
}

bool Builder::add_to_lanes(const SourceNode& node, OpKind kind, std::vector<ir::Node*>& made) {
  bool varies = false;
  for (const std::string& name : node.inputs) varies = varies || (!name.empty() && !entry(name).varying.empty());
  if (lanes_.empty()) return varies;
  try {
    for (size_t p = 0; p < lanes_.size(); ++p) {
      std::vector<ir::Value*> inputs;
      for (const std::string& name : node.inputs) inputs.push_back(name.empty() ? nullptr : value_in_lane(name, p));
      made.push_back(lanes_[p].add_node(kind, node.name, inputs, node.outputs, node.attributes));
      ir::infer_node(*made.back());
    }
  } catch (const UserError& e) {
    const std::string why = str("with example sizes for its dynamic dimensions, ", e.what());
    if (varies) fail(why, advice());
    // The graph itself may well be right: say it if somebody needs the sizes that are now unknown.
    lanes_error_ = why;
    lanes_.clear();
  }
  return varies;
}

void Builder::settle_varying(SourceNode& node, OpKind kind, const std::vector<ir::Node*>& lane_nodes) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].empty() || entry(node.inputs[i]).varying.empty()) continue;
    const std::string name = node.inputs[i];
    const Entry& e = entry(name);
    std::optional<Tensor> constant;
    size_t place = i;
    const bool integers = e.varying[0].data_type() == DataType::kInt64 || e.varying[0].data_type() == DataType::kInt32;
    LaneViews views;
    for (size_t p = 0; p < lane_nodes.size() && integers; ++p) {
      const auto& in = lane_nodes[p]->inputs.at(0)->type.shape;
      const auto& out = lane_nodes[p]->outputs.at(0)->type.shape;
      if (in && out && ir::is_static(*in) && ir::is_static(*out)) views.push_back({*in, *out, e.varying[p].to_ints()});
    }
    if (!views.empty() && views.size() == lane_nodes.size()) {
      std::optional<std::vector<int64_t>> ints;
      if (kind == OpKind::kReshape && i == 1) {
        ints = settle_reshape(views);
        node.attributes.erase("allowzero");
      } else if (kind == OpKind::kExpand && i == 1) {
        ints = settle_expand(views);
      } else if (kind == OpKind::kSlice && (i == 1 || i == 2)) {
        std::optional<Tensor> axes;
        if (node.has_input(3)) axes = this->constant(node.inputs[3]);
        if (axes || !node.has_input(3))
          ints = settle_slice_bound(views, slice_axes(axes, views[0].parameter.size(), views[0].in.size()));
      } else if (kind == OpKind::kResize && i == 3 && keeps_no_aspect_ratio(node)) {
        if (const auto scales = settle_resize(views)) {
          constant = Tensor::of<float>({static_cast<int64_t>(scales->size())}, *scales);
          node.attributes.erase("axes");
          node.inputs[3].clear();
          place = 2;
        }
      }
      if (ints) constant = int_vector(*ints);
    }
    if (!constant) value_in_graph(name);  // says what is wrong
    node.inputs[place] = add_constant(name + "_settled", std::move(*constant));
  }
  while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.pop_back();
}

void Builder::add_to_graph(const SourceNode& source, OpKind kind) {
  std::vector<ir::Node*> lane_nodes;
  SourceNode node = source;
  if (add_to_lanes(source, kind, lane_nodes)) settle_varying(node, kind, lane_nodes);
  for (const auto& [key, value] : node.attributes)
    if (!op_info(kind).find_attribute(key)) fail("attribute '", key, "' is not supported");
  std::vector<ir::Value*> inputs;
  for (const std::string& name : node.inputs) inputs.push_back(name.empty() ? nullptr : value_in_graph(name));
  ir::Node* made = graph_.add_node(kind, node.name, inputs, node.outputs, node.attributes);
  node_names_.insert(made->name);
  ir::infer_node(*made);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Entry& e = define(node.outputs[i]);
    e.value = made->outputs[i];
    if (lane_nodes.size() == lanes_.size())
      for (ir::Node* lane_node : lane_nodes) e.lanes.push_back(lane_node->outputs[i]);
  }
}

}  // namespace octet::onnx
