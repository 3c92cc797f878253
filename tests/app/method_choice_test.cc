// Method sqnr: the way of calibration that serves the network's outputs best.
#include "app/method_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "app/bias_correction.h"
#include "app/calibration.h"
#include "ir/evaluate_graph.h"
#include "passes/block_builder.h"
#include "support/random_images.h"

namespace octet::app {
namespace {

// A sum of images whose largest pixels are all that counts: what is cut off there is lost, whatever the mean error.
ir::Graph network(float bias, float gain) {
  passes::BlockBuilder b({ir::kDynamic, 3, 16, 16});
  ir::Value* features = b.relu(b.conv(b.x, "first", 8, 3, true), "first.relu");
  ir::Value* second = b.conv(features, "second", 4, 1, true);
  for (const auto& node : b.graph.nodes())
    if (node->name == "first") {
      std::vector<float> w = node->input(1)->constant->to_floats();
      for (float& v : w) v *= gain;
      node->input(1)->constant = ir::Tensor::of<float>(node->input(1)->constant->shape(), w);
      if (node->inputs.size() > 2) {
        const ir::Shape shape = node->input(2)->constant->shape();
        node->input(2)->constant = ir::Tensor::of<float>(shape, std::vector<float>(8, bias));
      }
    }
  b.graph.add_output(b.op(ir::OpKind::kGlobalMaxPool, "peak", {second}));
  return std::move(b.graph);
}

quant::CalibrationOptions chosen(const ir::Graph& graph, std::map<std::string, float>* amax = nullptr) {
  testing::RandomImages images(6);
  ir::Graph quantized = graph.clone();
  quant::QuantOptions options;
  options.calibration.method = quant::CalibrationMethod::kSqnr;
  const quant::CalibrationSet observed = calibrate(quantized, images.loader, options, {}, observe_by_engine);
  if (amax)
    for (const auto& [name, range] : observed.ranges(options.calibration)) (*amax)[name] = range.amax;
  return observed.settled(options.calibration);
}

TEST(MethodChoice, IsOneOfItsCandidatesAndGovernsTheRanges) {
  const ir::Graph graph = network(-2, 4);
  std::map<std::string, float> amax;
  const quant::CalibrationOptions options = chosen(graph, &amax);
  EXPECT_TRUE(options.method == quant::CalibrationMethod::kMse || options.method == quant::CalibrationMethod::kMax);
  testing::RandomImages images(6);
  ir::Graph again = graph.clone();
  const quant::CalibrationSet observed =
      calibrate(again, images.loader, {.calibration = options}, {}, observe_by_engine);
  for (const auto& [name, range] : observed.ranges(options)) EXPECT_EQ(range.amax, amax.at(name)) << name;
}

// Of the outputs on all images, by the plain evaluator.
double sqnr_db(const ir::Graph& truth, const ir::Graph& quantized) {
  testing::RandomImages images(6);
  images.loader.start_epoch(0);
  const data::Batch batch = *images.loader.next();
  const std::vector<float> pixels(batch.images.data(), batch.images.data() + batch.images.size());
  const ir::Tensor x = ir::Tensor::of<float>({6, 3, 16, 16}, pixels);
  const std::vector<float> right = ir::evaluate_graph(truth, {x})[0].to_floats(),
                           found = ir::evaluate_graph(quantized, {x})[0].to_floats();
  double signal = 0, noise = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    signal += std::pow(double{right[i]}, 2);
    noise += std::pow(double{found[i]} - right[i], 2);
  }
  return 10 * std::log10(signal / noise);
}

TEST(MethodChoice, NoneOfTheOthersIsMuchBetter) {
  bool mse_was_not_best = false, biases_were_corrected = false;
  for (const float bias : {-6.0f, -2.0f, 0.0f, 3.0f}) {
    const ir::Graph graph = network(bias, 4);
    const auto with = [&](quant::CalibrationMethod method, double weight, bool corrected = false) {
      testing::RandomImages images(6);
      ir::Graph quantized = graph.clone();
      calibrate(quantized, images.loader, {.calibration = {.method = method, .clipping_weight = weight}}, {},
                observe_by_engine);
      if (corrected) correct_biases(quantized, images.loader);
      return sqnr_db(graph, quantized);
    };
    const double own = with(quant::CalibrationMethod::kSqnr, 1);
    const double mse = with(quant::CalibrationMethod::kMse, 1);
    double best_corrected = with(quant::CalibrationMethod::kMax, 1, true);
    for (const double weight : {1.0, 5.0, 20.0}) {
      EXPECT_LE(with(quant::CalibrationMethod::kMse, weight), own + 0.51) << bias << " " << weight;
      best_corrected = std::max(best_corrected, with(quant::CalibrationMethod::kMse, weight, true));
    }
    EXPECT_LE(with(quant::CalibrationMethod::kMax, 1), own + 0.51) << bias;
    mse_was_not_best = mse_was_not_best || own > mse;
    biases_were_corrected = biases_were_corrected || std::abs(own - best_corrected) < 0.01;
  }
  EXPECT_TRUE(mse_was_not_best);  // or this compares nothing
  EXPECT_TRUE(biases_were_corrected);
}

TEST(MethodChoice, LeavesBiasesToThoseThatCorrectThemLater) {
  const ir::Graph graph = network(-2, 4);
  const auto bias = [&](const quant::QuantOptions& options) {
    testing::RandomImages images(6);
    ir::Graph quantized = graph.clone();
    calibrate(quantized, images.loader, options, {}, observe_by_engine);
    return quantized.find_node("first")->input(2)->constant->to_floats();
  };
  quant::QuantOptions plain, corrected, rounded;
  for (quant::QuantOptions* options : {&plain, &corrected, &rounded})
    options->calibration.method = quant::CalibrationMethod::kSqnr;
  corrected.bias_correction = quant::BiasCorrection::kEmpirical;
  rounded.adaround.iterations = 1;
  EXPECT_EQ(bias(corrected), bias(rounded));
  EXPECT_NE(bias(plain), bias(corrected)) << "no case in which biases are worth correcting";
}

TEST(MethodChoice, IsTheSameEveryTime) {
  const ir::Graph graph = network(-2, 4);
  EXPECT_EQ(chosen(graph).clipping_weight, chosen(graph).clipping_weight);
  EXPECT_EQ(chosen(graph).method, chosen(graph).method);
}

}  // namespace
}  // namespace octet::app
