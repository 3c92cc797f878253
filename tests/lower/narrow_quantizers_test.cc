// Which quantizers lose their negative codes, and that nothing else changes.
#include "lower/narrow_quantizers.h"

#include <algorithm>

#include "ir/infer.h"
#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using ir::Value;

int64_t least_code(const Value* quantized) {
  return quantized->producer->get_int("qmin");
}

int narrowed(QuantNet& net) {
  ir::infer_shapes(net.graph);
  return lower::narrow_quantizers(net.graph);
}

TEST(NarrowQuantizers, BehindWhatIsNeverNegative) {
  QuantNet net(1);
  auto* x = net.fq(net.input({1, 16, 8, 8}), 1.0f / 127);
  auto* a = net.fq(net.relu(net.conv(x, 16, 16, 1)), 0.02f);
  auto* b = net.fq(net.op(OpKind::kSigmoid, {net.conv(x, 16, 16, 1)}), 1.0f / 127);
  auto* six = net.op(OpKind::kClip, {net.conv(x, 16, 16, 1), net.scalar(0), net.scalar(6)});
  auto* c = net.fq(six, 6.0f / 127);
  auto* sum = net.fq(net.op(OpKind::kAdd, {a, b}), 0.03f);
  auto* product = net.fq(net.op(OpKind::kMul, {sum, c}), 0.05f);
  auto* pooled = net.fq(net.op(OpKind::kGlobalAveragePool, {product}), 0.05f);
  // No image; and these may be negative.
  auto* below = net.op(OpKind::kClip, {net.conv(x, 16, 16, 1), net.scalar(-1), net.scalar(6)});
  auto* d = net.fq(below, 6.0f / 127);
  auto* e = net.fq(net.op(OpKind::kAdd, {a, d}), 0.03f);
  auto* f = net.fq(net.op(OpKind::kTanh, {net.conv(x, 16, 16, 1)}), 1.0f / 127);
  net.finish({pooled, e, f});
  EXPECT_EQ(narrowed(net), 5);
  for (const Value* v : {a, b, c, sum, product}) EXPECT_EQ(least_code(v), 0) << v->name;
  for (const Value* v : {x, pooled, d, e, f}) EXPECT_EQ(least_code(v), -128) << v->name;
}

TEST(NarrowQuantizers, AllOrNoneWhereCodesMeet) {
  for (const bool same_sign : {true, false}) {
    QuantNet net(2);
    auto* x = net.fq(net.input({1, 16, 8, 8}), 1.0f / 127);
    auto* a = net.fq(net.relu(net.conv(x, 16, 16, 1)), 0.02f);
    auto* other = net.conv(x, 16, 16, 1);
    auto* b = net.fq(same_sign ? net.relu(other) : other, 0.02f);
    auto* pooled = net.op(OpKind::kMaxPool, {a}, {{"kernel_shape", std::vector<int64_t>{1, 1}}});
    auto* joined = net.op(OpKind::kConcat, {pooled, b}, {{"axis", int64_t{1}}});
    auto* y = net.fq(net.conv(joined, 32, 16, 1), 0.02f);
    net.finish({y});
    EXPECT_EQ(narrowed(net), same_sign ? 2 : 0);
  }
}

// The engine has the same codes, stored from zero on, on every instruction set.
TEST(NarrowQuantizers, KeepEveryCode) {
  QuantNet net(3);
  auto* x = net.fq(net.input({1, 16, 20, 20}), 1.0f / 127);
  auto* a = net.fq(net.relu(net.conv(x, 16, 64, 1)), 0.01f);
  auto* b = net.fq(net.relu(net.conv(a, 64, 64, 1)), 0.02f);
  auto* c = net.fq(net.relu(net.op(OpKind::kAdd, {net.conv(b, 64, 64, 1), a})), 0.02f);
  net.finish({net.conv(c, 64, 16, 1)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.float_tolerance = 0.02}, &plan);
  int from_zero = 0;
  for (const engine::Buffer& buffer : plan->buffers)
    if (buffer.layout == engine::Layout::kCodes && buffer.code_min == 0 && buffer.code_max == 127) {
      ++from_zero;
      EXPECT_EQ(buffer.zero_point, 0);
      EXPECT_EQ(buffer.code_offset, 0);
    }
  EXPECT_EQ(from_zero, 3);
}

}  // namespace
}  // namespace octet::testing
