// From QDQ to a float network with a cache and back.
#include "app/clean_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <random>

#include "app/apply_cache.h"
#include "base/error.h"
#include "ir/query.h"
#include "models/zoo.h"
#include "passes/pipelines.h"

namespace octet::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ir::Graph float_network(const std::string& arch) {
  return models::build_model({.arch = arch, .num_classes = 10, .input = {3, 32, 32}});
}

// Scales whose bits are those of no quotient.
ir::Graph quantized(ir::Graph graph) {
  passes::run_pipeline(graph, passes::placement_passes({}));
  std::mt19937 random(7);
  std::map<std::string, quant::Range> ranges;
  for (const std::string& name : quant::CalibrationSet(graph).names()) {
    const float scale = std::bit_cast<float>(0x3c000000u + static_cast<uint32_t>(random() % 0x01000000u));
    ranges[name] = {.amax = scale * 127, .int8_scale = scale};
  }
  passes::run_pipeline(graph, passes::scale_passes(ranges, {}));
  return graph;
}

std::map<std::string, std::vector<float>> quantizer_scales(const ir::Graph& graph) {
  std::map<std::string, std::vector<float>> out;
  for (const auto& node : graph.nodes())
    if (ir::is_quantizer(node.get())) out[node->input(0)->name] = node->input(1)->constant->to_floats();
  return out;
}

TEST(CleanNetwork, AndItsCacheGiveTheSameQuantizersBack) {
  for (const char* arch : {"resnet18", "mobilenet_v2", "efficientnet_b0"}) {
    const ir::Graph original = quantized(float_network(arch));
    CleanNetwork clean = take_quantizers_out(original);
    for (const auto& node : clean.graph.nodes()) EXPECT_FALSE(ir::is_quantizer(node.get()));
    for (const auto& [name, range] : clean.ranges) {
      const ir::Value* value = clean.graph.find_value(name);
      ASSERT_TRUE(value && !value->is_constant()) << arch << " " << name;
    }
    const quant::CalibrationCache cache = make_cache(clean.ranges, {8, 5, 1});
    const std::string text = quant::calibration_cache_text(cache);
    EXPECT_THAT(text, ::testing::StartsWith("TRT-8501-EntropyCalibration2\n"));
    ir::Graph again = std::move(clean.graph);
    apply_cache(again, quant::parse_calibration_cache(text, "cal.bin"), "cal.bin", {});
    EXPECT_EQ(quantizer_scales(again), quantizer_scales(original)) << arch;
  }
}

TEST(CleanNetwork, EveryTensorGetsARangeForADla) {
  CleanNetwork clean = take_quantizers_out(quantized(float_network("resnet18")));
  const quant::TensorRanges of_quantizers = clean.ranges;
  std::vector<std::string> measured;
  complete_ranges(clean, [&](const ir::Graph& graph, const std::vector<std::string>& tensors) {
    std::map<std::string, quant::Range> out;
    for (const std::string& tensor : tensors) {
      EXPECT_TRUE(graph.find_value(tensor)) << tensor;
      out[tensor] = {.amax = 1.27f};
    }
    measured = tensors;
    return out;
  });
  for (const ir::Value* value : quant::activations(clean.graph)) EXPECT_TRUE(clean.ranges.count(value->name));
  for (const auto& [name, range] : of_quantizers) EXPECT_EQ(clean.ranges.at(name).scale, range.scale) << name;
  // Convolutions that end in a sum have no range that follows from another.
  EXPECT_FALSE(measured.empty());
  for (const std::string& name : measured) {
    EXPECT_EQ(clean.ranges.at(name).origin, quant::RangeOrigin::kMeasured);
    EXPECT_FLOAT_EQ(clean.ranges.at(name).scale, 0.01f);
  }
  const nlohmann::ordered_json json = ranges_json(clean.ranges);
  EXPECT_EQ(json["tensor_scales"].size(), clean.ranges.size());
  EXPECT_FLOAT_EQ(json["tensor_scales"][measured[0]].get<float>(), 1.27f);  // the range, not what a code stands for
  EXPECT_EQ(json["origins"][measured[0]], "measured");
}

TEST(CleanNetwork, TensorRt11HasNoCaches) {
  EXPECT_THAT(([] { make_cache({}, {11, 0, 0}); }), ThrowsMessage<UserError>(HasSubstr("takes no calibration caches")));
}

TEST(ApplyCache, OfAnotherNetworkIsRefused) {
  ir::Graph graph = float_network("resnet18");
  quant::CalibrationCache cache;
  cache.scales = {{"conv2d_7/Relu", 0.1f}, {"input_1", 0.2f}};
  EXPECT_THAT(([&] { apply_cache(graph, cache, "cal.bin", {}); }),
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("cal.bin: none of its names"), HasSubstr("2 tensors: conv2d_7/Relu, input_1"))));
}

TEST(ApplyCache, WhatItLacksStaysInFloatingPoint) {
  const ir::Graph original = quantized(float_network("resnet18"));
  CleanNetwork clean = take_quantizers_out(original);
  quant::CalibrationCache cache = make_cache(clean.ranges, {});
  // The tensor between the two convolutions of a block: nothing else says its range.
  std::string missing;
  for (const auto& [name, range] : clean.ranges) {
    const ir::Value* value = clean.graph.find_value(name);
    if (value->producer && value->producer->kind == ir::OpKind::kRelu && value->users.size() == 1) missing = name;
  }
  ASSERT_FALSE(missing.empty());
  cache.scales.erase(missing);
  cache.scales["of another network"] = 1;
  ::testing::internal::CaptureStderr();
  ir::Graph graph = clean.graph.clone();
  apply_cache(graph, cache, "cal.bin", {});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("the network does not have 1 tensor: of another network"),
                         HasSubstr("has no range for 1 tensor: " + missing)));
  const auto scales = quantizer_scales(graph);
  EXPECT_FALSE(scales.count(missing));
  const ir::Node* product = clean.graph.find_value(missing)->users[0];
  EXPECT_FALSE(scales.count(product->input(1)->name)) << "weights beside a float activation";
  EXPECT_EQ(scales.size() + 2, quantizer_scales(original).size());
}

// Of HardSwish, for a target where calibration by images would find them.
TEST(ApplyCache, GivesNoZeroPoints) {
  CleanNetwork clean = take_quantizers_out(quantized(float_network("mobilenet_v3_small")));
  const quant::CalibrationCache cache = make_cache(clean.ranges, {});
  quant::QuantOptions options;
  options.placement.target = quant::Target::kOpenVino;
  apply_cache(clean.graph, cache, "cal.bin", options);
  int quantizers = 0;
  for (const auto& node : clean.graph.nodes()) {
    if (!ir::is_quantizer(node.get())) continue;
    ++quantizers;
    for (const int64_t zero : node->input(2)->constant->to_ints()) EXPECT_EQ(zero, 0) << node->name;
  }
  EXPECT_GT(quantizers, 20);
}

TEST(ApplyCache, ATensorThatWasAlwaysZeroGetsAUsableScale) {
  CleanNetwork clean = take_quantizers_out(quantized(float_network("resnet18")));
  quant::CalibrationCache cache = make_cache(clean.ranges, {});
  const std::string name = cache.scales.begin()->first;
  cache.scales[name] = 0;
  ir::Graph graph = clean.graph.clone();
  apply_cache(graph, cache, "cal.bin", {});
  EXPECT_EQ(quantizer_scales(graph).at(name), std::vector<float>{1.0f});
}

}  // namespace
}  // namespace octet::app
