// Forms of operators and ranks that the engine reaches by rewriting: same bits as of the graph that is written plainly.
#include "base/error.h"
#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using ::testing::HasSubstr;

std::vector<float> run_once(const QuantNet& net, const std::vector<float>& x,
                            std::shared_ptr<const engine::Plan>* plan_out = nullptr) {
  const auto plan = compile(net.graph, 0);
  if (plan_out != nullptr) *plan_out = plan;
  engine::Executor executor(plan, {.threads = 2});
  std::vector<float> out(static_cast<size_t>(plan->buffers[plan->outputs[0]].elements()));
  const float* inputs[] = {x.data()};
  float* outputs[] = {out.data()};
  executor.run(inputs, outputs);
  return out;
}

std::string complaint_about(const ir::Graph& graph) {
  try {
    lower::lower(graph);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

// Two quantized products with bias over rows, in any shape.
void two_products(QuantNet& net, const ir::Shape& shape) {
  ir::Value* v = net.fq(net.input(shape), 0.01f, true, 100);
  for (int i = 0; i < 2; ++i) {
    v = net.op(OpKind::kMatMul, {v, net.weights({8, 8}, 1)});
    v = net.fq(net.op(OpKind::kAdd, {v, net.constant({8}, -0.5f, 0.5f)}), 0.02f);
  }
  net.finish({v});
}

TEST(RewriteForms, ProductsOfHigherRankAreInt8) {
  const std::vector<float> x = Random(5).values(2 * 3 * 8, -1, 1);
  QuantNet plain(41), cube(41), box(41);
  two_products(plain, {6, 8}), two_products(cube, {2, 3, 8}), two_products(box, {1, 2, 3, 8});
  std::shared_ptr<const engine::Plan> plan;
  const auto expected = run_once(plain, x);
  EXPECT_EQ(run_once(cube, x, &plan), expected);
  EXPECT_THAT(step_kinds(*plan), HasSubstr("conv conv"));
  EXPECT_EQ(run_once(box, x), expected);
}

// What lies between the products of a transformer: normalization, activation, a residual sum, numbers along the last
// axis.
void feed_forward(QuantNet& net, const ir::Shape& shape) {
  ir::Value* x = net.op(OpKind::kLayerNormalization, {net.input(shape), net.constant({8}, 0.5f, 1.5f)});
  x = net.op(OpKind::kAdd, {x, net.constant(shape, -0.1f, 0.1f)});
  for (int i = 0; i < 2; ++i) {
    ir::Value* residual = net.fq(x, 0.02f);
    ir::Value* v = net.op(OpKind::kLayerNormalization, {x, net.constant({8}, 0.5f, 1.5f), net.constant({8}, -1, 1)});
    v = net.op(OpKind::kMatMul, {net.fq(v, 0.02f), net.weights({8, 16}, 1)});
    v = net.op(OpKind::kAdd, {v, net.constant({16}, -0.5f, 0.5f)});
    // Gelu as exporters write it.
    ir::Value* erf = net.op(OpKind::kErf, {net.op(OpKind::kDiv, {v, net.scalar(std::sqrt(2.0f))})});
    v = net.op(OpKind::kMul, {v, net.op(OpKind::kAdd, {erf, net.scalar(1)})});
    v = net.fq(net.op(OpKind::kMul, {v, net.scalar(0.5f)}), 0.02f);
    v = net.op(OpKind::kMatMul, {v, net.weights({16, 8}, 1)});
    v = net.op(OpKind::kAdd, {net.constant({8}, -0.5f, 0.5f), v});
    x = net.op(OpKind::kAdd, {v, residual});
  }
  ir::Shape along(shape.size(), 1);
  along.back() = 8;
  net.finish({net.op(OpKind::kMul, {x, net.constant(along, 0.5f, 1)})});
}

TEST(RewriteForms, TokensOfAnyRankAreRows) {
  const std::vector<float> x = Random(7).values(12 * 8, -1, 1);
  QuantNet rows(43), tokens(43), windows(43);
  feed_forward(rows, {12, 8}), feed_forward(tokens, {1, 12, 8}), feed_forward(windows, {1, 3, 4, 8});
  std::shared_ptr<const engine::Plan> plan;
  const auto expected = run_once(rows, x, &plan);
  const std::string kinds = step_kinds(*plan);
  EXPECT_THAT(kinds, ::testing::Not(HasSubstr("unary"))) << "Gelu belongs to the product before it";
  for (const QuantNet* net : {&tokens, &windows}) {
    EXPECT_EQ(run_once(*net, x, &plan), expected);
    EXPECT_EQ(step_kinds(*plan), kinds);
  }
}

// Numbers without an axis, where a row has one column: they have no last axis to look at.
void one_column(QuantNet& net, const ir::Shape& shape) {
  ir::Value* v = net.op(OpKind::kMatMul, {net.fq(net.input(shape), 0.01f), net.weights({8, 1}, 1)});
  v = net.op(OpKind::kAdd, {v, net.scalar(0.25f)});
  v = net.fq(net.op(OpKind::kMul, {net.op(OpKind::kRelu, {v}), net.scalar(0.5f)}), 0.02f);
  net.finish({net.op(OpKind::kMul, {net.scalar(2), v})});
}

TEST(RewriteForms, NumbersBehindASingleColumn) {
  const std::vector<float> x = Random(9).values(6 * 8, -1, 1);
  QuantNet rows(45), tokens(45);
  one_column(rows, {6, 8}), one_column(tokens, {2, 3, 8});
  EXPECT_EQ(run_once(tokens, x), run_once(rows, x));
}

TEST(RewriteForms, QuantizersOfAnyRank) {
  const std::vector<float> x = Random(6).values(24, -2, 2);
  for (const ir::Shape& shape : {ir::Shape{24}, {2, 3, 4}, {2, 3, 1, 2, 2}}) {
    QuantNet net(42);
    net.finish({net.fq(net.input(shape), 0.013f, true, 77)});
    std::vector<float> expected;
    for (float v : x)
      expected.push_back(numerics::fake_quantize(v, {.scale = 0.013f, .zero_point = 77, .qmin = 0, .qmax = 255}));
    EXPECT_EQ(run_once(net, x), expected) << ir::shape_string(shape);
  }
}

TEST(RewriteForms, WindowsOverOneAxis) {
  const std::vector<float> x = Random(7).values(2 * 6 * 20, -1, 1);
  const auto build = [](QuantNet& net, bool image) {
    const auto shape = [&](ir::Shape s) {
      if (image) s.insert(s.begin() + 2, 1);
      return s;
    };
    const auto ints = [&](int64_t first, int64_t value) {
      return image ? std::vector<int64_t>{first, value} : std::vector<int64_t>{value};
    };
    const std::vector<int64_t> pads = image ? std::vector<int64_t>{0, 1, 0, 2} : std::vector<int64_t>{1, 2};
    ir::Value* w = net.weights(shape({16, 6, 3}), 0);
    ir::Value* v = net.op(OpKind::kConv, {net.fq(net.input(shape({2, 6, 20})), 0.01f), w, net.constant({16}, -1, 1)},
                          {{"kernel_shape", ints(1, 3)}, {"strides", ints(1, 2)}, {"pads", pads}});
    v = net.op(OpKind::kMaxPool, {v}, {{"kernel_shape", ints(1, 2)}, {"strides", ints(1, 2)}});
    net.finish({net.op(OpKind::kGlobalAveragePool, {v})});
  };
  QuantNet row(43), image(43);
  build(row, false), build(image, true);
  std::shared_ptr<const engine::Plan> plan;
  EXPECT_EQ(run_once(row, x, &plan), run_once(image, x));
  bool int8 = false;
  for (const engine::Step& s : plan->steps) int8 = int8 || (s.kind == "conv" && s.int8);
  EXPECT_TRUE(int8);
}

TEST(RewriteForms, GeneralGemm) {
  QuantNet net(44);
  ir::Value* x = net.input({8, 4});
  ir::Value* w = net.constant({8, 5}, -1, 1);
  ir::Value* c = net.constant({4, 5}, -1, 1);
  net.finish({net.op(OpKind::kGemm, {x, w, c}, {{"transA", int64_t{1}}, {"alpha", 0.5f}, {"beta", 2.0f}})});
  const std::vector<float> in = Random(8).values(32, -1, 1);
  const auto weights = w->constant->to_floats(), bias = c->constant->to_floats();
  const std::vector<float> out = run_once(net, in);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 5; ++j) {
      double sum = 2 * bias[i * 5 + j];
      for (size_t k = 0; k < 8; ++k) sum += 0.5 * in[k * 4 + i] * weights[k * 5 + j];
      EXPECT_NEAR(out[i * 5 + j], sum, 1e-5);
    }
}

TEST(RewriteForms, WhatOnlyTrainingHasIsRefused) {
  QuantNet net(45);
  ir::Value* x = net.input({2, 4});
  ir::Node* node = net.graph.add_node(OpKind::kDropout, "drop", {x}, {"y", "mask"});
  ir::infer_node(*node);
  net.finish({node->outputs[0], node->outputs[1]});
  EXPECT_THAT(complaint_about(net.graph), ::testing::AllOf(HasSubstr("'drop'"), HasSubstr("mask")));
}

TEST(RewriteForms, LooseCodesAreRefused) {
  QuantNet net(46);
  ir::Value* scale = net.scalar(0.1f);
  ir::Value* codes = net.op(OpKind::kQuantizeLinear, {net.input({2, 4}), scale});
  net.finish({codes});
  EXPECT_THAT(complaint_about(net.graph), HasSubstr("put a DequantizeLinear behind it"));
  QuantNet sum(47);
  codes = sum.op(OpKind::kQuantizeLinear, {sum.input({2, 4}), sum.scalar(0.1f)});
  sum.finish({sum.op(OpKind::kAdd, {codes, codes})});
  EXPECT_THAT(complaint_about(sum.graph), HasSubstr("its codes are read by Add"));
}

}  // namespace
}  // namespace octet::testing
