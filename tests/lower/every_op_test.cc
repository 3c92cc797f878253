// What the table of operators says of the compiler: every kind has a lowering, on codes too, or the table says that it
// has none. And the traits that an evaluator can try are true.
#include "ir/query.h"
#include "ir/traits.h"
#include "lower/lower_test_util.h"
#include "support/one_node.h"

namespace octet::testing {
namespace {

using ir::Node;
namespace trait = ir::trait;

std::vector<const ir::OpInfo*> ops_with(uint32_t all, uint32_t none = 0) {
  std::vector<const ir::OpInfo*> out;
  for (const ir::OpInfo& op : ir::all_ops())
    if ((op.traits & all) == all && (op.traits & none) == 0) out.push_back(&op);
  return out;
}

// The graph of one_node.h, unless the engine knows the operator in another form only.
Graph graph_of(OpKind kind, const std::map<OpKind, Maker>& special) {
  OneNode one(kind);
  const auto own = special.find(kind);
  (own == special.end() ? makers().at(kind) : own->second)(one);
  ir::set_batch(one.graph(), 1);
  return std::move(one.graph());
}

const std::map<OpKind, Maker>& float_forms() {
  static const std::map<OpKind, Maker> forms = {
      {OpKind::kCast,
       [](OneNode& n) {
         n.done({n.before(OpKind::kArgMax, {n.x()})}, {{"to", int64_t{1}}});
       }},
      {OpKind::kDropout,
       [](OneNode& n) {
         n.done({n.x(), n.scalar(0.25f)});
       }},
  };
  return forms;
}

std::string problem_of(const Graph& graph) {
  try {
    lower::lower(graph);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(EveryOp, HasALoweringOrIsNotInTheEngine) {
  for (const ir::OpInfo* op : ops_with(0, trait::kNotInEngine))
    EXPECT_EQ(problem_of(graph_of(op->kind, float_forms())), "")
        << op->name << " is new: give it a step in src/lower, or say kNotInEngine in ops.def";
  for (const ir::OpInfo* op : ops_with(trait::kNotInEngine))
    EXPECT_NE(problem_of(graph_of(op->kind, float_forms())), "") << op->name;
}

const std::map<OpKind, Maker>& int8_forms() {
  static const Maker squeezed = [](OneNode& n) { n.done({n.before(OpKind::kGlobalMaxPool, {n.x()}), n.ints({1, 4})}); };
  static const std::map<OpKind, Maker> forms = {
      {OpKind::kDropout, float_forms().at(OpKind::kDropout)},
      {OpKind::kGemm,
       [](OneNode& n) {
         n.done({n.flat(), n.floats({144, 5}), n.floats({5})});
       }},
      {OpKind::kReshape, squeezed},
      {OpKind::kFlatten, [](OneNode& n) { n.done({n.before(OpKind::kGlobalMaxPool, {n.x()})}); }},
      {OpKind::kUnsqueeze,
       [](OneNode& n) {
         Value* pixel = n.before(OpKind::kGlobalMaxPool, {n.x()});
         n.done({n.graph().add(OpKind::kFlatten, "row", {pixel}), n.ints({2, 3})});
       }},
      {OpKind::kSlice,
       [](OneNode& n) {
         n.done({n.x(), n.ints({1}), n.ints({3}), n.ints({2})});
       }},
      {OpKind::kResize,
       [](OneNode& n) {
         n.done(
             {n.x(), nullptr, n.constant(Tensor::of<float>({4}, std::vector<float>{1, 1, 2, 2}))},
             {{"coordinate_transformation_mode", std::string("asymmetric")}, {"nearest_mode", std::string("floor")}});
       }},
      {OpKind::kMin,
       [](OneNode& n) {
         n.done({n.x(), n.scalar(1)});
       }},
  };
  return forms;
}

Value* quantized(Graph& graph, Value* v, Node* before) {
  const std::string name = graph.unique_name(v->name + "/q");
  Value* scale = graph.add_constant(name + "/scale", Tensor::scalar(0.5f));
  Value* zero = graph.add_constant(name + "/zero", Tensor::scalar<int8_t>(0));
  return graph.add(OpKind::kFakeQuantize, name, {v, scale, zero}, {}, before);
}

// Everything that is computed, and the weights of products.
void quantize_all(Graph& graph) {
  for (Node* node : ir::node_list(graph)) {
    if (node->kind == OpKind::kFakeQuantize) continue;
    const bool weighted = node->info().has(trait::kWeighted);
    for (size_t i = 0; i < (weighted ? 2 : ir::data_inputs(*node)); ++i)
      if (weighted || !node->input(i)->is_constant()) graph.set_input(node, i, quantized(graph, node->input(i), node));
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    graph.set_output_value(i, quantized(graph, graph.outputs()[i], nullptr));
}

TEST(EveryOp, RunsOnCodesOrIsFloatOnly) {
  for (const ir::OpInfo* op : ops_with(0, trait::kFloatOnly | trait::kNotInEngine)) {
    Graph graph = graph_of(op->kind, int8_forms());
    quantize_all(graph);
    const engine::Plan plan = lower::lower(graph);
    for (const engine::Step& step : plan.steps)
      EXPECT_TRUE(step.int8) << op->name << ": the step " << step.kind << " (" << step.op
                             << ") is float: " << step.reason << "; give it one on codes, or say kFloatOnly in ops.def";
  }
}

// --- traits

Array numbers(const Graph& graph, float low, float high) {
  const ir::Shape shape = *graph.inputs()[0]->type.shape;
  return {shape, Random(7).values(ir::element_count(shape), low, high)};
}

std::vector<Array> outputs_of(const Graph& graph, const Array& x) {
  const auto all = evaluate_graph(graph, {{"x", x}});
  std::vector<Array> out;
  for (const Value* v : graph.outputs()) out.push_back(all.at(v->name));
  return out;
}

TEST(Traits, CommutingOperatorsDo) {
  for (const ir::OpInfo& op : ir::all_ops()) {
    Graph inside = graph_of(op.kind, int8_forms());
    if (!ir::commutes_with_quantizer(*inside.find_node("node"))) continue;
    Graph outside = inside.clone();
    Node* node = inside.find_node("node");
    for (size_t i = 0; i < ir::data_inputs(*node); ++i)
      inside.set_input(node, i, quantized(inside, node->input(i), node));
    for (size_t i = 0; i < outside.outputs().size(); ++i)
      outside.set_output_value(i, quantized(outside, outside.outputs()[i], nullptr));
    ir::infer_shapes(inside);
    const Array x = numbers(inside, -3, 3);
    const auto a = outputs_of(inside, x), b = outputs_of(outside, x);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].data, b[i].data) << op.name;
  }
}

TEST(Traits, SignsAreAsPromised) {
  const auto expect_no_negatives = [](const ir::OpInfo& op, float low) {
    const Graph graph = graph_of(op.kind, float_forms());
    for (const Array& y : outputs_of(graph, numbers(graph, low, 3)))
      for (const float v : y.data) ASSERT_FALSE(v < 0) << op.name;  // NaN, as of a root, has no sign
  };
  for (const ir::OpInfo* op : ops_with(trait::kNeverNegative)) expect_no_negatives(*op, -3);
  for (const ir::OpInfo* op : ops_with(trait::kKeepsSign)) expect_no_negatives(*op, 0);
}

// Mirrored images give mirrored results.
TEST(Traits, ElementwiseOperatorsKnowNoPlace) {
  const auto mirrored = [](Array a) {
    const int64_t w = a.shape.back();
    for (size_t start = 0; start < a.data.size(); start += static_cast<size_t>(w))
      std::reverse(a.data.begin() + static_cast<int64_t>(start), a.data.begin() + static_cast<int64_t>(start) + w);
    return a;
  };
  for (const ir::OpInfo* op : ops_with(trait::kElementwise)) {
    const Graph graph = graph_of(op->kind, float_forms());
    const Array x = numbers(graph, 0.25f, 3);
    EXPECT_EQ(mirrored(outputs_of(graph, x)[0]).data, outputs_of(graph, mirrored(x))[0].data) << op->name;
  }
}

}  // namespace
}  // namespace octet::testing
