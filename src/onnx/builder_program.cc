// The part of a file that the graph cannot hold, as a program behind it: what depends on sizes that come up in a run,
// beginning with operators like NonZero and TopK. Everything before it stays in the graph, whose outputs it reads.
#include <algorithm>

#include "dense/operators.h"
#include "dense/run.h"
#include "ir/data_type_codes.h"
#include "ir/program_types.h"
#include "onnx/at_node.h"
#include "onnx/builder.h"

namespace octet::onnx {
namespace {

using ir::DataType;

dense::Type type_in_program(DataType type, const std::string& name) {
  switch (type) {
    case DataType::kFloat32:
      return dense::Type::kFloat;
    case DataType::kInt64:
      return dense::Type::kInt64;
    case DataType::kInt32:
      return dense::Type::kInt32;
    case DataType::kBool:
      return dense::Type::kBool;
    case DataType::kInt8:
      return dense::Type::kInt8;
    case DataType::kUInt8:
      return dense::Type::kUint8;
    default:
      fail(
          "'", name, "' holds ", ir::data_type_name(type),
          "; where sizes depend on what the network computes, supported are float32, int32, int64, bool and codes of 8 "
          "bits");
  }
}

dense::Tensor to_dense(const ir::Tensor& tensor, const std::string& name, dense::Memory& memory) {
  dense::Tensor out = memory.make(type_in_program(tensor.data_type(), name), tensor.shape());
  std::copy(tensor.bytes().begin(), tensor.bytes().end(), out.data());
  if (out.type() == dense::Type::kBool)  // other bytes are no bool in C++
    for (int64_t i = 0; i < out.size(); ++i)
      out.data()[i] = tensor.bytes()[static_cast<size_t>(i)] == std::byte{0} ? std::byte{0} : std::byte{1};
  return out;
}

// Attributes that became inputs.
struct Moved {
  const char* op;
  const char* attribute;
  size_t input;
};
constexpr Moved kMoved[] = {
    {"Squeeze", "axes", 1},   {"Unsqueeze", "axes", 1}, {"ReduceSum", "axes", 1},    {"ReduceMean", "axes", 1},
    {"ReduceMax", "axes", 1}, {"ReduceMin", "axes", 1}, {"ReduceProd", "axes", 1},   {"ReduceSumSquare", "axes", 1},
    {"ReduceL1", "axes", 1},  {"ReduceL2", "axes", 1},  {"ReduceLogSum", "axes", 1}, {"ReduceLogSumExp", "axes", 1},
    {"Slice", "starts", 1},   {"Slice", "ends", 2},     {"Slice", "axes", 3},        {"Clip", "min", 1},
    {"Clip", "max", 2},       {"TopK", "k", 1},         {"Split", "split", 1},       {"Pad", "pads", 1},
    {"Pad", "value", 2},
};

ir::Tensor as_input(const ir::Attribute& attribute, const char* key) {
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute))
    return ir::Tensor::of<int64_t>({static_cast<int64_t>(list->size())}, *list);
  if (const auto* number = std::get_if<int64_t>(&attribute)) return ir::Tensor::of<int64_t>({1}, std::vector{*number});
  if (const auto* number = std::get_if<float>(&attribute)) return ir::Tensor::scalar(*number);
  fail("attribute '", key, "' has an unexpected type");
}

dense::Attributes attributes_in_program(const SourceNode& node) {
  dense::Attributes out;
  for (const auto& [key, value] : node.attributes) {
    if (const auto* i = std::get_if<int64_t>(&value)) {
      out[key] = *i;
    } else if (const auto* f = std::get_if<float>(&value)) {
      out[key] = *f;
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      out[key] = *s;
    } else if (const auto* is = std::get_if<std::vector<int64_t>>(&value)) {
      out[key] = *is;
    } else if (const auto* fs = std::get_if<std::vector<float>>(&value)) {
      out[key] = *fs;
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      out[key] = *texts;
    } else if (const auto* t = std::get_if<ir::Tensor>(&value); t && node.op == "ConstantOfShape" && t->size() == 1) {
      out["value_type"] = int64_t{ir::data_type_to_onnx(t->data_type())};
      out["value_int"] = t->data_type() == DataType::kBool ? int64_t{t->bytes()[0] != std::byte{0}} : t->to_ints()[0];
      out["value_float"] = t->data_type() == DataType::kBool ? 0.0f : t->to_floats()[0];
    } else {
      fail("attribute '", key, "' is of a kind that is not supported");
    }
  }
  return out;
}

// "bilinear" and "bicubic" became "linear" and "cubic" as GridSample came to know images over other than two axes.
void name_as_in_opset_20(SourceNode& node) {
  const auto it = node.attributes.find("mode");
  if (it == node.attributes.end()) return;
  std::string* mode = std::get_if<std::string>(&it->second);
  if (mode && (*mode == "bilinear" || *mode == "bicubic")) mode->erase(0, 2);
}

// Reads where, or chooses what, the network computes, which no step of a plan can.
bool reads_computed_places(const std::string& op, size_t input) {
  if (op == "Where") return input == 0;
  return input == 1 &&
         (op == "Gather" || op == "GatherElements" || op == "GatherND" || op == "ScatterElements" || op == "ScatterND");
}

}  // namespace

bool Builder::belongs_to_program(const SourceNode& node) {
  bool known = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    const Entry& e = entry(node.inputs[i]);
    if (e.made_by_program()) return true;
    if (e.known_before_run()) continue;
    known = false;
    if (reads_computed_places(node.op, i)) return true;
  }
  if (!dense::find_operator(node.op)) return false;
  const bool other_way = ir::find_op(node.op) || is_rewritten(node.op) || node.op == "Shape" || node.op == "Size";
  if (known) return !other_way && !can_fold(node.op);
  if (node.op == "Cast") {
    const auto it = node.attributes.find("to");
    const int64_t* to = it == node.attributes.end() ? nullptr : std::get_if<int64_t>(&it->second);
    if (!to || data_type(node.inputs[0]) != DataType::kFloat32) return false;
    const DataType type = ir::data_type_from_onnx(*to);
    return type == DataType::kInt32 || type == DataType::kInt64 || type == DataType::kBool;
  }
  return !other_way;
}

int Builder::new_program_value(const std::string& name, dense::Type type) {
  program_.values.push_back(name);
  program_types_.push_back(type);
  return static_cast<int>(program_.values.size()) - 1;
}

int Builder::value_in_program(const std::string& name) {
  if (name.empty()) return -1;
  Entry& e = entry(name);
  if (e.in_program >= 0) return e.in_program;
  if (!e.varying.empty()) fail_varying(name);
  if (e.dequantized) return e.in_program = dequantized_in_program(name, *e.dequantized);
  if (e.known_before_run()) {
    dense::Tensor tensor = to_dense(tensor_of(e), name, program_memory_);
    e.in_program = new_program_value(name, tensor.type());
    program_.constants.emplace_back(e.in_program, std::move(tensor));
  } else {
    const dense::Type type = type_in_program(e.value->type.data_type, name);
    e.in_program = new_program_value(name, type);
    program_.inputs.push_back({e.in_program, type});
    program_inputs_.push_back(e.value);
  }
  return e.in_program;
}

// Codes of 8 bits stay codes, so that their layer can be computed on them.
int Builder::dequantized_in_program(const std::string& name, const QuantizedConstant& quantized) {
  const auto constant = [&](const std::string& called, const ir::Tensor& tensor) {
    dense::Tensor made = to_dense(tensor, called, program_memory_);
    const int value = new_program_value(called, made.type());
    program_.constants.emplace_back(value, std::move(made));
    return value;
  };
  const ir::Tensor codes = quantized.codes();
  if (codes.data_type() == DataType::kInt32) return constant(name, quantized.values());
  dense::Operation operation{"DequantizeLinear", fresh_name(name + "/dequantize"), {}, {}, {}, {}};
  operation.attributes["axis"] = quantized.axis;
  operation.inputs = {constant(name + "/codes", codes), constant(name + "/scale", quantized.scale)};
  if (quantized.zero_point) operation.inputs.push_back(constant(name + "/zero_point", *quantized.zero_point));
  operation.outputs = {new_program_value(name, dense::Type::kFloat)};
  // Before an operation whose branch reads it.
  program_.operations.push_back(std::move(operation));
  return program_.operations.back().outputs[0];
}

void Builder::add_to_program(SourceNode node) {
  if (node.op == "Dropout") {  // which a network that runs does not do
    node.op = "Identity", node.attributes.clear();
    node.inputs.resize(1);
  }
  // Old forms, and operators that a program has others for.
  if (node.op == "Resize" || (!dense::find_operator(node.op) && is_rewritten(node.op))) {
    const std::string op = node.op;
    for (SourceNode& next : upgrade(std::move(node), opset_, *this)) {
      if (next.op == op && next.op != "Resize") fail_outside_program(op);
      const bool here = next.op == "Resize" || belongs_to_program(next);
      here ? add_in_program(std::move(next)) : add(next);
    }
    return;
  }
  add_in_program(std::move(node));
}

void Builder::fail_outside_program(const std::string& op) const {
  fail("its inputs are computed behind the plan, ",
       program_.operations.empty()
           ? ""
           : str("where '", program_.operations.front().name, "' (", program_.operations.front().op, ") begins, "),
       "and ", op, " is not supported there; docs/operators.md lists what is");
}

void Builder::add_in_program(SourceNode node) {
  if (!dense::find_operator(node.op)) fail_outside_program(node.op);
  for (const Moved& moved : kMoved) {
    if (node.op != moved.op) continue;
    const auto it = node.attributes.find(moved.attribute);
    if (it == node.attributes.end() || node.has_input(moved.input)) continue;
    if (node.inputs.size() <= moved.input) node.inputs.resize(moved.input + 1);
    node.inputs[moved.input] =
        add_constant(node.outputs.at(0) + "_" + moved.attribute, as_input(it->second, moved.attribute));
    node.attributes.erase(it);
  }
  if (node.op == "Split" && !node.has_input(1) && opset_ < 18)
    node.attributes["num_outputs"] = static_cast<int64_t>(node.outputs.size());
  if (node.op == "RoiAlign" && opset_ < 16)
    node.attributes["coordinate_transformation_mode"] = std::string("output_half_pixel");
  if (node.op == "GridSample") name_as_in_opset_20(node);
  if ((node.op == "Softmax" || node.op == "LogSoftmax") && opset_ < 13)
    fail(
        "normalizes over all axes behind one, as before opset 13, which is not supported where sizes depend on what "
        "the network computes; export the model with opset 13 or newer");
  dense::Operation operation{node.op, node.name, {}, {}, attributes_in_program(node), {}};
  const bool known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) {
    return name.empty() || entry(name).known_before_run();
  });
  if (known) return fold_operation(operation, node);
  std::vector<dense::Type> types;
  for (const std::string& name : node.inputs) {
    operation.inputs.push_back(value_in_program(name));
    types.push_back(name.empty() ? dense::Type::kFloat : program_types_[static_cast<size_t>(operation.inputs.back())]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Entry& e = define(node.outputs[i]);
    e.in_program = new_program_value(node.outputs[i], dense::output_type(operation, i, types));
    operation.outputs.push_back(e.in_program);
  }
  node_names_.insert(node.name);
  operations_->push_back(std::move(operation));
}

void Builder::fold_operation(const dense::Operation& operation, const SourceNode& node) {
  dense::Program alone;
  dense::Operation made = operation;
  for (const std::string& name : node.inputs) {
    if (name.empty()) {
      made.inputs.push_back(-1);
      continue;
    }
    Entry& e = entry(name);
    if (!e.varying.empty()) fail_varying(name);
    made.inputs.push_back(static_cast<int>(alone.values.size()));
    alone.constants.emplace_back(made.inputs.back(), to_dense(tensor_of(e), name, program_memory_));
    alone.values.push_back(name);
  }
  std::vector<dense::Type> types;
  for (const int v : made.inputs)
    types.push_back(v < 0 ? dense::Type::kFloat : alone.constants[static_cast<size_t>(types.size())].second.type());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    made.outputs.push_back(static_cast<int>(alone.values.size()));
    alone.outputs.push_back({made.outputs.back(), dense::output_type(operation, i, types), false, {}});
    alone.values.push_back(node.outputs[i]);
  }
  alone.operations.push_back(std::move(made));
  dense::validate(alone);
  constexpr int64_t kMost = 64 << 20;  // results are about as large as what they are chosen from
  const std::vector<dense::Tensor> results = dense::run(alone, {}, {.memory_bytes = kMost});
  for (size_t i = 0; i < results.size(); ++i) {
    budget_.charge(static_cast<int64_t>(results[i].bytes().size()));
    define(node.outputs[i]).constant = ir::Tensor(ir::data_type_of(results[i].type()), results[i].shape(),
                                                  {results[i].bytes().begin(), results[i].bytes().end()});
  }
}

void Builder::finish_program() {
  std::unordered_set<std::string> seen;
  for (const proto::ValueInfo& output : source_.outputs) {
    const auto it = entries_.find(output.name);
    if (it == entries_.end()) fail("output '", output.name, "' is made by no node");
    if (!seen.insert(output.name).second) fail("'", output.name, "' is an output twice");
    dense::Output made;
    made.value = at_node(str("output '", output.name, "'"), [&] { return value_in_program(output.name); });
    made.type = program_types_[static_cast<size_t>(made.value)];
    if (it->second.value && it->second.value->type.shape) {
      made.has_shape = true;
      made.shape = *it->second.value->type.shape;
    } else if (output.shape) {
      made.has_shape = true;
      for (const proto::Dim& dim : *output.shape) made.shape.push_back(dim.value < 0 ? -1 : dim.value);
    }
    program_.outputs.push_back(std::move(made));
  }
  dense::drop_unread(program_);
  const std::unordered_set<int> read = dense::read_values(program_);
  std::vector<dense::Input> inputs;
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    if (read.count(program_.inputs[i].value) == 0) continue;
    inputs.push_back(program_.inputs[i]);
    graph_.add_output(program_inputs_[i]);
  }
  program_.inputs = std::move(inputs);
  require(!program_.inputs.empty(), "what the outputs are computed from depends on no input");
  dense::validate(program_);
  graph_.program = std::make_shared<const dense::Program>(std::move(program_));
}

}  // namespace octet::onnx
