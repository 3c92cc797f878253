#include "onnx/builder.h"

#include <algorithm>

#include "ir/data_type_codes.h"
#include "ir/infer.h"
#include "onnx/expand_qlinear.h"
#include "onnx/node_order.h"
#include "onnx/settle.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;

constexpr size_t kLanes = 3;
// The leading dynamic size of every input is the batch; all others with the same name are one size. Sizes of the other
// axes are multiples of 64, so that strides of up to 64 divide them as they divide usual image sizes.
constexpr int64_t kBatchOfLane[kLanes] = {2, 5, 11};
constexpr int64_t kPrimes[] = {3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41};

ir::Attribute to_attribute(const proto::Attribute& a, ExternalFiles& files) {
  switch (a.type) {
    case proto::kFloat:
      return a.f;
    case proto::kInt:
      return a.i;
    case proto::kString:
      return a.s;
    case proto::kTensor:
      return to_tensor(*a.t, files);
    case proto::kFloats:
      return a.floats;
    case proto::kInts:
      return a.ints;
    case proto::kStrings:
      return a.strings;
    default:
      fail("attribute '", a.name, "' is of a kind that is not supported (a subgraph, a sparse tensor or a list)");
  }
}

// Runs `f`; its UserErrors are told with the node in front.
template <typename F>
auto at_node(const std::string& node, F f) {
  try {
    return f();
  } catch (const UserError& e) {
    const std::string what = e.what();
    if (what.rfind("node '", 0) == 0 || what.rfind("the node (", 0) == 0) throw;
    fail(node, ": ", what);
  }
}

std::string text_of(const SourceNode& node) {
  return str("node '", node.name, "' (", node.op, ")");
}

// An axis list of a Slice, normalised; all axes in order when there is none.
std::vector<int64_t> slice_axes(const std::optional<Tensor>& axes, size_t count, size_t rank) {
  std::vector<int64_t> out;
  if (axes) {
    out = axes->to_ints();
  } else {
    for (size_t i = 0; i < count; i++) out.push_back(static_cast<int64_t>(i));
  }
  const auto r = static_cast<int64_t>(rank);
  for (int64_t& a : out) {
    if (a < -r || a >= r) fail("axis ", a, " does not exist in a tensor of rank ", r);
    if (a < 0) a += r;
  }
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

Builder::Builder(const proto::Graph& source, int opset, ExternalFiles& files, int64_t budget_bytes)
    : source_(source), opset_(opset), files_(files), budget_(budget_bytes) {
  if (!source.name.empty()) graph_.name = source.name;
  graph_.opset = opset;
}

ir::Graph Builder::build() {
  require(source_.sparse_initializers == 0, "has sparse initialisers, which are not supported");
  for (const proto::Tensor& tensor : source_.initializers) {
    if (tensor.name.empty()) fail("an initialiser has no name");
    if (entries_.count(tensor.name)) fail("two initialisers are named '", tensor.name, "'");
    define(tensor.name).initializer = &tensor;
  }
  const std::vector<const proto::Node*> nodes = live_nodes_in_order(source_);
  for (const proto::Node& node : source_.nodes) {
    for (const std::string& name : node.inputs) names_.insert(name);
    for (const std::string& name : node.outputs) names_.insert(name);
    names_.insert(node.name);
  }
  for (const proto::Node* node : nodes) used_.insert(node->inputs.begin(), node->inputs.end());
  for (const proto::ValueInfo& output : source_.outputs) used_.insert(output.name);
  require_known(nodes);
  const bool reads_shapes = std::any_of(
      nodes.begin(), nodes.end(), [](const proto::Node* n) { return n->op_type == "Shape" || n->op_type == "Size"; });
  if (reads_shapes) lanes_.resize(kLanes);
  add_inputs();
  for (const proto::Node* node : nodes) at_node(text_of(*node), [&] { add_source(*node); });
  add_outputs();
  return std::move(graph_);
}

Builder::Entry& Builder::define(const std::string& name) {
  const auto [it, is_new] = entries_.try_emplace(name);
  if (!is_new) fail("the name '", name, "' is given to two values");
  names_.insert(name);
  return it->second;
}

Builder::Entry& Builder::entry(const std::string& name) {
  const auto it = entries_.find(name);
  if (it == entries_.end()) fail("reads '", name, "', which is no graph input, no initialiser and made by no node");
  return it->second;
}

const Tensor& Builder::tensor_of(Entry& e) {
  if (!e.constant) e.constant = to_tensor(*e.initializer, files_);
  return *e.constant;
}

void Builder::add_inputs() {
  std::map<std::string, size_t> symbols;
  for (const proto::ValueInfo& input : source_.inputs) {
    if (entries_.count(input.name)) {
      // Until IR version 3 every initialiser was an input as well.
      if (entries_.at(input.name).initializer) continue;
      fail("two inputs are named '", input.name, "'");
    }
    if (input.name.empty()) fail("a graph input has no name");
    if (!input.is_tensor) fail("input '", input.name, "' is no tensor");
    ir::TensorType type{ir::data_type_from_onnx(input.elem_type), std::nullopt};
    if (type.data_type == DataType::kUndefined)
      fail("input '", input.name, "' has the data type ", onnx_type_name(input.elem_type), ", which is not supported");
    if (!input.shape) fail("input '", input.name, "' has no shape; export the model with the shapes of its inputs");
    if (input.shape->size() > 16) fail("input '", input.name, "' has ", input.shape->size(), " dimensions");
    Shape shape;
    std::vector<Shape> in_lane(lanes_.size());
    for (size_t i = 0; i < input.shape->size(); i++) {
      const proto::Dim& dim = (*input.shape)[i];
      const bool dynamic = dim.value < 0;
      if (dim.value > (int64_t{1} << 31)) fail("input '", input.name, "' has the impossible size ", dim.value);
      shape.push_back(dynamic ? ir::kDynamic : dim.value);
      const std::string symbol = dim.parameter.empty() ? str(input.name, "/", i) : dim.parameter;
      const size_t number = dynamic && i > 0 ? symbols.try_emplace(symbol, symbols.size()).first->second : 0;
      for (size_t p = 0; p < lanes_.size(); p++)
        in_lane[p].push_back(!dynamic ? dim.value
                             : i == 0 ? kBatchOfLane[p]
                                      : 64 * kPrimes[(p + 3 * number) % std::size(kPrimes)]);
    }
    type.shape = shape;
    Entry& e = define(input.name);
    e.value = graph_.add_input(input.name, type);
    for (size_t p = 0; p < lanes_.size(); p++)
      e.lanes.push_back(lanes_[p].add_input(input.name, {type.data_type, in_lane[p]}));
  }
}

void Builder::add_outputs() {
  require(!source_.outputs.empty(), "has no outputs");
  for (const proto::ValueInfo& output : source_.outputs) {
    const auto it = entries_.find(output.name);
    if (it == entries_.end()) fail("output '", output.name, "' is made by no node");
    if (graph_.is_output(it->second.value)) fail("'", output.name, "' is an output twice");
    graph_.add_output(at_node(str("output '", output.name, "'"), [&] { return value_in_graph(output.name); }));
  }
}

std::string Builder::fresh_name(const std::string& hint) {
  const std::string base = hint.empty() ? "value" : hint;
  std::string name = base;
  for (int i = 1; !names_.insert(name).second; i++) name = str(base, "_", i);
  return name;
}

std::string Builder::add_constant(const std::string& hint, Tensor tensor) {
  const std::string name = fresh_name(hint);
  define(name).constant = std::move(tensor);
  return name;
}

std::optional<Tensor> Builder::constant(const std::string& value) {
  Entry& e = entry(value);
  if (!e.constant && !e.initializer) return std::nullopt;
  return tensor_of(e);
}

std::optional<Shape> Builder::shape(const std::string& value) {
  Entry& e = entry(value);
  if (e.initializer && !e.constant) return e.initializer->dims;
  if (e.constant) return e.constant->shape();
  if (e.value) return e.value->type.shape;
  for (const Tensor& t : e.varying)
    if (t.shape() != e.varying.front().shape()) return std::nullopt;
  return e.varying.empty() ? std::nullopt : std::optional(e.varying.front().shape());
}

DataType Builder::data_type(const std::string& value) {
  Entry& e = entry(value);
  if (e.value) return e.value->type.data_type;
  if (!e.varying.empty()) return e.varying.front().data_type();
  return tensor_of(e).data_type();
}

ir::Value* Builder::value_in_graph(const std::string& name) {
  Entry& e = entry(name);
  if (e.value) return e.value;
  if (!e.varying.empty())
    fail("its input '", name,
         "' is computed from sizes that are dynamic in this model, and no constant can stand for it; ",
         "export the model with fixed sizes (a dynamic batch alone is usually fine)");
  return e.value = graph_.add_constant(name, tensor_of(e));
}

ir::Value* Builder::value_in_lane(const std::string& name, size_t lane) {
  Entry& e = entry(name);
  if (e.lanes.empty()) e.lanes.resize(lanes_.size(), nullptr);
  if (!e.lanes[lane])
    e.lanes[lane] = lanes_[lane].add_constant(name, e.varying.empty() ? tensor_of(e) : e.varying[lane]);
  return e.lanes[lane];
}

void Builder::add_source(const proto::Node& node) {
  if (node.op_type == "Constant") return add_constant_node(node);
  SourceNode source{node.op_type, node.name, node.inputs, node.outputs, {}};
  for (const std::string& input : source.inputs)
    if (!input.empty()) entry(input);
  while (!source.inputs.empty() && source.inputs.back().empty()) source.inputs.pop_back();
  const auto unwanted = [&](const std::string& name) { return name.empty() || used_.count(name) == 0; };
  while (source.outputs.size() > 1 && source.op != "Split" && unwanted(source.outputs.back()))
    source.outputs.pop_back();
  for (std::string& output : source.outputs)
    if (output.empty()) output = fresh_name(source.name + "_unused");
  if (source.outputs.empty()) fail("has no outputs");
  if (source.name.empty() || node_names_.count(source.name))
    source.name = node_names_.count(source.outputs[0]) ? fresh_name(source.outputs[0]) : source.outputs[0];
  for (const proto::Attribute& a : node.attributes) source.attributes[a.name] = to_attribute(a, files_);
  const std::vector<SourceNode> nodes = is_qlinear(node.domain, node.op_type)
                                            ? expand_qlinear(std::move(source), *this)
                                            : upgrade(std::move(source), opset_, *this);
  for (const SourceNode& next : nodes) add(next);
}

void Builder::add_constant_node(const proto::Node& node) {
  if (node.attributes.size() != 1 || node.outputs.size() != 1) fail("should have one attribute and one output");
  const proto::Attribute& a = node.attributes[0];
  Tensor tensor;
  if (a.name == "value" && a.t) {
    tensor = to_tensor(*a.t, files_);
  } else if (a.name == "value_float") {
    tensor = Tensor::scalar(a.f);
  } else if (a.name == "value_floats") {
    tensor = Tensor::of<float>({static_cast<int64_t>(a.floats.size())}, a.floats);
  } else if (a.name == "value_int") {
    tensor = Tensor::scalar(a.i);
  } else if (a.name == "value_ints") {
    tensor = int_vector(a.ints);
  } else {
    fail("attribute '", a.name, "' is not supported; a constant should be a dense tensor of numbers");
  }
  define(node.outputs[0]).constant = std::move(tensor);
}

void Builder::add(const SourceNode& node) {
  at_node(text_of(node), [&] {
    if (node.op == "Shape" || node.op == "Size") {
      if (!add_shape(node))
        fail("the shape of '", node.inputs.at(0), "' is needed, but it is dynamic and not known",
             lanes_error_.empty() ? "" : " (" + lanes_error_ + ")", "; export the model with fixed input sizes");
      return;
    }
    if (add_folded(node)) return;
    const ir::OpInfo* info = ir::find_op(node.op);
    if (!info)
      fail(
          "this operator is supported on constants and shapes only, but its inputs are computed from the model's "
          "input");
    add_to_graph(node, info->kind);
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
  for (size_t p = 0; p < lanes_.size(); p++) {
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
  }
  const auto evaluate = [&](size_t lane) {
    FoldRequest request{node.op, node.attributes, {}, node.outputs.size()};
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
  for (size_t p = 0; p < (varies ? lanes_.size() : 1); p++) {
    auto result = evaluate(p);
    if (!result) return false;
    OCTET_CHECK(result->size() == node.outputs.size() || result->size() == 1, node.op);
    results.push_back(std::move(*result));
  }
  if (results.front().size() != node.outputs.size()) fail("has ", node.outputs.size(), " outputs, expected 1");
  for (size_t i = 0; i < node.outputs.size(); i++) {
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
    for (size_t p = 0; p < lanes_.size(); p++) {
      std::vector<ir::Value*> inputs;
      for (const std::string& name : node.inputs) inputs.push_back(name.empty() ? nullptr : value_in_lane(name, p));
      made.push_back(lanes_[p].add_node(kind, node.name, inputs, node.outputs, node.attributes));
      ir::infer_node(*made.back());
    }
  } catch (const UserError& e) {
    if (varies) throw;
    // The graph itself may well be right: say it if somebody needs the sizes that are now unknown.
    lanes_error_ = str("with example sizes for its dynamic dimensions, ", e.what());
    lanes_.clear();
  }
  return varies;
}

void Builder::settle_varying(SourceNode& node, OpKind kind, const std::vector<ir::Node*>& lane_nodes) {
  for (size_t i = 0; i < node.inputs.size(); i++) {
    if (node.inputs[i].empty() || entry(node.inputs[i]).varying.empty()) continue;
    const std::string name = node.inputs[i];
    const Entry& e = entry(name);
    std::optional<Tensor> constant;
    size_t place = i;
    const bool integers = e.varying[0].data_type() == DataType::kInt64 || e.varying[0].data_type() == DataType::kInt32;
    LaneViews views;
    for (size_t p = 0; p < lane_nodes.size() && integers; p++) {
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
  for (size_t i = 0; i < node.outputs.size(); i++) {
    Entry& e = define(node.outputs[i]);
    e.value = made->outputs[i];
    if (lane_nodes.size() == lanes_.size())
      for (ir::Node* lane_node : lane_nodes) e.lanes.push_back(lane_node->outputs[i]);
  }
}

}  // namespace octet::onnx
