// Networks with zero points that calibration found: the engine computes what the graph says, in INT8.
#include "lower/lower_test_util.h"
#include "passes/block_builder.h"
#include "support/post_training.h"

namespace octet::testing {
namespace {

using ir::OpKind;

// Convolutions with padding (whose fill is the zero point), depthwise, a residual sum, Concat, pools and a product.
class Blocks : public passes::BlockBuilder {
 public:
  Blocks() : BlockBuilder({1, 4, 12, 12}) {
    auto* y = op(OpKind::kHardSwish, "swish", {conv(x, "stem", 16, 3, true)});
    auto* wide = op(OpKind::kConv, "depthwise", {y, parameter("depthwise.weight", {16, 1, 3, 3})},
                    {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"group", int64_t{16}}});
    auto* sum = add(conv(relu(wide, "relu"), "point", 16, 1, true), y, "sum");
    auto* pool = op(OpKind::kMaxPool, "pool", {sum},
                    {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
    auto* down = op(OpKind::kConv, "down", {sum, parameter("down.weight", {8, 16, 3, 3})},
                    {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"strides", std::vector<int64_t>{2, 2}}});
    auto* concat = op(OpKind::kConcat, "concat", {pool, down}, {{"axis", int64_t{1}}});
    auto* mean = op(OpKind::kGlobalAveragePool, "mean", {concat});
    graph.add_output(gemm(op(OpKind::kFlatten, "flat", {mean}), "fc", 10));
    for (int i = 0; i < 3; ++i) images.push_back(ir::Tensor::of<float>({1, 4, 12, 12}, random(4 * 144, -1, 3)));
  }
  std::vector<ir::Tensor> images;
};

void expect_exact(const Blocks& b, const quant::QuantOptions& options, int64_t least_codes) {
  const ir::Graph graph = calibrated(b.graph, options, b.images);
  const auto plan = compile(graph);
  const std::vector<float> image = b.images[0].to_floats();
  const std::map<std::string, Array> inputs = {{"input", {{1, 4, 12, 12}, image}}};
  const auto expected = evaluate_graph(graph, inputs);
  for (const Isa isa : supported_isas()) {
    const Comparison c = compare(run_plan(plan, inputs, isa, 2).dumps, expected);
    EXPECT_EQ(c.worse, 0) << isa_name(isa);
    // Ties, and what follows from them: each is read by 16 channels, with weights that move a quarter of these by a
    // step.
    EXPECT_LE(c.off_by_one, c.codes / 100) << isa_name(isa);
    EXPECT_GE(c.codes, least_codes) << isa_name(isa);
    EXPECT_LE(c.worst_float, 2e-3) << isa_name(isa);
  }
  for (const engine::Step& step : plan->steps)
    for (const char* kind : {"float_conv", "float_depthwise", "float_gemm"}) EXPECT_NE(step.kind, kind) << step.reason;
}

TEST(AsymmetricEngine, ComputesTheGraph) {
  const Blocks b;
  quant::QuantOptions options;
  options.placement.asymmetric_activations = true;
  for (const bool u8 : {false, true}) {
    options.placement.unsigned_activations = u8;
    expect_exact(b, options, 5000);
  }
}

TEST(AsymmetricEngine, ComputesThePlacementsOfOtherTools) {
  const Blocks b;
  for (const quant::PlacementRule rule : {quant::PlacementRule::kTfmot, quant::PlacementRule::kDla}) {
    quant::QuantOptions options;
    options.placement.rules = {rule};
    expect_exact(b, options, 5000);
  }
}

}  // namespace
}  // namespace octet::testing
