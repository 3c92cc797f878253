// Blocks of the usual networks: which steps they become, and that every tensor is right on every instruction set.
#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;

TEST(Blocks, ConvReluIsOneStep) {
  QuantNet net(1);
  auto* q = net.fq(net.input({1, 3, 9, 11}), 1.0f / 127);
  auto* y = net.fq(net.relu(net.conv(q, 3, 20, 3, {.pad = 1})), 0.02f);
  auto* z = net.fq(net.relu6(net.conv(y, 20, 33, 1)), 0.02f);
  net.finish({z});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv conv dequantize");
  EXPECT_EQ(plan->steps[1].op, "Conv+Relu");
  EXPECT_EQ(plan->steps[2].op, "Conv+Clip");
}

TEST(Blocks, StridesDilationsGroupsAndUnsignedCodes) {
  for (const bool is_unsigned : {false, true}) {
    QuantNet net(2 + is_unsigned);
    auto* q = net.fq(net.input({2, 8, 13, 10}), 1.0f / (is_unsigned ? 120 : 127), is_unsigned, is_unsigned ? 117 : 3);
    auto* a = net.fq(net.conv(q, 8, 24, 3, {.stride = 2, .pad = 1}), 0.02f, is_unsigned, is_unsigned ? 100 : -5);
    auto* b = net.fq(net.conv(a, 24, 48, 3, {.pad = 2, .groups = 4, .dilation = 2}), 0.02f);
    auto* c = net.fq(net.relu(net.conv(b, 48, 16, 5, {.pad = 2, .bias = false})), 0.02f, is_unsigned);
    net.finish({c});
    std::shared_ptr<const engine::Plan> plan;
    check_graph(net, {}, &plan);
    EXPECT_EQ(step_kinds(*plan), "quantize conv conv conv dequantize");
  }
}

TEST(Blocks, ResidualOfResNetV1RoundsOnce) {
  QuantNet net(4);
  auto* x = net.fq(net.relu(net.conv(net.fq(net.input({1, 3, 8, 8}), 1.0f / 127), 3, 16, 3, {.pad = 1})), 0.02f);
  auto* a = net.fq(net.relu(net.conv(x, 16, 32, 3, {.stride = 2, .pad = 1})), 0.02f);
  auto* b = net.conv(a, 32, 32, 3, {.pad = 1});
  auto* shortcut = net.fq(net.conv(x, 16, 32, 1, {.stride = 2}), 0.015f);
  auto* y = net.fq(net.relu(net.op(OpKind::kAdd, {b, shortcut})), 0.02f);
  auto* z =
      net.fq(net.relu(net.op(
                 OpKind::kAdd,
                 {net.conv(net.fq(net.relu(net.conv(y, 32, 32, 3, {.pad = 1})), 0.02f), 32, 32, 3, {.pad = 1}), y})),
             0.03f);
  auto* pooled = net.op(OpKind::kGlobalAveragePool, {z});
  auto* logits = net.gemm(net.fq(net.op(OpKind::kFlatten, {pooled}), 0.01f), 32, 10);
  net.finish({logits});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv conv conv conv conv conv global_average conv");
  EXPECT_EQ(plan->steps[4].op, "Conv+Add+Relu");
  EXPECT_EQ(plan->steps[4].ints.count("rounds_twice"), 0u);
}

TEST(Blocks, ResidualBehindItsOwnQuantizerRoundsTwice) {
  QuantNet net(5);
  auto* x = net.fq(net.input({1, 16, 7, 7}), 1.0f / 127);
  auto* a = net.fq(net.conv(x, 16, 16, 3, {.pad = 1}), 0.02f);
  auto* y = net.fq(net.relu(net.op(OpKind::kAdd, {a, x})), 0.02f);
  net.finish({y});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv dequantize");
  EXPECT_EQ(plan->steps[1].ints.at("rounds_twice"), 1);
}

TEST(Blocks, SumOfTwoQuantizedTensorsThatOthersReadToo) {
  QuantNet net(6);
  auto* x = net.fq(net.input({1, 16, 6, 6}), 1.0f / 127);
  auto* a = net.fq(net.conv(x, 16, 16, 1), 0.02f);
  auto* sum = net.fq(net.op(OpKind::kAdd, {a, x}), 0.02f);
  auto* difference = net.fq(net.op(OpKind::kSub, {x, a}), 0.03f);
  net.finish({sum, difference});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv add add dequantize dequantize");
}

TEST(Blocks, StemPoolsCodes) {
  QuantNet net(7);
  auto* a = net.relu(net.conv(net.fq(net.input({1, 3, 24, 24}), 1.0f / 127), 3, 16, 7, {.stride = 2, .pad = 3}));
  auto* p = net.op(OpKind::kMaxPool, {a},
                   {{"kernel_shape", std::vector<int64_t>{3, 3}},
                    {"strides", std::vector<int64_t>{2, 2}},
                    {"pads", std::vector<int64_t>(4, 1)}});
  auto* q = net.fq(p, 0.02f);
  auto* y = net.fq(net.relu(net.conv(q, 16, 16, 3, {.pad = 1})), 0.02f);
  net.finish({y});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv max_pool conv dequantize");
}

TEST(Blocks, InvertedResidualOfMobileNetV2) {
  QuantNet net(8);
  auto* x = net.fq(net.input({1, 24, 10, 10}), 1.0f / 127);
  auto* a = net.fq(net.relu6(net.conv(x, 24, 72, 1)), 0.02f);
  auto* d = net.fq(net.relu6(net.conv(a, 72, 72, 3, {.pad = 1, .groups = 72})), 0.02f);
  auto* y = net.fq(net.op(OpKind::kAdd, {net.conv(d, 72, 24, 1), x}), 0.02f);
  auto* s = net.fq(net.relu6(net.conv(y, 24, 24, 5, {.stride = 2, .pad = 2, .groups = 24})), 0.02f);
  net.finish({s});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv depthwise conv depthwise dequantize");
}

TEST(Blocks, SqueezeAndExcite) {
  QuantNet net(9);
  auto* x = net.fq(net.relu(net.conv(net.fq(net.input({1, 16, 8, 8}), 1.0f / 127), 16, 32, 1)), 0.02f);
  auto* squeezed = net.fq(net.op(OpKind::kGlobalAveragePool, {x}), 0.01f);
  auto* r = net.fq(net.relu(net.conv(squeezed, 32, 8, 1)), 0.01f);
  auto* gate = net.fq(net.op(OpKind::kSigmoid, {net.fq(net.conv(r, 8, 32, 1), 0.02f)}), 1.0f / 127);
  auto* y = net.fq(net.op(OpKind::kMul, {x, gate}), 0.02f);
  auto* z = net.fq(net.conv(y, 32, 16, 1), 0.02f);
  net.finish({z});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv row_sums squeeze_excite conv dequantize");
}

TEST(Blocks, SwishIsATable) {
  QuantNet net(10);
  auto* q = net.fq(net.conv(net.fq(net.input({1, 8, 6, 6}), 1.0f / 127), 8, 16, 3, {.pad = 1}), 0.03f);
  auto* y = net.fq(net.op(OpKind::kMul, {q, net.op(OpKind::kSigmoid, {q})}), 0.02f);
  auto* h = net.fq(net.op(OpKind::kHardSwish, {y}), 0.02f);
  net.finish({h});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv dequantize");
  EXPECT_EQ(plan->steps[1].op, "Conv+Sigmoid+Mul+HardSwish");
}

TEST(Blocks, QuantizersAfterEveryOperator) {
  // As some exporters place them: Conv, Q, Relu, Q with scales of their own. Scales grow along the way, so that a tie
  // that falls differently upstream stays one step, and are no multiples of each other, which would make many ties.
  QuantNet net(17);
  auto* a = net.fq(net.conv(net.fq(net.input({1, 8, 6, 6}), 1.0f / 127), 8, 16, 3, {.pad = 1}), 0.02f);
  auto* b = net.fq(net.relu(a), 0.031f, true);
  auto* c = net.fq(net.conv(b, 16, 16, 1), 0.0297f);
  auto* d = net.fq(net.op(OpKind::kAdd, {c, b}), 0.0613f);
  auto* e = net.fq(net.relu(d), 0.083f, true, 3);
  net.finish({e});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv conv dequantize");
  EXPECT_EQ(plan->steps[1].op, "Conv+Relu");
  EXPECT_EQ(plan->steps[2].op, "Conv+Add+Relu");
}

TEST(Blocks, FloatSwishIsOneStep) {
  QuantNet net(18);
  auto* a = net.conv(net.fq(net.input({1, 8, 6, 6}), 1.0f / 127), 8, 16, 3, {.pad = 1});
  auto* y = net.op(OpKind::kMul, {net.op(OpKind::kSigmoid, {a}), a});
  net.finish({y});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.bit_equal = false}, &plan);
  EXPECT_THAT(step_kinds(*plan), ::testing::StartsWith("quantize conv unary"));
}

TEST(Blocks, PreActivationBlock) {
  QuantNet net(11);
  auto* x = net.fq(net.input({1, 16, 6, 6}), 1.0f / 127);
  auto* bn = net.op(OpKind::kBatchNormalization, {x, net.constant({16}, 0.5f, 1.5f), net.constant({16}, -0.3f, 0.3f),
                                                  net.constant({16}, -0.2f, 0.2f), net.constant({16}, 0.5f, 2)});
  auto* a = net.fq(net.relu(bn), 0.02f);
  auto* y = net.op(OpKind::kAdd, {net.conv(a, 16, 16, 3, {.pad = 1}), x});
  net.finish({net.fq(y, 0.03f)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize scale_shift_codes conv dequantize");
}

TEST(Blocks, BatchNormAndAnActivationThatBendsAreTables) {
  QuantNet net(21);
  auto* x = net.fq(net.input({1, 16, 6, 6}), 1.0f / 127);
  auto* bn = net.op(OpKind::kBatchNormalization, {x, net.constant({16}, 0.5f, 1.5f), net.constant({16}, -0.3f, 0.3f),
                                                  net.constant({16}, -0.2f, 0.2f), net.constant({16}, 0.5f, 2)});
  auto* a = net.fq(net.op(OpKind::kHardSwish, {bn}), 0.02f);
  net.finish({net.fq(net.conv(a, 16, 16, 3, {.pad = 1}), 0.03f)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize channel_tables conv dequantize");
}

TEST(Blocks, ConcatOfInceptionBranches) {
  QuantNet net(12);
  auto* x = net.fq(net.input({1, 16, 8, 8}), 1.0f / 127);
  auto* a = net.relu(net.conv(x, 16, 24, 1));
  auto* b = net.relu(net.conv(x, 16, 10, 3, {.pad = 1}));
  auto* p = net.op(OpKind::kMaxPool, {x},
                   {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>(4, 1)}});
  auto* joined = net.fq(net.op(OpKind::kConcat, {a, b, p}, {{"axis", int64_t{1}}}), 0.02f);
  net.finish({net.fq(net.conv(joined, 50, 8, 1), 0.03f)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize copy max_pool conv conv copy copy copy conv dequantize");
}

TEST(Blocks, PiecesOfConcatAreMadeInPlace) {
  QuantNet net(19);
  auto* x = net.fq(net.relu(net.conv(net.fq(net.input({2, 16, 9, 8}), 1.0f / 127), 16, 48, 1)), 0.02f);
  auto* a = net.relu(net.conv(x, 48, 32, 1));
  auto* b = net.relu(net.conv(x, 48, 48, 3, {.pad = 1, .groups = 48}));
  auto* p = net.op(OpKind::kMaxPool, {x},
                   {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>(4, 1)}});
  auto* m = net.op(OpKind::kAveragePool, {x},
                   {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>(4, 1)}});
  auto* s = net.op(OpKind::kAdd, {x, net.fq(net.op(OpKind::kGlobalAveragePool, {x}), 0.01f)});
  auto* t = net.op(OpKind::kTanh, {x});
  auto* c = net.relu(net.conv(x, 48, 21, 3, {.pad = 1}));
  auto* joined = net.fq(net.op(OpKind::kConcat, {a, b, p, m, s, t, c}, {{"axis", int64_t{1}}}), 0.021f);
  net.finish({net.fq(net.conv(joined, 293, 8, 3, {.pad = 1}), 0.03f)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  int copies = 0, in_place = 0;
  for (const engine::Step& step : plan->steps) {
    copies += step.op == "Concat";
    in_place += plan->buffers[step.outputs[0]].alias_of >= 0;
  }
  EXPECT_EQ(copies, 0);
  EXPECT_EQ(in_place, 7);
}

TEST(Blocks, FloatOutputsAndFloatReaders) {
  QuantNet net(13);
  auto* x = net.fq(net.input({1, 8, 6, 6}), 1.0f / 127);
  auto* a = net.relu(net.conv(x, 8, 16, 3, {.pad = 1}));  // read as codes and as floats
  auto* q = net.fq(a, 0.02f);
  auto* head = net.op(OpKind::kSigmoid, {net.conv(q, 16, 4, 1)});  // float behind an INT8 convolution
  auto* sum = net.op(OpKind::kAdd, {a, net.scalar(0.25f)});
  net.finish({head, sum});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.bit_equal = false}, &plan);
  int int8_convs = 0;
  for (const engine::Step& s : plan->steps) int8_convs += s.kind == "conv" && s.int8;
  EXPECT_EQ(int8_convs, 2);
}

TEST(Blocks, FlattenedImageIntoGemm) {
  for (const bool transpose : {true, false}) {
    QuantNet net(14);
    auto* x = net.fq(net.input({2, 6, 5, 4}), 1.0f / 127);
    auto* a = net.relu(net.conv(x, 6, 20, 3, {.pad = 1}));
    auto* f = net.fq(net.op(OpKind::kFlatten, {a}), 0.02f);
    auto* h = net.fq(net.relu(net.gemm(f, 400, 33, transpose)), 0.02f);
    net.finish({net.gemm(h, 33, 10)});
    std::shared_ptr<const engine::Plan> plan;
    check_graph(net, {}, &plan);
    EXPECT_EQ(step_kinds(*plan), "quantize conv conv conv");
  }
}

TEST(Blocks, AveragePoolsAndNearestResize) {
  QuantNet net(15);
  auto* x = net.fq(net.input({1, 20, 9, 9}), 1.0f / 127);
  auto* a = net.fq(net.op(OpKind::kAveragePool, {x},
                          {{"kernel_shape", std::vector<int64_t>{3, 3}},
                           {"strides", std::vector<int64_t>{2, 2}},
                           {"pads", std::vector<int64_t>(4, 1)}}),
                   0.006f);
  auto* r =
      net.op(OpKind::kResize,
             {a, nullptr, net.graph.add_constant("scales", ir::Tensor::of<float>({4}, std::vector<float>{1, 1, 2, 2}))},
             {{"mode", std::string("nearest")},
              {"coordinate_transformation_mode", std::string("asymmetric")},
              {"nearest_mode", std::string("floor")}});
  auto* y = net.fq(net.conv(r, 20, 8, 1), 0.02f);
  auto* mean = net.op(OpKind::kReduceMean, {y, net.ints({2, 3})}, {{"keepdims", int64_t{0}}});
  net.finish({mean});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize average_pool resize_nearest conv global_average");
}

// A row or column that is seen again is a code that is read again.
TEST(Blocks, PadsThatRepeatPixels) {
  for (const char* mode : {"reflect", "edge", "wrap"}) {
    QuantNet net(57);
    auto* x = net.fq(net.input({1, 20, 6, 5}), 1.0f / 127);
    auto* padded = net.op(OpKind::kPad, {x, net.ints({0, 0, 2, 1, 0, 0, -1, 3})}, {{"mode", std::string(mode)}});
    auto* mean =
        net.op(OpKind::kReduceMean, {net.conv(padded, 20, 8, 3), net.ints({2, 3})}, {{"keepdims", int64_t{0}}});
    net.finish({mean});
    std::shared_ptr<const engine::Plan> plan;
    check_graph(net, {}, &plan);
    EXPECT_EQ(step_kinds(*plan), "quantize resize_nearest conv reduce") << mode;
  }
}

TEST(Blocks, FloatNetwork) {
  QuantNet net(16);
  auto* x = net.input({2, 3, 12, 12});
  auto* a = net.relu(net.conv(x, 3, 20, 3, {.stride = 2, .pad = 1, .quantized = false}));
  auto* d = net.relu6(net.conv(a, 20, 20, 3, {.pad = 1, .groups = 20, .quantized = false}));
  auto* g = net.conv(d, 20, 20, 3, {.pad = 1, .groups = 2, .quantized = false});
  auto* s = net.relu(net.op(OpKind::kAdd, {g, a}));
  auto* m = net.op(OpKind::kMaxPool, {s},
                   {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  auto* flat = net.op(OpKind::kFlatten, {m});
  auto* w = net.constant({180, 7}, -0.1f, 0.1f);
  auto* logits = net.op(OpKind::kGemm, {flat, w, net.constant({7}, -1, 1)});
  net.finish({net.op(OpKind::kSoftmax, {logits}), m});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.bit_equal = false}, &plan);
  for (const engine::Step& step : plan->steps) {
    EXPECT_FALSE(step.int8) << step.name;
    EXPECT_EQ(step.reason, "") << step.name;
  }
}

}  // namespace
}  // namespace octet::testing
