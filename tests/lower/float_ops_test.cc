// Every float operator of the engine against the plain evaluator, alone and in several shapes.
#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using Ints = std::vector<int64_t>;

// A graph of one operator (or few) over float inputs.
class FloatOps : public ::testing::Test {
 protected:
  QuantNet net{21};
  void check(std::vector<ir::Value*> outputs, double tolerance = 1e-5, float low = -1, float high = 1) {
    net.finish(std::move(outputs));
    check_graph(net, {.float_tolerance = tolerance, .bit_equal = false, .low = low, .high = high});
  }
  // Row-major as the caller gives it, and channels last as images are made.
  std::vector<ir::Value*> in_both_layouts(const ir::Shape& shape, const std::string& name = "input") {
    ir::Value* x = net.input(shape, name);
    return {x, net.op(OpKind::kAveragePool, {x}, {{"kernel_shape", Ints{1, 1}}})};
  }
};

TEST_F(FloatOps, ElementWise) {
  auto* x = net.input({2, 5, 4, 3});
  auto* r = net.input({2, 7}, "row");
  std::vector<ir::Value*> out;
  for (ir::Value* v : {x, r})
    for (OpKind k : {OpKind::kRelu, OpKind::kSigmoid, OpKind::kTanh, OpKind::kExp, OpKind::kNeg, OpKind::kAbs,
                     OpKind::kHardSwish, OpKind::kHardSigmoid, OpKind::kLeakyRelu, OpKind::kGelu, OpKind::kMish})
      out.push_back(net.op(k, {v}));
  out.push_back(net.op(OpKind::kClip, {x, net.scalar(-0.25f), nullptr}));
  out.push_back(net.op(OpKind::kPRelu, {x, net.constant({5, 1, 1}, 0, 1)}));
  check(out);
}

TEST_F(FloatOps, BroadcastsOfEveryShape) {
  std::vector<ir::Value*> out;
  for (ir::Value* x : in_both_layouts({2, 5, 4, 3}))
    for (const ir::Shape& shape : {ir::Shape{}, {3}, {4, 1}, {5, 1, 1}, {1, 5, 1, 1}, {2, 1, 4, 3}, {2, 5, 4, 3}})
      for (OpKind k : {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv}) {
        out.push_back(net.op(k, {x, net.constant(shape, 0.5f, 2)}));
        out.push_back(net.op(k, {net.constant(shape, 0.5f, 2), net.op(OpKind::kExp, {x})}));
      }
  check(out);
}

TEST_F(FloatOps, BroadcastsBetweenTensors) {
  const auto both = in_both_layouts({2, 5, 4, 3});
  auto* row = net.input({2, 5}, "row");
  std::vector<ir::Value*> out = {net.op(OpKind::kAdd, {row, net.constant({2, 1}, -1, 1)}),
                                 net.op(OpKind::kSub, {both[0], net.op(OpKind::kNeg, {both[1]})}),
                                 net.op(OpKind::kMax, {both[0], both[1], net.scalar(0.1f)})};
  for (ir::Value* x : both) {
    auto* gate = net.op(OpKind::kGlobalAveragePool, {x});
    auto* cube = net.op(OpKind::kReduceMax, {x, net.ints({0})}, {{"keepdims", int64_t{0}}});
    for (ir::Value* v :
         {net.op(OpKind::kMul, {x, gate}), net.op(OpKind::kSub, {gate, x}), net.op(OpKind::kAdd, {x, cube}),
          net.op(OpKind::kMax, {x, cube, net.scalar(0.1f)}), net.op(OpKind::kMin, {x, gate})})
      out.push_back(v);
  }
  check(out);
}

TEST_F(FloatOps, Convolutions) {
  auto* x = net.input({2, 6, 11, 9});
  auto* a = net.conv(x, 6, 17, 3, {.stride = 2, .pad = 1, .quantized = false});
  auto* b = net.conv(x, 6, 6, 5, {.pad = 4, .groups = 6, .dilation = 2, .quantized = false});
  auto* c = net.conv(x, 6, 40, 1, {.groups = 2, .quantized = false, .bias = false});
  auto* transposed =
      net.op(OpKind::kConvTranspose, {a, net.constant({17, 4, 2, 2}, -0.5f, 0.5f), net.constant({4}, -1, 1)},
             {{"strides", Ints{2, 2}}, {"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 1}}});
  auto* asymmetric =
      net.op(OpKind::kConv, {x, net.constant({4, 6, 3, 3}, -0.2f, 0.2f)},
             {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}});
  check({net.relu(a), b, c, transposed, asymmetric});
}

TEST_F(FloatOps, Pools) {
  auto* x = net.input({2, 5, 9, 8});
  const auto pool = [&](OpKind kind, ir::Attributes attributes) {
    attributes["kernel_shape"] = Ints{3, 2};
    return net.op(kind, {x}, attributes);
  };
  check({pool(OpKind::kMaxPool, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 1}}}),
         pool(OpKind::kAveragePool, {{"strides", Ints{2, 1}}, {"pads", Ints{1, 1, 1, 1}}}),
         pool(OpKind::kAveragePool, {{"pads", Ints{1, 1, 1, 1}}, {"count_include_pad", int64_t{1}}}),
         pool(OpKind::kMaxPool, {{"strides", Ints{2, 3}}, {"ceil_mode", int64_t{1}}}),
         net.op(OpKind::kGlobalAveragePool, {x}), net.op(OpKind::kGlobalMaxPool, {x})});
}

TEST_F(FloatOps, MatrixProducts) {
  auto* x = net.input({2, 20});
  auto* batched = net.input({2, 4, 20}, "batched");
  auto* tall = net.input({2, 15, 20}, "tall");  // tiles of six rows, of two and of one
  auto* wide = net.input({2, 20, 70}, "wide");  // whole vectors and a part of one
  auto* w = net.constant({20, 33}, -0.3f, 0.3f);
  check({net.op(OpKind::kGemm, {x, w, net.constant({33}, -1, 1)}),
         net.op(OpKind::kGemm, {x, net.constant({9, 20}, -0.3f, 0.3f)}, {{"transB", int64_t{1}}}),
         net.op(OpKind::kAdd, {net.op(OpKind::kMatMul, {x, w}), net.constant({33}, -1, 1)}),
         net.op(OpKind::kMatMul, {batched, w}), net.op(OpKind::kMatMul, {tall, wide}),
         net.op(OpKind::kMatMul, {batched, net.op(OpKind::kTranspose, {batched}, {{"perm", Ints{0, 2, 1}}})})});
}

TEST_F(FloatOps, LinesAlongEveryAxis) {
  const auto both = in_both_layouts({2, 5, 4, 3});
  auto* cube = net.input({2, 6, 5}, "cube");
  std::vector<ir::Value*> out;
  for (ir::Value* x : both) {
    for (int64_t axis : {0, 1, 2, 3, -1}) {
      out.push_back(net.op(OpKind::kSoftmax, {x}, {{"axis", axis}}));
      out.push_back(net.op(OpKind::kReduceMax, {x, net.ints({axis})}, {{"keepdims", int64_t{1}}}));
      out.push_back(net.op(OpKind::kReduceSum, {x, net.ints({axis})}, {{"keepdims", int64_t{0}}}));
    }
    for (const Ints& axes : {Ints{2, 3}, Ints{1, 2}, Ints{0, 3}, Ints{-1, -2, 1}}) {
      out.push_back(net.op(OpKind::kReduceMean, {x, net.ints(axes)}, {{"keepdims", int64_t{0}}}));
      out.push_back(net.op(OpKind::kReduceMean, {x, net.ints(axes)}));
    }
  }
  out.push_back(net.op(OpKind::kLogSoftmax, {cube}, {{"axis", int64_t{1}}}));
  out.push_back(net.op(OpKind::kReduceMean, {cube, net.ints({0, 2})}));
  check(out);
}

TEST_F(FloatOps, Moves) {
  const auto both = in_both_layouts({2, 6, 4, 3});
  auto* y = net.input({2, 3, 4, 3}, "y");
  std::vector<ir::Value*> out;
  for (ir::Value* x : both) {
    const std::vector<ir::Value*> moved = {
        net.op(OpKind::kTranspose, {x}, {{"perm", Ints{0, 2, 3, 1}}}),
        net.op(OpKind::kTranspose, {x}, {{"perm", Ints{3, 1, 0, 2}}}),
        net.op(OpKind::kReshape, {x, net.ints({2, 3, 8, 3})}),
        net.op(OpKind::kReshape, {x, net.ints({2, 6, 12})}),
        net.op(OpKind::kFlatten, {x}),
        net.op(OpKind::kConcat, {x, y, x}, {{"axis", int64_t{1}}}),
        net.op(OpKind::kConcat, {y, y}, {{"axis", int64_t{3}}}),
        net.op(OpKind::kConcat, {y, net.constant({2, 3, 1, 3}, -1, 1)}, {{"axis", int64_t{2}}}),
        net.op(OpKind::kSlice, {x, net.ints({1, 0}), net.ints({5, 4}), net.ints({1, 2}), net.ints({2, 1})}),
        net.op(OpKind::kSlice, {x, net.ints({-1}), net.ints({-100}), net.ints({3}), net.ints({-1})}),
        // Steps as far as int64 goes: one element.
        net.op(OpKind::kSlice, {x, net.ints({INT64_MAX}), net.ints({INT64_MIN}), net.ints({2}), net.ints({INT64_MIN})}),
        net.op(OpKind::kSlice, {x, net.ints({1}), net.ints({INT64_MAX}), net.ints({-3}), net.ints({INT64_MAX})}),
        net.op(OpKind::kPad, {x, net.ints({0, 1, 2, 0, 0, 0, 1, 3}), net.scalar(0.5f)}),
        net.op(OpKind::kUnsqueeze, {net.op(OpKind::kFlatten, {y}), net.ints({1})}),
    };
    out.insert(out.end(), moved.begin(), moved.end());
  }
  check(out, 0);
}

TEST_F(FloatOps, PadsThatRepeatTheInputOrCutItOff) {
  const auto both = in_both_layouts({2, 6, 4, 3});
  auto* rows = net.input({2, 3, 5}, "rows");
  std::vector<ir::Value*> out;
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    const auto pad = [&](ir::Value* x, Ints pads) {
      out.push_back(net.op(OpKind::kPad, {x, net.ints(std::move(pads))}, {{"mode", std::string(mode)}}));
    };
    for (ir::Value* x : both) {
      pad(x, {0, 0, 2, 1, 0, 0, 3, 2});
      pad(x, {0, 2, 1, 1, 1, 3, 0, 2});
      pad(x, {0, 0, -1, 2, 0, 0, 2, -2});
      pad(x, {0, -2, 1, -3, 0, 1, 0, 4});  // nothing is left of the last axis but what is padded
    }
    pad(rows, {0, 1, 4, 0, 1, 3});
    pad(rows, {0, 0, 9, 1, 0, 12});  // more than once there and back
  }
  check(out, 0);
}

// As in ConvNeXt and Swin: what follows a convolution reads the memory that it wrote, and the next one what that wrote.
TEST_F(FloatOps, ChannelsToTheEndAndBackMoveNothing) {
  auto* x = net.input({1, 8, 6, 5});
  auto* image = net.conv(x, 8, 8, 3, {.pad = 1, .quantized = false});
  auto* rows = net.op(OpKind::kTranspose, {image}, {{"perm", Ints{0, 2, 3, 1}}});
  auto* normal = net.op(OpKind::kLayerNormalization, {rows, net.constant({8}, 0.5f, 1), net.constant({8}, -1, 1)});
  auto* product = net.op(OpKind::kMatMul, {normal, net.constant({8, 8}, -0.5f, 0.5f)});
  auto* sum = net.op(OpKind::kAdd, {rows, net.op(OpKind::kGelu, {product})});
  auto* back = net.op(OpKind::kTranspose, {sum}, {{"perm", Ints{0, 3, 1, 2}}});
  net.finish({net.op(OpKind::kGlobalAveragePool, {net.conv(back, 8, 4, 3, {.quantized = false})})});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.float_tolerance = 1e-5, .bit_equal = false}, &plan);
  EXPECT_EQ(step_kinds(*plan),
            "strided_copy float_conv layer_norm float_gemm unary binary float_conv float_pool strided_copy");
}

// Heads of attention are no images: products, Softmax and what moves between them stay row-major.
TEST_F(FloatOps, AttentionStaysRowMajor) {
  auto* x = net.input({1, 2, 7, 8});
  auto* keys = net.op(OpKind::kTranspose, {x}, {{"perm", Ints{0, 1, 3, 2}}});
  auto* scores = net.op(OpKind::kMatMul, {net.op(OpKind::kMul, {x, net.scalar(0.3f)}), keys});
  auto* mix = net.op(OpKind::kMatMul, {net.op(OpKind::kSoftmax, {scores}), x});
  net.finish({net.op(OpKind::kTranspose, {mix}, {{"perm", Ints{0, 2, 1, 3}}})});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.float_tolerance = 1e-5, .bit_equal = false}, &plan);
  EXPECT_EQ(step_kinds(*plan), "strided_copy binary float_matmul softmax float_matmul strided_copy");
}

TEST_F(FloatOps, Resizes) {
  auto* x = net.input({1, 5, 4, 6});
  const auto resize = [&](const std::string& mode, const std::string& coordinates, std::vector<float> scales) {
    return net.op(
        OpKind::kResize,
        {x, nullptr, net.graph.add_constant(net.graph.unique_name("scales"), ir::Tensor::of<float>({4}, scales))},
        {{"mode", mode}, {"coordinate_transformation_mode", coordinates}});
  };
  check({resize("nearest", "half_pixel", {1, 1, 2, 2}), resize("nearest", "asymmetric", {1, 1, 2, 3}),
         resize("linear", "half_pixel", {1, 1, 2, 2}), resize("linear", "asymmetric", {1, 1, 2, 0.5f})});
}

TEST_F(FloatOps, CubicResizes) {
  auto* x = net.input({2, 5, 4, 6});
  const auto resize = [&](const std::string& coordinates, std::vector<float> scales, float a = -0.75f) {
    return net.op(
        OpKind::kResize,
        {x, nullptr, net.graph.add_constant(net.graph.unique_name("scales"), ir::Tensor::of<float>({4}, scales))},
        {{"mode", std::string("cubic")}, {"coordinate_transformation_mode", coordinates}, {"cubic_coeff_a", a}});
  };
  check({resize("half_pixel", {1, 1, 2, 2}), resize("pytorch_half_pixel", {1, 1, 1.5f, 0.5f}),
         resize("asymmetric", {1, 1, 3, 1}, -0.5f), resize("align_corners", {1, 1, 2, 2.5f})},
        1e-5);
}

// Taps beside the image have no weight, and the others still add up to one.
TEST(FloatOnly, CubicResizeOfWhatIsOnTheImageAlone) {
  QuantNet net(31);
  auto* x = net.input({1, 1, 1, 4});
  auto* scales = net.graph.add_constant("scales", ir::Tensor::of<float>({4}, std::vector<float>{1, 1, 1, 2}));
  net.finish({net.op(OpKind::kResize, {x, nullptr, scales},
                     {{"mode", std::string("cubic")}, {"exclude_outside", int64_t{1}}})});
  const auto plan = compile(net.graph, 1);
  const auto inputs = net.random_inputs();
  const auto& in = inputs.at("x").data;
  const auto run = run_plan(plan, inputs, Isa::kScalar, 1);
  const Array& out = run.outputs.begin()->second;
  // The first of the output lies at -0.25: taps at -2 and -1 are beside the image.
  const double a = -0.75, near = ((a + 2) * 0.25 - (a + 3)) * 0.0625 + 1,
               far = ((a * 1.25 - 5 * a) * 1.25 + 8 * a) * 1.25 - 4 * a;
  EXPECT_NEAR(out.data[0], (near * in[0] + far * in[1]) / (near + far), 1e-5);
}

TEST_F(FloatOps, BatchNormWithoutConvolution) {
  std::vector<ir::Value*> out;
  for (const ir::Shape& shape : {ir::Shape{2, 5, 4, 3}, ir::Shape{2, 5}, ir::Shape{2, 5, 7}, ir::Shape{2, 5, 3, 2, 2}})
    out.push_back(net.op(OpKind::kBatchNormalization,
                         {net.input(shape, net.graph.unique_name("x")), net.constant({5}, 0.5f, 1.5f),
                          net.constant({5}, -1, 1), net.constant({5}, -1, 1), net.constant({5}, 0.5f, 2)}));
  check(out);
}

TEST_F(FloatOps, InputsHandedThroughAndOutputsTwice) {
  auto* x = net.input({2, 5, 4, 3});
  auto* y = net.op(OpKind::kNeg, {x});
  auto* z = net.op(OpKind::kIdentity, {y});
  check({y, z, net.op(OpKind::kIdentity, {x})}, 0);
}

TEST(FloatOnly, ArgMaxGivesIndices) {
  QuantNet net(22);
  auto* x = net.input({2, 5, 4, 3});
  net.finish({net.op(OpKind::kArgMax, {x}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}})});
  const auto plan = compile(net.graph, 2);
  const auto inputs = net.random_inputs();
  const auto& data = inputs.at("x").data;
  const auto run = run_plan(plan, inputs, Isa::kScalar, 2);
  const Array& out = run.outputs.begin()->second;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t p = 0; p < 12; ++p) {
      int64_t best = 0;
      for (int64_t c = 1; c < 5; ++c)
        if (data[(n * 5 + c) * 12 + p] > data[(n * 5 + best) * 12 + p]) best = c;
      EXPECT_EQ(out.data[n * 12 + p], best);
    }
}

// Other operators read indices as numbers, whatever order they want an image in.
TEST(FloatOnly, OthersReadTheIndicesOfArgMax) {
  for (const int64_t axis : {0, 1, 2}) {
    QuantNet net(17);
    auto* x = net.input({3, 4, 6, 5});
    auto* at = net.op(OpKind::kArgMax, {x}, {{"axis", axis}});
    auto* moved = net.op(OpKind::kTranspose, {at}, {{"perm", std::vector<int64_t>{2, 0, 1, 3}}});
    net.finish({moved, net.op(OpKind::kAdd, {at, at})});
    check_graph(net);
  }
}

}  // namespace
}  // namespace octet::testing
