// A network of an NHWC framework becomes the same INT8 as its twin in NCHW.
#include "support/keras_twin.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "engine/executor.h"
#include "lower/lower.h"
#include "support/post_training.h"

namespace octet::lower {
namespace {

using ir::Shape;
using ir::Tensor;

Tensor random_image(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(static_cast<size_t>(ir::element_count(shape)));
  for (float& v : values) v = normal(random);
  return Tensor::of<float>(shape, values);
}

Tensor channels_last(const Tensor& image) {
  const Shape& s = image.shape();
  const std::vector<float> from = image.to_floats();
  std::vector<float> to;
  for (int64_t y = 0; y < s[2]; ++y)
    for (int64_t x = 0; x < s[3]; ++x)
      for (int64_t c = 0; c < s[1]; ++c) to.push_back(from[static_cast<size_t>((c * s[2] + y) * s[3] + x)]);
  return Tensor::of<float>({s[0], s[2], s[3], s[1]}, to);
}

struct Result {
  int int8 = 0, fp32 = 0;
  std::vector<std::string> fp32_layers;
  std::vector<float> scores;
};

// `calibrate`: images in the layout of the graph; the last is run.
Result run(const ir::Graph& graph, const std::vector<Tensor>& images, bool quantize) {
  const ir::Graph network = quantize ? testing::calibrated(graph, {}, images) : graph.clone();
  const auto plan = std::make_shared<const engine::Plan>(lower(network));
  Result out;
  for (const engine::LayerInfo& layer : engine::layer_list(*plan, default_isa())) {
    ++(layer.precision == "int8" ? out.int8 : out.fp32);
    if (layer.precision != "int8") out.fp32_layers.push_back(layer.op);
  }
  engine::Executor executor(plan);
  const std::vector<float> in = images.back().to_floats();
  out.scores.resize(5);
  const float* inputs[] = {in.data()};
  float* outputs[] = {out.scores.data()};
  executor.run(inputs, outputs);
  return out;
}

TEST(KerasTwins, AreTheSameInt8) {
  testing::KerasTwin keras(true), torch(false);
  std::vector<Tensor> images, turned;
  for (uint32_t i = 0; i < 4; ++i) {
    images.push_back(random_image({1, 4, 12, 12}, i));
    turned.push_back(channels_last(images.back()));
  }
  for (const bool quantize : {false, true}) {
    const Result wanted = run(torch.graph, images, quantize), found = run(keras.graph, turned, quantize);
    for (size_t i = 0; i < wanted.scores.size(); ++i) EXPECT_NEAR(found.scores[i], wanted.scores[i], 1e-6);
    EXPECT_EQ(found.int8, wanted.int8);
    EXPECT_EQ(quantize, wanted.int8 > 5);
    // An image with the channels last lies as the engine wants it: it is not even turned at the input.
    EXPECT_LE(found.fp32, wanted.fp32) << ::testing::PrintToString(found.fp32_layers);
  }
}

}  // namespace
}  // namespace octet::lower
