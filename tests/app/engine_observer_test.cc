// What the engine shows to observers: the float network's tensors, each as the plain evaluator computes it.
#include "app/engine_observer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../dense/program_maker.h"
#include "base/error.h"
#include "ir/evaluate_graph.h"
#include "ir/infer.h"
#include "passes/block_builder.h"
#include "passes/pipelines.h"
#include "passes/place_fake_quant.h"
#include "passes/quantize_program.h"
#include "support/random_images.h"

namespace octet::app {
namespace {

// Tensors of every kind: the input, behind fused activations and a residual sum, a pool, a concatenation, features of
// rank 2, and one that only the quantizer of the last product reads.
ir::Graph network() {
  passes::BlockBuilder b({ir::kDynamic, 3, 16, 16});
  ir::Value* left = b.relu(b.conv(b.x, "first", 8, 3, true), "first.relu");
  ir::Value* sum = b.relu(b.op(ir::OpKind::kAdd, "sum", {left, b.conv(left, "second", 8, 3, true)}), "sum.relu");
  ir::Value* both = b.op(ir::OpKind::kConcat, "both", {sum, left}, {{"axis", int64_t{1}}});
  ir::Value* mean = b.op(ir::OpKind::kGlobalAveragePool, "mean", {b.conv(both, "third", 5, 3, true)});
  b.graph.add_output(b.gemm(b.op(ir::OpKind::kFlatten, "flat", {mean}, {{"axis", int64_t{1}}}), "fc", 5));
  passes::run_pipeline(b.graph, passes::placement_passes({}));
  return std::move(b.graph);
}

TEST(EngineObserver, SeesWhatTheFloatNetworkComputes) {
  const ir::Graph graph = network();
  testing::RandomImages images(6);
  const EngineObservation seen = observe_with_engine(graph, {}, images.loader, {}, 1);
  EXPECT_EQ(seen.images, 6);
  ASSERT_GE(seen.observers.names().size(), 5u);

  images.loader.start_epoch(0);
  const data::Batch batch = *images.loader.next();
  ir::Graph plain = graph.clone();
  passes::remove_fake_quant(plain);
  quant::CalibrationSet expected(graph);
  const std::vector<float> pixels(batch.images.data(), batch.images.data() + batch.images.size());
  ir::evaluate_graph(plain, {ir::Tensor::of<float>({6, 3, 16, 16}, pixels)},
                     [&](const ir::Value& value, const ir::Tensor& tensor) {
                       if (expected.observers().count(value.name) > 0) expected.observe(value.name, tensor.to_floats());
                     });
  const auto right = expected.ranges(), ranges = seen.observers.ranges();
  for (const auto& [name, range] : right) {
    const quant::Range& own = ranges.at(name);
    EXPECT_EQ(own.count, range.count) << name;
    EXPECT_NEAR(own.min, range.min, 1e-5 * (range.max - range.min)) << name;
    EXPECT_NEAR(own.max, range.max, 1e-5 * (range.max - range.min)) << name;
    EXPECT_NEAR(own.amax, range.amax, 1e-3 * range.amax) << name;
  }
}

TEST(EngineObserver, NeitherThreadsNorBatchesCanBeSeen) {
  const ir::Graph graph = network();
  const auto histograms = [&](int64_t batch_size, int threads) {
    testing::RandomImages images(batch_size);
    const EngineObservation seen = observe_with_engine(graph, {}, images.loader, {}, threads);
    std::vector<std::string> bytes;
    for (const auto& [name, observer] : seen.observers.observers()) bytes.push_back(observer.histogram().bytes());
    return bytes;
  };
  const auto one = histograms(1, 1);
  for (const int64_t batch_size : {1, 4, 6}) EXPECT_EQ(histograms(batch_size, 3), one) << batch_size;
}

TEST(EngineObserver, PeaksAreThoseOfTheImagesInTheirOrder) {
  const ir::Graph graph = network();
  const auto peaks = [&](int64_t batch_size, int threads, bool wanted = true) {
    testing::RandomImages images(batch_size);
    const EngineObservation seen = observe_with_engine(graph, {}, images.loader, {}, threads, wanted);
    std::vector<float> out;
    for (const auto& [name, observer] : seen.observers.observers())
      for (const quant::Peak& peak : observer.peaks()) out.insert(out.end(), {peak.low, peak.high});
    return out;
  };
  const std::vector<float> one = peaks(1, 1);
  EXPECT_EQ(one.size(), quant::CalibrationSet(graph).names().size() * 6 * 2);
  for (const int64_t batch_size : {1, 4, 6}) EXPECT_EQ(peaks(batch_size, 3), one) << batch_size;
  EXPECT_TRUE(peaks(4, 3, false).empty()) << "nobody asked";
}

// Behind the last tensor that anybody asks for may be anything.
TEST(EngineObserver, NamesWhatTheEngineLacks) {
  passes::BlockBuilder b({1, 3, 16, 16});
  const auto scale = [&](const char* name, float value) {
    return b.graph.add_constant(name, ir::Tensor::of<float>({}, {value}));
  };
  ir::Value* y = b.relu(b.conv(b.x, "first", 8, 3, true), "relu");
  ir::Value* codes = b.op(ir::OpKind::kQuantizeLinear, "codes", {y, scale("scale", 0.1f)});
  b.graph.add_output(b.op(ir::OpKind::kDequantizeLinear, "back", {codes, scale("other", 0.2f)}));
  ir::infer_shapes(b.graph);
  testing::RandomImages images;
  EXPECT_EQ(observe_with_engine(b.graph, {"relu"}, images.loader).images, 6);
  EXPECT_THROW(observe_with_engine(b.graph, {"back"}, images.loader), EngineCannotRun);
}

// The pixels of the features whose first channel is positive, times a matrix: none of images without any.
ir::Graph with_program() {
  passes::BlockBuilder b({ir::kDynamic, 3, 16, 16});
  b.graph.add_output(b.relu(b.conv(b.x, "first", 8, 3, true), "features"));
  testing::ProgramMaker m;
  m.input("handed");
  m.constant<int64_t>("order", {4}, {0, 2, 3, 1}), m.constant<int64_t>("rows", {2}, {-1, 8});
  m.constant<int64_t>("zero", {1}, {0}), m.constant<float>("limit", {}, {3});
  m.constant<float>("w", {8, 2}, std::vector<float>(16, 0.5f)), m.constant<float>("v", {2, 2}, {1, 2, 3, 4});
  m.constant<float>("never", {}, {1e9f});
  m.add("Transpose", {"handed"}, {"pixels"}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  m.add("Reshape", {"pixels", "rows"}, {"all"});
  m.add("ReduceMax", {"all", "axis"}, {"largest"}, {{"keepdims", int64_t{0}}});
  m.constant<int64_t>("axis", {1}, {1});
  for (const auto& [limit, at] : {std::pair("limit", "good"), std::pair("never", "none")}) {
    const std::string name = at;
    m.add("Greater", {"largest", limit}, {name});
    m.add("NonZero", {name}, {name + ".places"});
    m.add("Squeeze", {name + ".places", "zero"}, {name + ".list"});
    m.add("Gather", {"all", name + ".list"}, {name + ".rows"});
    m.add("Gemm", {name + ".rows", "w"}, {name + ".y"});
    m.output(name + ".y");
  }
  b.graph.program = std::make_shared<const dense::Program>(m.program);
  return std::move(b.graph);
}

TEST(EngineObserver, SeesWhatTheProgramBehindComputes) {
  ir::Graph graph = with_program();
  dense::validate(*graph.program);
  const ir::Graph plain = graph.clone();
  passes::run_pipeline(graph, passes::placement_passes({}));
  const std::vector<std::string> tensors = passes::quantized_program_tensors(graph, {});
  ASSERT_EQ(tensors, (std::vector<std::string>{"good.rows", "none.rows"}));
  quant::Histogram expected;
  testing::RandomImages images(6);
  images.loader.start_epoch(0);
  const data::Batch batch = *images.loader.next();
  const std::vector<float> pixels(batch.images.data(), batch.images.data() + batch.images.size());
  const ir::Tensor features = ir::evaluate_graph(plain, {ir::Tensor::of<float>({6, 3, 16, 16}, pixels)}).at(0);
  dense::RunOptions options;
  options.watch = [&](int value, const dense::Tensor& tensor) {
    if (graph.program->values[static_cast<size_t>(value)] == "good.rows") expected.observe(tensor.values<float>());
  };
  dense::run(*graph.program, {dense::Tensor::borrowed(dense::Type::kFloat, features.shape(), features.bytes().data())},
             options);
  ASSERT_GT(expected.count(), 0);
  ASSERT_LT(expected.count(), 6 * 16 * 16 * 8);
  for (const int threads : {1, 3})
    for (const bool peaks : {false, true}) {
      testing::RandomImages one_by_one(3);
      const EngineObservation seen = observe_with_engine(graph, tensors, one_by_one.loader, {}, threads, peaks);
      const std::vector<std::string> names = seen.observers.names();
      EXPECT_EQ(std::count(names.begin(), names.end(), "none.rows"), 0);  // no image got there
      const quant::Observer& own = seen.observers.observers().at("good.rows");
      EXPECT_EQ(own.histogram().count(), expected.count());
      EXPECT_NEAR(own.histogram().max(), expected.max(), 1e-4f * expected.max());
      EXPECT_EQ(own.peaks().size(), peaks ? 6u : 0u);
    }
}

TEST(EngineObserver, WhatTheProgramCannotRunIsSaid) {
  ir::Graph graph = with_program();
  auto program = std::make_shared<dense::Program>(*graph.program);
  for (dense::Operation& operation : program->operations)
    if (operation.op == "Transpose") operation.attributes["perm"] = std::vector<int64_t>{0, 1, 2};
  graph.program = program;
  passes::run_pipeline(graph, passes::placement_passes({}));
  testing::RandomImages images;
  EXPECT_THROW(observe_with_engine(graph, passes::quantized_program_tensors(graph, {}), images.loader), UserError);
}

}  // namespace
}  // namespace octet::app
