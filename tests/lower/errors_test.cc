// What cannot be compiled gets one clear sentence; what stays FP32 gets its reason.
#include <filesystem>
#include <limits>

#include "lower/lower_test_util.h"
#include "lower/rewrites.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const ir::Graph& graph, int64_t batch = 1) {
  try {
    lower::lower(graph, {.batch = batch});
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Errors, NaNWeights) {
  for (const bool quantized : {true, false}) {
    QuantNet net(30);
    auto* w = net.graph.add_constant(
        "bad.weight", ir::Tensor::of<float>({1, 1, 1, 1}, std::vector<float>{std::numeric_limits<float>::quiet_NaN()}));
    auto* x = net.input({1, 1, 2, 2});
    net.finish({net.op(OpKind::kConv, {quantized ? net.fq(x, 1) : x, quantized ? net.fq(w, 1) : w})});
    EXPECT_THAT(error_of(net.graph), AllOf(HasSubstr("'bad.weight'"), HasSubstr("NaN"), HasSubstr("Conv 'Conv")));
  }
}

TEST(Errors, CodesReadWithManyOtherScales) {
  QuantNet net(30);
  auto* x = net.input({1, 2, 2, 2});
  const auto vector = [&](const char* name, const std::vector<float>& values) {
    return net.graph.add_constant(name, ir::Tensor::of<float>({2}, values));
  };
  auto* zero = net.graph.add_constant("z", ir::Tensor::scalar<uint8_t>(7));
  auto* zeros = net.graph.add_constant("zs", ir::Tensor::of<uint8_t>({2}, std::vector<uint8_t>{7, 7}));
  auto* q = net.op(OpKind::kQuantizeLinear, {x, net.scalar(0.5f), zero});
  net.finish({net.op(OpKind::kDequantizeLinear, {q, vector("many", {0.5f, 1}), zeros})});
  EXPECT_THAT(error_of(net.graph), AllOf(HasSubstr("has scale 0.5 and zero point 7, but DequantizeLinear"),
                                         HasSubstr("reads its codes with 2 scales 'many' and 2 zero points 'zs'")));
}

TEST(Errors, DynamicImageSize) {
  QuantNet net(31);
  net.finish({net.relu(net.input({ir::kDynamic, 3, ir::kDynamic, 8}))});
  EXPECT_THAT(error_of(net.graph), AllOf(HasSubstr("'x'"), HasSubstr("fixed"), HasSubstr("--input-shape 1x3x224x8")));
}

TEST(Errors, DynamicBatchIsChosenByTheOption) {
  QuantNet net(32);
  net.finish({net.relu(net.input({ir::kDynamic, 3, 4, 4}))});
  const auto plan = compile(net.graph, 3);
  EXPECT_EQ(plan->buffers[plan->outputs[0]].shape, (std::vector<int64_t>{3, 3, 4, 4}));
  EXPECT_THAT(error_of(net.graph, -1), HasSubstr("batch = -1"));
}

TEST(Errors, BatchOfTheFileUnlessGiven) {
  QuantNet net(32);
  net.finish({net.relu(net.input({5, 3, 4, 4}))});
  const auto batch_of = [&](int64_t batch) {
    const auto plan = compile(net.graph, batch);
    return plan->buffers[plan->outputs[0]].shape[0];
  };
  EXPECT_EQ(batch_of(0), 5);
  EXPECT_EQ(batch_of(2), 2);
  QuantNet dynamic(33);
  dynamic.finish({dynamic.relu(dynamic.input({ir::kDynamic, 3, 4, 4}))});
  EXPECT_EQ(compile(dynamic.graph, 0)->buffers[0].shape[0], 1);
}

// A batch of 1 that a Reshape names becomes another one; one that the network goes over cannot.
TEST(Errors, AnotherBatchOnlyWhereImagesStayApart) {
  for (const bool apart : {true, false}) {
    ir::Graph g;
    ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 3, 8, 8}});
    ir::Value* list = g.add_constant(
        "list",
        ir::Tensor::of<int64_t>({apart ? 2 : 1}, apart ? std::vector<int64_t>{1, -1} : std::vector<int64_t>{0}));
    g.add_output(apart ? g.add(ir::OpKind::kReshape, "y", {x, list})
                       : g.add(ir::OpKind::kReduceSum, "y", {x, list}, {{"keepdims", int64_t{1}}}));
    if (apart) {
      const auto plan = compile(g, 4);
      EXPECT_EQ(plan->buffers[plan->outputs[0]].shape, (std::vector<int64_t>{4, 192}));
    } else {
      EXPECT_THAT(error_of(g, 4), HasSubstr("it can have the batch 1 only"));
      EXPECT_THROW(lower::lower(g, {.input_shape = {4, 3, 8, 8}}), UserError);
    }
  }
}

TEST(Errors, ObservingQuantizer) {
  QuantNet net(33);
  auto* q = net.fq(net.input({1, 3, 4, 4}), 1);
  q->producer->attributes["state"] = std::string(ir::kObserving);
  net.finish({net.conv(q, 3, 4, 1)});
  EXPECT_THAT(error_of(net.graph), AllOf(HasSubstr(q->producer->name), HasSubstr("calibrate")));
}

TEST(Errors, UnsupportedVariants) {
  {
    QuantNet net(34);
    auto* scales = net.graph.add_constant("s4", ir::Tensor::of<float>({4}, std::vector<float>{1, 1, 2, 2}));
    net.finish({net.op(OpKind::kResize, {net.input({1, 3, 4, 4}), nullptr, scales},
                       {{"mode", std::string("cubic")}, {"antialias", int64_t{1}}})});
    EXPECT_THAT(error_of(net.graph), AllOf(HasSubstr("Resize"), HasSubstr("antialias"), HasSubstr("not supported")));
  }
  {
    QuantNet net(34);
    auto* scales = net.graph.add_constant("s4", ir::Tensor::of<float>({4}, std::vector<float>{1, 1, 1, 8e6f}));
    net.finish(
        {net.op(OpKind::kResize, {net.input({1, 3, 4, 4}), nullptr, scales}, {{"mode", std::string("nearest")}})});
    EXPECT_THAT(error_of(net.graph), AllOf(HasSubstr("Resize"), HasSubstr("32000000 pixels")));
  }
  {
    QuantNet net(35);
    net.finish({net.op(OpKind::kPad, {net.input({1, 3, 2, 2}), net.ints({0, 0, 200, 200, 0, 0, 0, 0})},
                       {{"mode", std::string("wrap")}})});
    EXPECT_THAT(error_of(net.graph), AllOf(HasSubstr("Pad"), HasSubstr("4096 pieces")));
  }
  {
    QuantNet net(35);
    net.finish(
        {net.op(OpKind::kPad, {net.input({1, 2}), net.ints({0, 0, 0, 20'000'000})}, {{"mode", std::string("edge")}})});
    EXPECT_THAT(error_of(net.graph), AllOf(HasSubstr("Pad"), HasSubstr("20000000 elements beside an axis of 2")));
  }
  {
    QuantNet net(36);
    net.finish({net.op(OpKind::kConv, {net.input({1, 3, 8, 8, 8}), net.constant({4, 3, 3, 3, 3}, -1, 1)})});
    EXPECT_THAT(error_of(net.graph), HasSubstr("2-D"));
  }
}

std::string reason_of(const engine::Plan& plan, const std::string& kind) {
  for (const engine::Step& s : plan.steps)
    if (s.kind == kind) return s.reason;
  return "no step " + kind;
}

TEST(Reasons, AccumulatorThatCouldOverflowStaysFloat) {
  QuantNet net(37);
  // 70,000 products of up to 255 * 127 leave int32.
  auto* x = net.fq(net.input({1, 70000}), 0.01f, true);
  auto* w = net.graph.add_constant("w", ir::Tensor::of<float>({1, 70000}, std::vector<float>(70000, 1.27f)));
  net.finish({net.op(OpKind::kGemm, {x, net.fq(w, 0.01f)}, {{"transB", int64_t{1}}})});
  const auto plan = compile(net.graph);
  EXPECT_THAT(reason_of(*plan, "float_gemm"), HasSubstr("overflow"));
  // A bias that does not fit int32 is the same.
  QuantNet biased(38);
  auto* y = biased.fq(biased.input({1, 4}), 1e-6f);
  auto* bias = biased.graph.add_constant("bias", ir::Tensor::of<float>({2}, std::vector<float>{1e6f, 0}));
  biased.finish({biased.op(OpKind::kGemm, {y, biased.weights({2, 4}, 0), bias}, {{"transB", int64_t{1}}})});
  EXPECT_THAT(reason_of(*compile(biased.graph), "float_gemm"), HasSubstr("overflow"));
}

TEST(Reasons, SayWhatIsNotQuantized) {
  QuantNet net(39);
  auto* x = net.input({1, 8, 6, 6});
  auto* a = net.conv(net.fq(x, 0.01f), 8, 8, 1);
  auto* plain = net.conv(a, 8, 8, 1, {.quantized = false});
  auto* half = net.conv(net.fq(plain, 0.02f), 8, 8, 3, {.pad = 1, .groups = 8, .quantized = false});
  net.finish({net.op(OpKind::kSoftmax, {net.op(OpKind::kTanh, {half})}, {{"axis", int64_t{1}}})});
  const auto plan = compile(net.graph);
  EXPECT_EQ(reason_of(*plan, "float_conv"),
            "left out of quantization: neither its input '" + a->name + "' nor its weights are quantized");
  EXPECT_EQ(reason_of(*plan, "float_depthwise"), "weights are not quantized");
  EXPECT_THAT(reason_of(*plan, "unary"), HasSubstr("nor its result is quantized"));
  EXPECT_EQ(reason_of(*plan, "softmax"), "no INT8 kernel for Softmax");
  // Reports name layers after the graph's nodes.
  const auto layers = engine::layer_list(*plan, Isa::kScalar);
  EXPECT_EQ(layers[1].name, a->producer->name);
  EXPECT_EQ(layers[1].kernel, "conv direct scalar");
}

TEST(Lower, DumpsTheGraphAfterEveryPass) {
  QuantNet net(40);
  net.finish({net.relu(net.input({1, 3, 4, 4}))});
  const auto folder = std::filesystem::path(::testing::TempDir()) / "octet_lower_dump";
  std::filesystem::remove_all(folder);
  lower::lower(net.graph, {.dump_passes = folder.string()});
  EXPECT_TRUE(std::filesystem::exists(folder / "00_input.txt"));
  int number = 1;
  for (const passes::Pass& pass : lower::compile_passes()) {
    const std::string name = str(number < 10 ? "0" : "", number, "_", pass.name, ".txt");
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
    ++number;
  }
  std::filesystem::remove_all(folder);
}

TEST(Lower, SourceGraphIsUntouched) {
  QuantNet net(41);
  auto* q = net.fq(net.op(OpKind::kMaxPool, {net.input({1, 3, 4, 4})}, {{"kernel_shape", std::vector<int64_t>{2, 2}}}),
                   0.01f);
  net.finish({net.conv(q, 3, 4, 1)});
  const size_t nodes = net.graph.nodes().size();
  lower::lower(net.graph, {.batch = 5});
  EXPECT_EQ(net.graph.nodes().size(), nodes);
  EXPECT_EQ((*net.graph.inputs()[0]->type.shape)[0], 1);
}

}  // namespace
}  // namespace octet::testing
