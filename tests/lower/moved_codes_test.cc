// Quantized tensors that are moved on their way to a product, as transformers do it: the products run in INT8 wherever
// the quantizer stands, and a layer that stays FP32 has a reason in the names of the user's model.
#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using Ints = std::vector<int64_t>;
using ::testing::HasSubstr;
using ::testing::Not;

ir::Value* transpose(QuantNet& net, ir::Value* x, Ints perm) {
  return net.op(OpKind::kTranspose, {x}, {{"perm", std::move(perm)}});
}
ir::Value* reshape(QuantNet& net, ir::Value* x, Ints shape) {
  return net.op(OpKind::kReshape, {x, net.ints(std::move(shape))});
}
ir::Value* linear(QuantNet& net, ir::Value* x, int64_t in, int64_t out) {
  ir::Value* w = net.weights({in, out}, 1, 2.0f / std::sqrt(static_cast<float>(in)));
  return net.op(OpKind::kAdd, {net.constant({out}, -0.5f, 0.5f), net.op(OpKind::kMatMul, {x, w})});
}

// All weighted layers are INT8, and the numbers are those of the graph.
void expect_int8(QuantNet& net, ir::Value* out) {
  net.finish({out});
  std::shared_ptr<const engine::Plan> plan;
  // A code that rounds the other way moves a float behind it by a step, about a hundredth of the largest.
  check_graph(net, {.float_tolerance = 0.015, .off_by_one = 0.02, .bit_equal = false}, &plan);
  for (const engine::Step& s : plan->steps)
    EXPECT_THAT(s.kind,
                Not(::testing::AnyOf(HasSubstr("float_conv"), HasSubstr("float_gemm"), HasSubstr("float_depth"))))
        << s.name << ": " << s.reason;
}

TEST(MovedCodes, BlocksOfConvNeXtAreInt8) {
  QuantNet net(91);
  auto* x = net.fq(net.input({2, 16, 6, 5}), 0.01f);
  auto* d = net.conv(x, 16, 16, 3, {.pad = 1, .groups = 16});
  // The scale stands for the normalization: something in floats between the move and the quantizer.
  auto* rows = net.op(OpKind::kMul, {transpose(net, d, {0, 2, 3, 1}), net.constant({16}, 0.5f, 1)});
  auto* wide = net.op(OpKind::kTanh, {linear(net, net.fq(rows, 0.012f), 16, 64)});
  auto* thin = linear(net, net.fq(wide, 0.009f), 64, 16);
  auto* image = net.fq(transpose(net, net.op(OpKind::kMul, {thin, net.constant({16}, 0.5f, 1)}), {0, 3, 1, 2}), 0.02f);
  expect_int8(net, net.conv(image, 16, 24, 2, {.stride = 2}));
}

TEST(MovedCodes, HeadsAndWindowsOfAttentionAreInt8) {
  QuantNet net(92);
  auto* x = net.input({2, 4, 4, 24});
  auto* windows = transpose(net, reshape(net, x, {2, 2, 2, 2, 2, 24}), {0, 1, 3, 2, 4, 5});
  auto* q = linear(net, net.fq(reshape(net, windows, {8, 4, 24}), 0.01f), 24, 24);
  auto* heads = transpose(net, reshape(net, q, {8, 4, 3, 8}), {0, 2, 1, 3});
  auto* scores = net.op(OpKind::kSoftmax, {net.op(OpKind::kMatMul, {heads, transpose(net, heads, {0, 1, 3, 2})})},
                        {{"axis", int64_t{-1}}});
  auto* merged = reshape(net, transpose(net, net.op(OpKind::kMatMul, {scores, heads}), {0, 2, 1, 3}), {8, 4, 24});
  expect_int8(net, linear(net, net.fq(merged, 0.012f), 24, 40));
}

TEST(MovedCodes, QuantizersBeforeTheMoveServeAsWell) {
  QuantNet net(93);
  auto* x = net.fq(net.input({2, 16, 6, 6}), 0.01f, true, 120);
  auto* a = linear(net, transpose(net, x, {0, 2, 3, 1}), 16, 8);                             // 2 6 6 8
  auto* b = linear(net, reshape(net, transpose(net, x, {0, 2, 3, 1}), {2, 36, 16}), 16, 8);  // 2 36 8
  auto* c = linear(net, reshape(net, x, {32, 36}), 36, 8);                                   // 32 8
  auto* odd = net.op(OpKind::kSlice, {x, net.ints({0, 1}), net.ints({6, 6}), net.ints({2, 3}), net.ints({2, 2})});
  auto* even = net.op(OpKind::kSlice, {x, net.ints({1, 0}), net.ints({6, 6}), net.ints({2, 3}), net.ints({2, 2})});
  auto* d = net.conv(net.op(OpKind::kConcat, {odd, even}, {{"axis", int64_t{1}}}), 32, 8, 3);  // 2 8 1 1
  std::vector<ir::Value*> flat;
  for (ir::Value* v : {a, b, c, d}) flat.push_back(reshape(net, v, {2, -1}));
  expect_int8(net, net.op(OpKind::kConcat, flat, {{"axis", int64_t{1}}}));
}

TEST(MovedCodes, FlattenedImagesAreReadInPlace) {
  QuantNet net(94);
  auto* v = net.conv(net.fq(net.input({2, 8, 4, 4}), 0.01f), 8, 16, 3, {.pad = 1});
  auto* flat = net.fq(net.op(OpKind::kFlatten, {v}), 0.02f);
  net.finish({net.gemm(flat, 256, 10)});
  EXPECT_EQ(step_kinds(*compile(net.graph, 2)), "quantize conv conv");
}

TEST(MovedCodes, ReasonsNameTheUsersValues) {
  QuantNet net(95);
  auto* x = net.input({2, 3, 7, 16}, "tokens");
  auto* hidden = linear(net, net.fq(x, 0.01f), 16, 16);
  auto* cube = net.fq(reshape(net, hidden, {2, 3, 7, 4, 4}), 0.02f);
  auto* half = net.op(OpKind::kMatMul, {x, net.weights({16, 8}, 1)});
  net.finish({net.op(OpKind::kAdd, {cube, cube}), half});
  bool rank = false, product = false;
  const auto plan = compile(net.graph, 2);
  for (const engine::Step& s : plan->steps) {
    rank |= s.reason == "input '" + cube->name + "' is quantized, but the engine has codes of rank 2 and 4 only, not 5";
    product |= s.kind == "float_gemm" && s.reason == "input 'tokens' is not quantized";
    const size_t quote = s.reason.find('\'');
    if (quote == std::string::npos) continue;
    const std::string name = s.reason.substr(quote + 1, s.reason.find('\'', quote + 1) - quote - 1);
    EXPECT_NE(net.graph.find_value(name), nullptr) << s.name << ": " << s.reason;
  }
  EXPECT_TRUE(rank);
  EXPECT_TRUE(product);
}

}  // namespace
}  // namespace octet::testing
