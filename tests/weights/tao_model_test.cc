// A model of NVIDIA TAO, written as its Keras writes it, is the network of the layout tao. The pre-activation ResNets
// have Keras's names in the default one.
#include <gtest/gtest.h>

#include "models/zoo.h"
#include "support/sanitized.h"
#include "weights/keras_file.h"
#include "weights/keras_writer.h"
#include "weights/load_weights.h"

namespace octet::weights {
namespace {

using testing::KerasLayer;

// [out, in, height, width] as Keras lays it: [height, width, in, out].
std::vector<float> as_kernel(const ir::Tensor& weight) {
  const ir::Shape& s = weight.shape();
  const std::vector<float> from = weight.to_floats();
  std::vector<float> to;
  for (int64_t y = 0; y < s[2]; ++y)
    for (int64_t x = 0; x < s[3]; ++x)
      for (int64_t i = 0; i < s[1]; ++i)
        for (int64_t o = 0; o < s[0]; ++o)
          to.push_back(from[static_cast<size_t>(((o * s[1] + i) * s[2] + y) * s[3] + x)]);
  return to;
}

std::vector<KerasLayer> keras_layers(const ir::Graph& graph) {
  std::vector<KerasLayer> out;
  for (const auto& node : graph.nodes()) {
    KerasLayer layer{.name = node->name, .tensors = {}};
    const auto add = [&](const std::string& name, size_t input) {
      const ir::Tensor& tensor = *node->input(input)->constant;
      layer.tensors.push_back({node->name + "/" + name + ":0", tensor.shape(), tensor.to_floats()});
    };
    if (node->kind == ir::OpKind::kConv) {
      const ir::Tensor& weight = *node->input(1)->constant;
      const ir::Shape& s = weight.shape();
      // A depthwise kernel is [height, width, channels, 1].
      if (node->get_int("group") > 1)
        layer.tensors.push_back({node->name + "/depthwise_kernel:0", {s[2], s[3], s[0], 1}, as_kernel(weight)});
      else
        layer.tensors.push_back({node->name + "/kernel:0", {s[2], s[3], s[1], s[0]}, as_kernel(weight)});
      if (node->inputs.size() > 2) add("bias", 2);
    } else if (node->kind == ir::OpKind::kBatchNormalization) {
      add("gamma", 1);
      add("beta", 2);
      add("moving_mean", 3);
      add("moving_variance", 4);
    }
    out.push_back(std::move(layer));
  }
  return out;
}

TEST(TaoModelTest, GivesEveryWeightOfTheNetwork) {
  std::vector<const char*> networks{"mobilenet_v2", "squeezenet"};
  if (!octet::testing::kSanitized)
    networks.insert(networks.end(), {"resnet10", "googlenet", "efficientnet_b0", "darknet19", "resnet50_v2"});
  for (const char* arch : networks) {
    models::ModelOptions options = {.arch = arch, .input = {3, 32, 32}, .seed = 5};
    if (models::has_tao_layout(arch)) options.layout = models::Layout::kTao;
    const ir::Graph source = models::build_backbone(options).graph;
    options.seed = 6;
    models::Backbone network = models::build_backbone(options);
    const WeightReport report = load_weights(
        network.graph, read_keras_weights(testing::KerasWriter::bytes(keras_layers(source)), "resnet.hdf5"));
    EXPECT_GT(report.weights.size(), 30u) << arch;
    EXPECT_EQ(report.count(LoadedWeight::State::kLoaded), std::ssize(report.weights)) << arch;
    EXPECT_TRUE(report.unused.empty()) << arch;
    for (const ir::Value* value : network.graph.constants())
      EXPECT_EQ(hash64(value->constant->bytes()), hash64(source.find_value(value->name)->constant->bytes()))
          << arch << " " << value->name;
  }
}

}  // namespace
}  // namespace octet::weights
