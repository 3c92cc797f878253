#include "onnx/builder.h"

#include <algorithm>

#include "ir/data_type_codes.h"
#include "ir/program_types.h"
#include "onnx/at_node.h"
#include "onnx/chosen_sizes.h"
#include "onnx/expand_qlinear.h"
#include "onnx/node_order.h"
#include "onnx/subgraphs.h"

namespace octet::onnx {
namespace {

using ir::DataType;
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

}  // namespace

Builder::Builder(const proto::Graph& source, int opset, ExternalFiles& files, int64_t budget_bytes,
                 const std::vector<ir::InputShape>& shapes)
    : source_(source), opset_(opset), shapes_(shapes), files_(files), budget_(budget_bytes) {
  if (!source.name.empty()) graph_.name = source.name;
  graph_.opset = opset;
}

ir::Graph Builder::build() {
  require(source_.sparse_initializers == 0, "has sparse initializers, which are not supported");
  for (const proto::Tensor& tensor : source_.initializers) {
    if (tensor.name.empty()) fail("an initializer has no name");
    if (entries_.count(tensor.name)) fail("two initializers are named '", tensor.name, "'");
    define(tensor.name).initializer = &tensor;
  }
  const std::vector<const proto::Node*> nodes = live_nodes_in_order(source_);
  for (const proto::Node& node : source_.nodes) {
    for (const std::string& name : node.inputs) names_.insert(name);
    for (const std::string& name : node.outputs) names_.insert(name);
    names_.insert(node.name);
  }
  note_uses(source_, nodes);
  require_known(nodes);
  if (reads_shapes(nodes)) lanes_.resize(kLanes);
  add_inputs();
  for (const proto::Node* node : nodes) at_node(text_of(*node), [&] { add_source(*node); });
  add_outputs();
  widener_.report();
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
  if (it == entries_.end()) fail("reads '", name, "', which is no graph input, no initializer and made by no node");
  return it->second;
}

const Tensor& Builder::tensor_of(Entry& e) {
  if (!e.constant) e.constant = widened(to_tensor(*e.initializer, files_));
  return *e.constant;
}

void Builder::add_inputs() {
  std::vector<const proto::ValueInfo*> inputs;
  for (const proto::ValueInfo& input : source_.inputs) {
    // Until IR version 3 every initializer was an input as well.
    if (const auto known = entries_.find(input.name); known == entries_.end() || !known->second.initializer)
      inputs.push_back(&input);
  }
  const ChosenSizes sizes(inputs, shapes_);
  std::map<std::string, size_t> symbols;
  for (const proto::ValueInfo* input : inputs) {
    if (entries_.count(input->name)) fail("two inputs are named '", input->name, "'");
    if (input->name.empty()) fail("a graph input has no name");
    if (!input->is_tensor) fail("input '", input->name, "' is no tensor");
    const std::optional<std::vector<proto::Dim>> dims = sizes.shape(*input);
    if (!dims)
      fail("input '", input->name, "' has no shape; say it, as in ",
           ir::advised_input_shape(input->name, ir::Shape(4, ir::kDynamic), inputs.size() > 1));
    if (dims->size() > 16) fail("input '", input->name, "' has ", dims->size(), " dimensions");
    add_input(*input, *dims, symbols);
  }
}

void Builder::add_input(const proto::ValueInfo& input, const std::vector<proto::Dim>& dims,
                        std::map<std::string, size_t>& symbols) {
  ir::TensorType type{ir::data_type_from_onnx(input.elem_type), std::nullopt};
  if (type.data_type == DataType::kUndefined)
    fail("input '", input.name, "' has the data type ", onnx_type_name(input.elem_type), ", which is not supported");
  Shape shape;
  std::vector<Shape> in_lane(lanes_.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const proto::Dim& dim = dims[i];
    const bool dynamic = dim.value < 0;
    if (dim.value > (int64_t{1} << 31)) fail("input '", input.name, "' has the impossible size ", dim.value);
    shape.push_back(dynamic ? ir::kDynamic : dim.value);
    const std::string symbol = ChosenSizes::symbol(input, i, dim);
    const size_t number = dynamic && i > 0 ? symbols.try_emplace(symbol, symbols.size()).first->second : 0;
    for (size_t p = 0; p < lanes_.size(); ++p)
      in_lane[p].push_back(!dynamic ? dim.value
                           : i == 0 ? kBatchOfLane[p]
                                    : 64 * kPrimes[(p + 3 * number) % std::size(kPrimes)]);
  }
  type.shape = shape;
  widener_.note(type.data_type, str("input '", input.name, "'"));
  type.data_type = widened(type.data_type);
  Entry& e = define(input.name);
  e.value = graph_.add_input(input.name, type);
  for (size_t p = 0; p < lanes_.size(); ++p)
    e.lanes.push_back(lanes_[p].add_input(input.name, {type.data_type, in_lane[p]}));
}

void Builder::add_outputs() {
  require(!source_.outputs.empty(), "has no outputs");
  if (!program_.operations.empty()) return finish_program();
  for (const proto::ValueInfo& output : source_.outputs) {
    const auto it = entries_.find(output.name);
    if (it == entries_.end()) fail("output '", output.name, "' is made by no node");
    if (graph_.is_output(it->second.value)) fail("'", output.name, "' is an output twice");
    graph_.add_output(at_node(str("output '", output.name, "'"), [&] { return value_in_graph(output.name); }));
  }
}

std::string Builder::fresh_name(const std::string& hint) {
  const std::string base = hint.empty() ? "value" : hint;
  if (names_.insert(base).second) return base;
  int& i = next_number_.try_emplace(base, 1).first->second;
  for (;; ++i)
    if (const auto [name, is_new] = names_.insert(base + "_" + std::to_string(i)); is_new) return *name;
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
  if (e.made_by_program()) return ir::data_type_of(program_types_[static_cast<size_t>(e.in_program)]);
  if (!e.varying.empty()) return e.varying.front().data_type();
  return tensor_of(e).data_type();
}

ir::Value* Builder::value_in_graph(const std::string& name) {
  Entry& e = entry(name);
  if (e.value) return e.value;
  if (!e.varying.empty()) fail_varying(name);
  OCTET_CHECK(!e.made_by_program(), name);
  return e.value = graph_.add_constant(name, tensor_of(e), e.parameter);
}

void Builder::fail_varying(const std::string& name) const {
  fail("its input '", name, "' is computed from sizes that are dynamic in this model, and no constant can stand for it",
       lanes_error_.empty() ? "" : " (" + lanes_error_ + ")", advice());
}

std::string Builder::advice() const {
  const std::string flags = ir::advised_input_shapes(graph_);
  return "; say the sizes (" + flags +
         ", or others), or export the model with fixed sizes (a dynamic batch alone is usually fine)";
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
  if (node.op_type == "If") return add_chosen_branch(node);
  if (node.op_type == "Loop") return add_loop(node);
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
  widen(source);
  if (belongs_to_program(source)) return add_to_program(std::move(source));
  source = without_gather_of_all(std::move(source));  // before it becomes slices
  const std::vector<SourceNode> nodes = is_qlinear(node.domain, node.op_type)
                                            ? expand_qlinear(std::move(source), *this)
                                            : upgrade(std::move(source), opset_, *this);
  for (const SourceNode& next : nodes) add(next);
}

void Builder::widen(SourceNode& node) {
  const auto known = [&](const std::string& name) { return name.empty() || entry(name).known_before_run(); };
  widener_.widen(node, !std::all_of(node.inputs.begin(), node.inputs.end(), known));
  // The type of a scale is that of the numbers.
  if ((node.op != "QuantizeLinear" && node.op != "DequantizeLinear") || !node.has_input(1)) return;
  const Entry& scale = entry(node.inputs[1]);
  if (scale.initializer)
    widener_.note(ir::data_type_from_onnx(scale.initializer->data_type), str("scale '", node.inputs[1], "'"));
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
    tensor = Tensor::of<int64_t>({static_cast<int64_t>(a.ints.size())}, a.ints);
  } else {
    fail("attribute '", a.name, "' is not supported; a constant should be a dense tensor of numbers");
  }
  define(node.outputs[0]).constant = widened(std::move(tensor));
}

}  // namespace octet::onnx
