// u8 weights whose codes minus their zero point need nine bits stay INT8.
#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;

// FakeQuantize of u8 codes that use the whole range, so that q - z is in -100..155.
ir::Value* wide(QuantNet& net, ir::Shape shape, int64_t transposed = false) {
  const int64_t count = ir::element_count(shape);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 37 + transposed) % 256 - 100) * 0.01f);
  ir::Value* w = net.graph.add_constant(net.graph.unique_name("w"), ir::Tensor::of<float>(shape, values));
  return net.fq(w, 0.01f, true, 100);
}

std::vector<float> outputs_of(const QuantNet& net, const std::vector<float>& x, std::string* kinds) {
  const auto plan = compile(net.graph, 0);
  *kinds = step_kinds(*plan);
  engine::Executor executor(plan, {.threads = 2});
  std::vector<float> out(static_cast<size_t>(plan->buffers[plan->outputs[0]].elements()));
  const float* inputs[] = {x.data()};
  float* outputs[] = {out.data()};
  executor.run(inputs, outputs);
  return out;
}

// What integer arithmetic makes of a convolution without padding, stride 1; its float output.
TEST(WideWeights, AccumulatorsAreTheSameIntegers) {
  for (const int64_t groups : {1, 2}) {
    const int64_t channels = 6, out_channels = 4, size = 5, kernel = 3, in = channels / groups;
    QuantNet net(51);
    ir::Value* w = wide(net, {out_channels, in, kernel, kernel});
    net.finish({net.op(OpKind::kConv, {net.fq(net.input({1, channels, size, size}), 0.02f, true, 120), w},
                       {{"kernel_shape", std::vector<int64_t>{kernel, kernel}}, {"group", groups}})});
    const std::vector<float> x = Random(9).values(channels * size * size, -2, 2);
    const std::vector<float> weights = w->producer->input(0)->constant->to_floats();
    std::string kinds;
    const std::vector<float> y = outputs_of(net, x, &kinds);
    EXPECT_EQ(kinds.find("float_conv"), std::string::npos) << kinds;
    const numerics::QuantParams px{.scale = 0.02f, .zero_point = 120, .qmin = 0, .qmax = 255};
    const int64_t out_size = size - kernel + 1;
    for (int64_t o = 0; o < out_channels; ++o)
      for (int64_t r = 0; r < out_size; ++r)
        for (int64_t c = 0; c < out_size; ++c) {
          int32_t sum = 0;
          for (int64_t i = 0; i < in; ++i)
            for (int64_t k = 0; k < kernel * kernel; ++k) {
              const int64_t from = o / (out_channels / groups) * in + i;
              const float v = x[(from * size + r + k / kernel) * size + c + k % kernel];
              const float q = weights[(o * in + i) * kernel * kernel + k] / 0.01f;
              sum += (numerics::quantize(v, px) - 120) * static_cast<int32_t>(std::lround(q));
            }
          EXPECT_EQ(y[(o * out_size + r) * out_size + c], static_cast<float>(sum) * (0.02f * 0.01f));
        }
  }
}

// Whatever moves codes as they are may stand before the layer.
TEST(WideWeights, ProductsBehindSqueezeToo) {
  QuantNet net(54);
  ir::Value* row = net.op(OpKind::kSqueeze, {net.fq(net.input({2, 20, 1, 1}), 0.01f), net.ints({2, 3})});
  net.finish({net.fq(net.op(OpKind::kGemm, {row, wide(net, {20, 7})}), 0.5f)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan).find("float_gemm"), std::string::npos) << step_kinds(*plan);
}

TEST(WideWeights, ProductsBehindFlattenToo) {
  for (const bool transposed : {false, true}) {
    QuantNet net(52);
    ir::Value* flat = net.op(OpKind::kFlatten, {net.fq(net.input({2, 3, 4, 4}), 0.01f)});
    ir::Value* w = wide(net, transposed ? ir::Shape{7, 48} : ir::Shape{48, 7}, transposed);
    ir::Value* y = net.op(OpKind::kGemm, {flat, w, net.constant({7}, -1, 1)}, {{"transB", int64_t{transposed}}});
    net.finish({net.fq(y, 0.5f)});
    std::shared_ptr<const engine::Plan> plan;
    check_graph(net, {}, &plan);
    EXPECT_EQ(step_kinds(*plan).find("float_gemm"), std::string::npos) << step_kinds(*plan);
  }
}

// Their codes are known to no compiler.
TEST(WideWeights, ComputedWeightsAreRefused) {
  QuantNet net(53);
  ir::Value* x = net.fq(net.input({1, 1, 3, 3}), 0.02f, true, 120);
  net.finish({net.op(OpKind::kConv, {x, net.fq(net.relu(x), 0.01f, true, 100)})});
  try {
    compile(net.graph);
    FAIL() << "was compiled";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("its weights are computed by the network"));
  }
}

TEST(WideWeights, DepthwiseSaysWhyItStaysFloat) {
  QuantNet net(53);
  net.finish({net.op(OpKind::kConv, {net.fq(net.input({1, 16, 5, 5}), 0.01f), wide(net, {16, 1, 3, 3})},
                     {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"group", int64_t{16}}})});
  const auto plan = compile(net.graph, 0);
  for (const engine::Step& s : plan->steps)
    if (s.kind == "float_depthwise") {
      EXPECT_EQ(s.reason, "weight codes minus their zero point exceed 8 bits");
    }
}

}  // namespace
}  // namespace octet::testing
