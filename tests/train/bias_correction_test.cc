#include "train/bias_correction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/calibration_run.h"
#include "train/executor.h"
#include "train/small_training.h"
#include "train/step.h"
#include "train/thread_ranks.h"

namespace octet::train {
namespace {

using testing::quadrants;
using testing::small_network;

// The small network with scales so coarse that weights have a handful of values.
ir::Graph biased_network() {
  ir::Graph graph = small_network(true);
  graph.set_constant(graph.find_value("conv.weight/fake_quantize/scale"),
                     ir::Tensor::of<float>({8}, std::vector<float>(8, 0.35f)));
  return graph;
}

std::map<std::string, std::vector<double>> corrections(const ir::Graph& graph, const data::Dataset& pictures,
                                                       int64_t batch_size) {
  data::Loader loader(pictures, {.batch_size = batch_size});
  return bias_corrections(graph, loader);
}

void add(ir::Graph& graph, const std::string& name, const std::vector<double>& shift) {
  ir::Value* bias = graph.find_value(name);
  std::vector<float> values = bias->constant->to_floats();
  for (size_t c = 0; c < values.size(); ++c) values[c] += static_cast<float>(shift[c]);
  graph.set_constant(bias, ir::Tensor::of<float>(bias->constant->shape(), values));
}

double largest(const std::vector<double>& values) {
  double out = 0;
  for (const double v : values) out = std::max(out, std::abs(v));
  return out;
}

// Of the convolution's channels, over all pictures.
std::vector<double> means(const ir::Graph& graph, const data::Dataset& pictures) {
  Executor executor(graph);
  at::Tensor sum = at::zeros({8}, at::kDouble);
  executor.set_tap(
      [&](const ir::Value&, const at::Tensor& x) {
        sum += x.to(at::kDouble).sum({0, 2, 3}) / 64;
      },
      {"conv"});
  for (const data::Batch& batch : testing::batches_of(pictures, 32)) executor.forward({images_of(batch)}, Mode::kEval);
  sum /= pictures.size();
  return {sum.const_data_ptr<double>(), sum.const_data_ptr<double>() + 8};
}

TEST(BiasCorrection, GivesChannelsTheirMeansBack) {
  const auto pictures = quadrants(96, 3);
  ir::Graph graph = biased_network();
  const std::vector<double> wanted = means(without_quantization(graph), *pictures), before = means(graph, *pictures);
  const std::vector<double> missing = corrections(graph, *pictures, 32).at("conv");
  EXPECT_GT(largest(missing), 0.02) << "the test quantizes too finely to see anything";
  add(graph, "conv.bias", missing);
  const std::vector<double> after = means(graph, *pictures);
  for (size_t c = 0; c < 8; ++c) {
    EXPECT_NEAR(before[c] + missing[c], wanted[c], 1e-5) << c;
    EXPECT_NEAR(after[c], wanted[c], 1e-5) << c;
  }
}

TEST(BiasCorrection, DependsNeitherOnBatchesNorOnRanks) {
  const auto pictures = quadrants(96, 3);
  const ir::Graph graph = biased_network();
  const std::vector<double> whole = corrections(graph, *pictures, 96).at("conv");
  const std::vector<double> parts = corrections(graph, *pictures, 16).at("conv");
  std::vector<std::vector<double>> of_ranks(2);
  testing::ThreadRanks(2).run([&](Communicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    data::Loader loader(*pictures, {.batch_size = 16, .share = {communicator.rank(), 2}});
    of_ranks[rank] = bias_corrections(graph, loader, {}, communicator).at("conv");
  });
  for (size_t c = 0; c < 8; ++c) {
    EXPECT_NEAR(parts[c], whole[c], 1e-6) << c;
    EXPECT_NEAR(of_ranks[0][c], whole[c], 1e-6) << c;
    EXPECT_EQ(of_ranks[0][c], of_ranks[1][c]) << c;
  }
}

// A search that has left every layer in float has nothing to correct, and no image has run.
TEST(BiasCorrection, OfNothingNeedsNoImages) {
  std::map<std::string, std::vector<double>> nothing;
  share_corrections(nothing, 0, single_process());
  EXPECT_TRUE(nothing.empty());
  std::map<std::string, std::vector<double>> something{{"conv", {0.0}}};
  EXPECT_THROW(share_corrections(something, 0, single_process()), UserError);
}

}  // namespace
}  // namespace octet::train
