// Products of two quantized activations: where their codes come from, and what they are worth.
#include "lower/products.h"

#include "engine/steps_conv.h"
#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using Axes = std::vector<int64_t>;
using ::testing::HasSubstr;
using ::testing::Not;

ir::Value* turned(QuantNet& net, ir::Value* x, Axes perm) {
  return net.op(OpKind::kTranspose, {x}, {{"perm", std::move(perm)}});
}
ir::Value* shaped(QuantNet& net, ir::Value* x, Axes shape) {
  return net.op(OpKind::kReshape, {x, net.ints(std::move(shape))});
}
ir::Value* part(QuantNet& net, ir::Value* x, int64_t from, int64_t to, int64_t axis) {
  return net.op(OpKind::kSlice, {x, net.ints({from}), net.ints({to}), net.ints({axis})});
}

std::shared_ptr<const engine::Plan> check_int8(QuantNet& net, ir::Value* out) {
  net.finish({out});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.float_tolerance = 0.01, .off_by_one = 0.02, .bit_equal = false}, &plan);
  for (const engine::Step& s : plan->steps) EXPECT_NE(s.kind, "float_matmul") << s.name << ": " << s.reason;
  return plan;
}

// Codes are made straight from the product that holds query, key and value side by side: nothing is copied before.
TEST(Products, AttentionReadsItsHeadsWhereTheyAre) {
  QuantNet net(31);
  constexpr int64_t kBatch = 2, kTokens = 19, kHeads = 3, kWidth = 8, kAll = kHeads * kWidth;
  auto* qkv = net.input({kBatch, kTokens, 3 * kAll});
  const auto heads = [&](int64_t i, Axes perm) {
    auto* rows = shaped(net, part(net, qkv, i * kAll, (i + 1) * kAll, 2), {kBatch, kTokens, kHeads, kWidth});
    return turned(net, rows, std::move(perm));
  };
  auto* q = net.fq(heads(0, {0, 2, 1, 3}), 0.01f);
  auto* k = net.fq(heads(1, {0, 2, 3, 1}), 0.011f);
  auto* v = net.fq(heads(2, {0, 2, 1, 3}), 0.009f);
  auto* scores = net.op(OpKind::kSoftmax, {net.op(OpKind::kMatMul, {q, k})}, {{"axis", int64_t{-1}}});
  const auto plan = check_int8(net, net.op(OpKind::kMatMul, {net.fq(scores, 1.0f / 127), v}));
  EXPECT_THAT(step_kinds(*plan), Not(HasSubstr("strided_copy")));
  // Keys lie by their width: these are columns of the second factor.
  int columns = 0;
  for (const engine::Buffer& b : plan->buffers) columns += b.layout == engine::Layout::kCodeColumns;
  EXPECT_EQ(columns, 1);
}

TEST(Products, OfRankThreeAndOfOneTensorWithItself) {
  QuantNet net(32);
  auto* x = net.input({3, 5, 40});
  auto* codes = net.fq(x, 0.01f);
  auto* square = net.op(OpKind::kMatMul, {codes, net.fq(turned(net, x, {0, 2, 1}), 0.01f)});
  check_int8(net, net.op(OpKind::kMatMul, {net.fq(square, 0.05f), codes}));
}

// Only the products' quantizers become rows; the others read and give what they did.
TEST(Products, ATensorThatOthersReadQuantizedToo) {
  QuantNet net(33);
  auto* x = net.fq(net.input({1, 16, 6, 5}), 0.01f);
  auto* product = net.op(OpKind::kMatMul, {x, turned(net, x, {0, 1, 3, 2})});
  net.finish({product, net.conv(x, 16, 8, 1)});
  check_graph(net, {.float_tolerance = 0.01, .off_by_one = 0.02, .bit_equal = false});
}

TEST(Products, ZeroPointsOfBothFactors) {
  QuantNet net(34);
  auto* a = net.fq(net.input({2, 7, 12}), 0.02f, true, 17);
  auto* b = net.fq(net.input({2, 12, 9}, "w"), 0.03f, false, -5);
  check_int8(net, net.op(OpKind::kMatMul, {a, b}));
}

TEST(Products, AFactorThatIsNotQuantizedIsNamed) {
  QuantNet net(35);
  auto* a = net.fq(net.input({2, 7, 12}), 0.02f);
  net.finish({net.op(OpKind::kMatMul, {a, net.input({2, 12, 9}, "w")})});
  const auto plan = compile(net.graph, 2);
  const auto product = std::find_if(plan->steps.begin(), plan->steps.end(),
                                    [](const engine::Step& s) { return s.kind == "float_matmul"; });
  ASSERT_NE(product, plan->steps.end());
  EXPECT_THAT(product->reason, HasSubstr("is not quantized"));
}

// The views that need no copy, and those that do.
TEST(FloatView, FollowsMovesAsFarAsStridesGo) {
  QuantNet net(36);
  auto* x = net.input({2, 6, 20});
  auto* heads = turned(net, shaped(net, part(net, x, 4, 16, 2), {2, 6, 3, 4}), {0, 2, 1, 3});
  auto* joined = shaped(net, heads, {6, 6, 4});  // heads of all images: no one stride
  auto* again = turned(net, joined, {0, 2, 1});
  net.finish({again});
  const lower::FloatView view = lower::float_view(heads);
  EXPECT_EQ(view.source, x);
  EXPECT_EQ(view.offset, 4);
  EXPECT_EQ(view.strides, (Axes{120, 4, 20, 1}));
  const lower::FloatView copy = lower::float_view(again);
  EXPECT_EQ(copy.source, joined);
  EXPECT_EQ(copy.strides, (Axes{24, 1, 4}));
}

// The rows of a matrix are rows of one image to the kernels, so that those which take many pixels at once apply: with
// codes and with numbers behind, with a residual, and whatever the number of rows is.
TEST(Products, RowsOfAMatrixAreTakenTogether) {
  constexpr int64_t kRows = 83, kWidth = 64;
  QuantNet net(33);
  auto* x = net.fq(net.input({kRows, kWidth}), 1.0f / 127);
  const Axes square{kWidth, kWidth};
  auto* a = net.fq(net.relu(net.op(OpKind::kGemm, {x, net.weights(square, 1)})), 0.01f);
  auto* b = net.fq(net.op(OpKind::kAdd, {net.op(OpKind::kGemm, {a, net.weights(square, 1)}), x}), 0.02f);
  net.finish({net.op(OpKind::kGemm, {b, net.weights({kWidth, 40}, 1)})});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  const auto inputs = net.random_inputs(-1, 1);
  for (const Isa isa : supported_isas())
    for (const engine::Step& step : plan->steps) {
      if (step.kind != engine::kConvKind) continue;
      const auto candidates = engine::conv_candidates(*plan, step, kernels::kernels(isa), 2);
      if (isa == Isa::kAvx2) {
        EXPECT_GE(candidates.size(), 3u) << step.name;
      }
      for (const engine::TacticCandidate& candidate : candidates) {
        auto with = std::make_shared<engine::Plan>(*plan);
        for (engine::Step& each : with->steps)
          if (each.name == step.name) each.tactic = candidate.name;
        const auto scalar = run_plan(plan, inputs, Isa::kScalar, 1), run = run_plan(with, inputs, isa, 2);
        for (const auto& [name, array] : scalar.outputs)
          EXPECT_EQ(run.outputs.at(name).data, array.data) << step.name << " by " << candidate.name;
      }
    }
}

}  // namespace
}  // namespace octet::testing
