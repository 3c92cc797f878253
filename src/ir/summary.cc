#include "ir/summary.h"

#include <algorithm>
#include <iomanip>
#include <optional>
#include <sstream>
#include <unordered_set>

#include "base/error.h"
#include "base/printable.h"
#include "dense/program.h"
#include "ir/infer.h"
#include "ir/program_types.h"
#include "ir/traits.h"

namespace octet::ir {
namespace {

ValueSummary summary_of(const Value& value) {
  return {value.name, value.type};
}

bool is_representation(const Node& node) {
  return node.kind == OpKind::kFakeQuantize || node.kind == OpKind::kQuantizeLinear ||
         node.kind == OpKind::kDequantizeLinear || node.kind == OpKind::kIdentity;
}

// The initializer behind an input, seen through nodes that only change its representation.
const Value* initializer_behind(const Value* value) {
  while (value && !value->is_constant() && value->producer && is_representation(*value->producer))
    value = value->producer->input(0);
  return value && value->is_constant() ? value : nullptr;
}

// Product with a dynamic leading (batch) dimension counted as one; nothing when another one is dynamic.
std::optional<int64_t> count(const Value* value) {
  if (!value || !value->type.shape) return std::nullopt;
  Shape shape = *value->type.shape;
  if (!shape.empty() && shape[0] == kDynamic) shape[0] = 1;
  return is_static(shape) ? std::optional(element_count(shape)) : std::nullopt;
}

// `elements` outputs of `depth` products each. Huge made-up shapes give nothing instead of an overflow.
std::optional<int64_t> times(std::optional<int64_t> elements, int64_t depth) {
  int64_t product;
  if (!elements || depth < 0 || __builtin_mul_overflow(*elements, depth, &product)) return std::nullopt;
  return product;
}

std::optional<int64_t> macs_of(const Node& node) {
  const Value *x = node.input(0), *w = node.input(1);
  const auto known = [](const Value* v) { return v && v->type.shape && is_static(*v->type.shape); };
  switch (node.kind) {
    case OpKind::kConv:  // weights [M, C / group, k...]: all but M for each output
      if (!known(w) || (*w->type.shape)[0] == 0) return std::nullopt;
      return times(count(node.output()), element_count(*w->type.shape) / (*w->type.shape)[0]);
    case OpKind::kConvTranspose:  // weights [C, M / group, k...]: all but C for each input
      if (!known(w) || (*w->type.shape)[0] == 0) return std::nullopt;
      return times(count(x), element_count(*w->type.shape) / (*w->type.shape)[0]);
    case OpKind::kGemm:
      if (!x || !x->type.shape) return std::nullopt;
      return times(count(node.output()), (*x->type.shape)[node.get_int("transA") != 0 ? 0 : 1]);
    case OpKind::kMatMul:
      if (!x || !x->type.shape || x->type.shape->empty()) return std::nullopt;
      return times(count(node.output()), x->type.shape->back());
    default:
      return 0;
  }
}

bool has_dynamic_batch(const Value* value) {
  return value->type.shape && !value->type.shape->empty() && value->type.shape->front() == kDynamic;
}

// The graph for one image: rows that a dynamic batch is a part of (the tokens of all images) have their number then.
// Nothing where the graph itself says what there is to know.
std::optional<Graph> of_one_image(const Graph& graph) {
  if (std::ranges::none_of(graph.inputs(), has_dynamic_batch)) return std::nullopt;
  Graph one = graph.clone();
  for (Value* input : one.inputs())
    if (has_dynamic_batch(input)) input->type.shape->front() = 1;
  try {
    infer_shapes(one);
  } catch (const UserError&) {  // one is no batch for it
    return std::nullopt;
  }
  return one;
}

// Operations that multiply by constants, and the others in one line. How many products they take comes up in a run.
void add_program(const dense::Program& program, GraphSummary& out) {
  for (const ProgramOutput& output : program_outputs(program)) out.outputs.push_back({output.name, output.type});
  const std::vector<dense::WeightedOperation> weighted = dense::weighted_operations(program);
  for (const dense::WeightedOperation& w : weighted) {
    out.nodes.push_back(
        {.name = w.name, .kind = w.op, .inputs = {}, .outputs = {}, .parameters = w.parameters, .macs = std::nullopt});
    out.parameters += w.parameters;
    out.macs.reset();
  }
  for (const auto& [value, tensor] : program.constants) out.constant_bytes += std::ssize(tensor.bytes());
  out.operations_behind = dense::operation_count(program);
}

std::string shapes(const std::vector<ValueSummary>& values) {
  std::string out;
  for (const ValueSummary& v : values)
    out += (out.empty() ? "" : " ") + (v.type.shape ? shape_string(*v.type.shape) : std::string("[...]"));
  return out;
}

std::string grouped(int64_t n) {  // 1234567 -> 1,234,567
  std::string digits = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

}  // namespace

GraphSummary summarize(const Graph& graph) {
  GraphSummary out;
  out.name = graph.name;
  out.opset = graph.opset;
  for (const Value* v : graph.inputs()) out.inputs.push_back(summary_of(*v));
  if (!graph.program)
    for (const Value* v : graph.outputs()) out.outputs.push_back(summary_of(*v));
  for (const Value* v : graph.constants()) out.constant_bytes += static_cast<int64_t>(v->constant->bytes().size());
  std::unordered_set<const Value*> counted;
  const std::optional<Graph> one = of_one_image(graph);
  auto sized = (one ? *one : graph).nodes().begin();
  for (const auto& node : graph.nodes()) {
    NodeSummary& n = out.nodes.emplace_back();
    n.name = node->name;
    n.kind = node->info().name;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Value* v = node->inputs[i];
      if (v && !v->is_constant()) n.inputs.push_back(summary_of(*v));
      const Value* constant = is_representation(*node) ? nullptr : initializer_behind(v);
      if (constant && (constant->trainable || is_parameter_input(node->kind, i)) && counted.insert(constant).second)
        n.parameters += constant->constant->size();
    }
    for (const Value* v : node->outputs)
      if (v) n.outputs.push_back(summary_of(*v));
    n.macs = macs_of(**sized++);
    out.parameters += n.parameters;
    int64_t sum;
    if (out.macs && n.macs && !__builtin_add_overflow(*out.macs, *n.macs, &sum))
      out.macs = sum;
    else
      out.macs.reset();
  }
  if (graph.program) add_program(*graph.program, out);
  return out;
}

std::string summary_table(const GraphSummary& summary) {
  struct Row {
    std::string name, kind, shape, parameters, macs;
  };
  std::vector<Row> rows = {{"node", "kind", "output", "parameters", "MACs"}};
  const auto optional_count = [](std::optional<int64_t> n) { return n ? grouped(*n) : std::string("?"); };
  for (const NodeSummary& n : summary.nodes)
    rows.push_back({printable_line(n.name), n.kind, shapes(n.outputs), grouped(n.parameters), optional_count(n.macs)});
  rows.push_back({"total", str(summary.nodes.size(), " nodes"), shapes(summary.outputs), grouped(summary.parameters),
                  optional_count(summary.macs)});
  size_t name = 0, kind = 0, shape = 0, parameters = 0, macs = 0;
  for (const Row& r : rows) {
    name = std::max(name, r.name.size());
    kind = std::max(kind, r.kind.size());
    shape = std::max(shape, r.shape.size());
    parameters = std::max(parameters, r.parameters.size());
    macs = std::max(macs, r.macs.size());
  }
  const size_t width = name + kind + shape + parameters + macs + 8;
  std::ostringstream out;
  out << printable_line(summary.name) << ", opset " << summary.opset << ", " << grouped(summary.constant_bytes)
      << " bytes of constants\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == 1 || i + 1 == rows.size()) out << std::string(width, '-') << "\n";
    const Row& r = rows[i];
    out << std::left << std::setw(static_cast<int>(name) + 2) << r.name << std::setw(static_cast<int>(kind) + 2)
        << r.kind << std::setw(static_cast<int>(shape) + 2) << r.shape << std::right
        << std::setw(static_cast<int>(parameters)) << r.parameters << "  " << std::setw(static_cast<int>(macs))
        << r.macs << "\n";
  }
  if (summary.operations_behind > 0)
    out << grouped(summary.operations_behind) << " operations behind the graph, on sizes that come up in a run\n";
  return out.str();
}

}  // namespace octet::ir
