// What equalization is for: a network of inverted residuals whose channels have very different ranges, calibrated with
// one scale for all channels of a tensor.
#include <gtest/gtest.h>

#include "ir/verify.h"
#include "passes/block_builder.h"
#include "support/post_training.h"
#include "support/spoil_channels.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ir::Value;

// Like MobileNetV2, small: expansion, depthwise convolution, linear projection, and a sum where the shapes allow it.
class InvertedResiduals : public BlockBuilder {
 public:
  InvertedResiduals() : BlockBuilder({1, 3, 16, 16}) {
    Value* y = layer(x, "stem", 8, 3, 2, 1);
    int index = 0;
    for (const auto& [out, stride] : {std::pair{8, 1}, {12, 2}, {12, 1}, {16, 1}, {16, 1}, {20, 1}}) {
      const std::string name = str("block", index++);
      Value* z = layer(y, name + ".expand", channels(y) * 4, 1, 1, 1);
      z = layer(z, name + ".depthwise", channels(z), 3, stride, channels(z));
      z = layer(z, name + ".project", out, 1, 1, 1, /*linear=*/true);
      y = stride == 1 && channels(y) == out ? add(y, z, name + ".add") : z;
    }
    y = layer(y, "top", 48, 1, 1, 1);
    y = op(OpKind::kFlatten, "flat", {op(OpKind::kGlobalAveragePool, "mean", {y})}, {{"axis", int64_t{1}}});
    graph.add_output(gemm(y, "fc", 10));
    for (int i = 0; i < 4; ++i) images.push_back(ir::Tensor::of<float>({1, 3, 16, 16}, random(3 * 16 * 16)));
  }

  // Every channel between two layers, those of residual sums included.
  ir::Graph spoiled() const {
    ir::Graph out = graph.clone();
    ir::infer_shapes(out);
    EXPECT_EQ(testing::spoil_pairs(out, 5), 14);
    std::mt19937 random(9);
    const auto spoil_sum = [&](const std::vector<const char*>& makers, const std::vector<const char*>& readers) {
      const auto size = static_cast<size_t>(channels(out.find_node(makers[0])->output()));
      const std::vector<int> exponents = testing::random_exponents(random, size, 5);
      for (const char* name : makers) testing::spoil_maker(out, *out.find_node(name), exponents);
      for (const char* name : readers) testing::spoil_reader(out, *out.find_node(name), exponents);
    };
    spoil_sum({"stem", "block0.project"}, {"block0.expand", "block1.expand"});
    spoil_sum({"block1.project", "block2.project"}, {"block2.expand", "block3.expand"});
    spoil_sum({"block3.project", "block4.project"}, {"block4.expand", "block5.expand"});
    return out;
  }

  std::vector<ir::Tensor> images;

 private:
  Value* layer(Value* in, const std::string& name, int64_t out, int64_t kernel, int64_t stride, int64_t groups,
               bool linear = false) {
    const int64_t fan_in = channels(in) / groups * kernel * kernel, pad = kernel / 2;
    const float spread = std::sqrt(6.0f / static_cast<float>(fan_in));
    Value* w = parameter(name + ".weight", {out, channels(in) / groups, kernel, kernel}, -spread, spread);
    Value* y = op(
        OpKind::kConv, name, {in, w, parameter(name + ".bias", {out}, -0.3f, 0.3f)},
        {{"group", groups}, {"strides", std::vector<int64_t>{stride, stride}}, {"pads", std::vector<int64_t>(4, pad)}});
    return linear ? y : relu(y, name + ".relu");
  }
};

quant::QuantOptions options(quant::Equalization how, bool per_tensor = true) {
  quant::QuantOptions out;
  out.equalize = how;
  out.placement.weights_per_tensor = per_tensor;
  return out;
}

TEST(EqualizedPtq, GivesBackWhatSpoiledChannelsCost) {
  using quant::Equalization;
  for (const bool per_tensor : {true, false}) {
    SCOPED_TRACE(per_tensor);
    InvertedResiduals net;
    const auto sqnr = [&](const ir::Graph& graph, Equalization how) {
      return testing::sqnr_db(net.graph, testing::calibrated(graph, options(how, per_tensor), net.images), net.images);
    };
    const ir::Graph spoiled = net.spoiled();
    ASSERT_EQ(testing::sqnr_db(net.graph, spoiled, net.images), std::numeric_limits<double>::infinity());
    const double whole = sqnr(net.graph, Equalization::kNo), plain = sqnr(spoiled, Equalization::kNo),
                 evened = sqnr(spoiled, Equalization::kExact), also = sqnr(net.graph, Equalization::kExact);
    EXPECT_GT(whole, 30);
    EXPECT_LT(plain, 3) << "nearly as much noise as signal";
    EXPECT_GT(evened, whole - 1.5) << "within the rounding to powers of two";
    EXPECT_GT(also, whole - 0.5) << "a network that needs nothing loses nothing";
  }
}

}  // namespace
}  // namespace octet::passes
