#include "lower/lower.h"

#include <algorithm>

#include "base/error.h"
#include "ir/infer.h"
#include "ir/input_shape.h"
#include "lower/lowering.h"
#include "lower/rewrites.h"
#include "passes/free_batch.h"

namespace octet::lower {
namespace {

// The batch may be chosen where images stay apart, other sizes where the file leaves them open: a fixed one may be part
// of a Reshape.
void choose_input_shape(ir::Graph& graph, const ir::Shape& shape) {
  require(graph.inputs().size() == 1, "the model has ", graph.inputs().size(),
          " inputs; a whole shape can be given to a model of one input, so give the batch alone");
  ir::Value* input = graph.inputs()[0];
  const ir::Shape& own = *input->type.shape;
  bool fits = own.size() == shape.size();
  for (size_t i = 0; i < shape.size() && fits; ++i)
    fits = shape[i] > 0 && (i == 0 || own[i] == ir::kDynamic || own[i] == shape[i]);
  require(fits, "the shape ", ir::shape_string(shape), " does not fit the input '", input->name, "', which is ",
          ir::type_string(input->type), "; only the batch and sizes marked '?' can be chosen");
  passes::require_batch(graph, shape[0]);
  graph.inputs()[0]->type.shape = shape;
  ir::infer_shapes(graph);
}

void choose_batch(ir::Graph& graph, int64_t batch) {
  if (batch > 0) {
    passes::require_batch(graph, batch);
    return ir::set_batch(graph, batch);
  }
  for (ir::Value* input : graph.inputs())
    if (input->type.shape && !input->type.shape->empty() && input->type.shape->front() == ir::kDynamic)
      input->type.shape->front() = 1;
  ir::infer_shapes(graph);
}

// The engine plans its memory before it runs, so every size must be known.
void require_static(const ir::Graph& graph) {
  const auto check = [](const ir::Value* v) {
    require(v->type.shape && ir::is_static(*v->type.shape), "'", v->name, "' has the type ", ir::type_string(v->type),
            "; the engine needs fixed sizes, so export the model with fixed ones");
    for (int64_t d : *v->type.shape) require(d > 0, "'", v->name, "' is empty: ", ir::type_string(v->type));
  };
  if (const std::string flags = ir::advised_input_shapes(graph); !flags.empty()) {
    const auto open = std::find_if(graph.inputs().begin(), graph.inputs().end(), [](const ir::Value* input) {
      return input->type.shape && !ir::is_static(*input->type.shape);
    });
    fail_usage("input '", (*open)->name, "' is ", ir::type_string((*open)->type),
               "; the engine needs fixed sizes, so choose them, as in ", flags,
               " (octet compile makes one file for several: repeat the flag)");
  }
  for (const ir::Value* input : graph.inputs()) {
    check(input);
    require(input->type.data_type == ir::DataType::kFloat32, "input '", input->name, "' has the type ",
            ir::type_string(input->type), "; inputs of an engine are float32");
  }
  for (const auto& node : graph.nodes())
    for (const ir::Value* out : node->outputs)
      if (out != nullptr) check(out);
  require(!graph.outputs().empty(), "graph '", graph.name, "' has no output");
}

// "scale 's' 0.02 and zero point 'z' 0", "3 scales 's' and ...".
std::string parameters_text(const ir::Node& node) {
  const auto text = [&](const char* what, size_t input) {
    const ir::Value* v = node.input(input);
    if (!v) return str("no ", what);
    if (!v->is_constant()) return str("the computed ", what, " '", v->name, "'");
    if (v->constant->size() != 1) return str(v->constant->size(), " ", what, "s '", v->name, "'");
    return str(what, " ", v->constant->to_floats()[0]);
  };
  return text("scale", 1) + " and " + text("zero point", 2);
}

// What is left of Q and DQ after import: codes that something else than a quantizer reads or makes.
void refuse_loose_codes(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->kind == ir::OpKind::kQuantizeLinear) {
      const ir::Value* codes = node->output();
      if (graph.is_output(codes))
        fail("output '", codes->name, "' holds ", data_type_name(codes->type.data_type),
             " codes; outputs of an engine are float32, so put a DequantizeLinear behind it");
      const ir::Node* reader = codes->users.empty() ? node.get() : codes->users.front();
      if (reader->kind == ir::OpKind::kDequantizeLinear)
        fail("QuantizeLinear '", node->name, "' has ", parameters_text(*node), ", but DequantizeLinear '", reader->name,
             "' reads its codes with ", parameters_text(*reader),
             "; the engine needs the same constant ones on both sides");
      fail(
          "QuantizeLinear '", node->name, "': its codes are read by ", reader->info().name, " '", reader->name,
          "', which the engine has on numbers only; put a DequantizeLinear with the same scale and zero point between");
    }
    if (node->kind == ir::OpKind::kDequantizeLinear)
      fail("DequantizeLinear '", node->name, "': its codes '", node->input(0)->name,
           "' come from no QuantizeLinear with the same constant scale and zero point, which the engine needs");
  }
}

}  // namespace

engine::Plan lower(const ir::Graph& source, const CompileOptions& options) {
  if (options.batch < 0) fail_usage("batch = ", options.batch, " is negative");
  ir::Graph graph = source.clone();
  graph.remove_dead();
  if (options.input_shape.empty())
    choose_batch(graph, options.batch);
  else
    choose_input_shape(graph, options.input_shape);
  require_static(graph);
  refuse_loose_codes(graph);
  passes::run_pipeline(graph, compile_passes(), {.dump_directory = options.dump_passes});
  engine::Plan plan = Lowering(graph, source).run(options.outputs_stay);
  plan.isa = isa_name(options.isa);
  return plan;
}

}  // namespace octet::lower
