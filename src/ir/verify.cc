#include "ir/verify.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/nearest.h"
#include "dense/program.h"
#include "ir/infer.h"
#include "ir/shape_rule_util.h"
#include "numerics/quantize_span.h"

namespace octet::ir {
namespace {

const char* attribute_type(const Attribute& attribute) {
  static constexpr const char* kNames[] = {"int", "float", "string", "ints", "floats", "strings", "tensor"};
  return kNames[attribute.index()];
}

template <typename... Args>
[[noreturn]] void broken(const Graph& graph, Args&&... args) {
  fail("graph '", graph.name, "': ", std::forward<Args>(args)...);
}

void verify_attributes(const Node& node) {
  const OpInfo& info = node.info();
  for (const auto& [key, value] : node.attributes) {
    const AttributeInfo* known = info.find_attribute(key);
    if (!known) {
      std::vector<std::string> names;
      for (const AttributeInfo& a : info.attributes) names.push_back(a.name);
      misfit(node, "attribute '", key, "' is unknown", did_you_mean(key, names));
    }
    if (known->type != attribute_type(value))
      misfit(node, "attribute '", key, "' is of type ", attribute_type(value), ", expected ", known->type);
  }
}

void verify_fake_quantize(const Node& node) {
  const std::string state = node.get_string("state", kFrozen);
  if (std::find(kQuantizerStates.begin(), kQuantizerStates.end(), state) == kQuantizerStates.end())
    misfit(node, "state is '", state, "', expected ", kObserving, ", ", kFrozen, ", ", kLearned, ", ", kLearnedOffset,
           " or ", kLearnedClip);
  const int64_t qmin = node.get_int("qmin"), qmax = node.get_int("qmax");
  if (qmin >= qmax) misfit(node, "qmin ", qmin, " is not below qmax ", qmax);
  for (size_t i = 1; i < 3; ++i)
    if (!node.input(i) || !node.input(i)->is_constant()) misfit(node, input_text(node, i), " should be constant");
  const std::vector<float> scales = node.input(1)->constant->to_floats(), zeros = node.input(2)->constant->to_floats();
  for (size_t i = 0; i < scales.size(); ++i)
    if (!(scales[i] > 0) || !std::isfinite(scales[i]))
      misfit(node, "scale '", node.input(1)->name, "' holds ", scales[i], " at ", i, ", expected a positive number");
  for (size_t i = 0; i < zeros.size(); ++i)
    if (!(zeros[i] >= static_cast<float>(qmin) && zeros[i] <= static_cast<float>(qmax)) ||
        zeros[i] != std::floor(zeros[i]))
      misfit(node, "zero point '", node.input(2)->name, "' holds ", zeros[i], " at ", i, ", expected an integer in [",
             qmin, ", ", qmax, "]");
}

void verify_names(const Graph& graph) {
  for (const Value* value : graph.values())
    if (value->name.empty() || graph.find_value(value->name) != value)
      broken(graph, "value '", value->name, "' is not found by its name; names must be unique and not empty");
  for (const auto& node : graph.nodes())
    if (node->name.empty() || graph.find_node(node->name) != node.get())
      broken(graph, "node '", node->name, "' is not found by its name; names must be unique and not empty");
}

void verify_order(const Graph& graph) {
  std::unordered_set<const Value*> ready;
  for (const Value* value : graph.inputs()) {
    if (value->producer || value->is_constant())
      broken(graph, "input '", value->name, "' is also a constant or made by a node");
    ready.insert(value);
  }
  for (const Value* value : graph.constants()) ready.insert(value);
  for (const auto& node : graph.nodes()) {
    for (const Value* value : node->inputs) {
      if (!value || ready.count(value)) continue;
      if (value->producer) misfit(*node, "reads '", value->name, "' before ", node_text(*value->producer), " makes it");
      misfit(*node, "reads '", value->name, "', which is no graph input, no constant and made by no node");
    }
    for (const Value* value : node->outputs) {
      if (!value) continue;
      if (value->producer != node.get()) misfit(*node, "output '", value->name, "' names another producer");
      if (!ready.insert(value).second) misfit(*node, "output '", value->name, "' is made twice");
    }
  }
  if (graph.outputs().empty()) broken(graph, "has no outputs");
  std::unordered_set<const Value*> seen;
  for (const Value* value : graph.outputs()) {
    if (!ready.count(value)) broken(graph, "output '", value->name, "' is made by no node");
    if (!seen.insert(value).second) broken(graph, "value '", value->name, "' is an output twice");
  }
}

void verify_users(const Graph& graph) {
  std::unordered_map<const Value*, std::vector<const Node*>> uses;
  for (const auto& node : graph.nodes())
    for (const Value* value : node->inputs)
      if (value) uses[value].push_back(node.get());
  for (const Value* value : graph.values()) {
    std::vector<const Node*> kept(value->users.begin(), value->users.end());
    std::vector<const Node*>& actual = uses[value];
    std::sort(kept.begin(), kept.end());
    std::sort(actual.begin(), actual.end());
    if (kept != actual)
      broken(graph, "value '", value->name, "' is used ", actual.size(), " times, but its user list has ", kept.size(),
             " other entries; change inputs through Graph::set_input");
  }
}

void verify_types(const Graph& graph) {
  for (const Value* value : graph.values()) {
    if (value->is_constant() && value->type != TensorType{value->constant->data_type(), value->constant->shape()})
      broken(graph, "constant '", value->name, "' is declared ", type_string(value->type), ", but holds ",
             type_string({value->constant->data_type(), value->constant->shape()}));
    if (value->type.data_type == DataType::kUndefined && (value->producer || !value->users.empty()))
      broken(graph, "value '", value->name, "' has no data type",
             value->producer ? str(" (output of ", node_text(*value->producer), ")") : std::string());
  }
  check_inputs(graph);
  for (const auto& node : graph.nodes()) {
    const std::vector<TensorType> expected = inferred_types(*node);  // its inputs have been compared before
    for (size_t i = 0; i < expected.size(); ++i) {
      const Value* value = node->outputs[i];
      if (value && value->type != expected[i])
        misfit(*node, "output '", value->name, "' is declared ", type_string(value->type), ", but should be ",
               type_string(expected[i]), "; run infer_shapes after changing a graph");
    }
  }
}

}  // namespace

void verify(const Graph& graph) {
  verify_names(graph);
  verify_order(graph);
  verify_users(graph);
  for (const auto& node : graph.nodes()) verify_attributes(*node);
  verify_types(graph);
  for (const auto& node : graph.nodes())
    if (node->kind == OpKind::kFakeQuantize) verify_fake_quantize(*node);
  if (graph.program && graph.program->inputs.size() != graph.outputs().size())
    broken(graph, "has ", graph.outputs().size(), " outputs, and the program behind it reads ",
           graph.program->inputs.size());
}

void check_finite_constants(const Graph& graph) {
  for (const Value* value : graph.constants()) {
    switch (value->constant->data_type()) {
      case DataType::kFloat32:
      case DataType::kFloat64:
      case DataType::kFloat16:
      case DataType::kBFloat16:
        break;
      default:
        continue;
    }
    std::vector<float> space;
    const std::span<const float> values = value->constant->as_floats(space);
    if (numerics::all_finite(values)) continue;
    for (size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i]))
        fail("initializer '", value->name, "' ", type_string(value->type), " holds ",
             std::isnan(values[i]) ? "NaN" : "infinity", " at element ", i,
             value->users.empty() ? std::string() : str(" (used by ", node_text(*value->users.front()), ")"),
             "; the model is damaged or its training diverged");
  }
}

}  // namespace octet::ir
