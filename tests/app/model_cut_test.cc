// Which quantized tensors of a model its engine holds, found in what a real engine gave.
#include "app/model_cut.h"

#include <gmock/gmock.h>

#include "lower/lower_test_util.h"

namespace octet::app {
namespace {

using ir::OpKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::QuantNet;

// Quantized image -> conv -> Relu -> quantizer -> conv -> quantizer -> output.
class ModelCut : public ::testing::Test {
 protected:
  ModelCut() {
    ir::Value* v = net_.fq(net_.input({1, 3, 8, 8}), 0.02f, true, 128);
    v = net_.op(OpKind::kConv, {v, net_.weights({8, 3, 3, 3}, 0)}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    v = net_.fq(net_.op(OpKind::kRelu, {v}), 0.03f);
    v = net_.op(OpKind::kConv, {v, net_.weights({4, 8, 1, 1}, 0)});
    net_.finish({net_.fq(v, 0.05f)});
    engine::Executor executor(testing::compile(net_.graph), {.threads = 1});
    const std::vector<float> x = testing::Random(5).values(3 * 8 * 8, -1, 1);
    std::vector<float> y(4 * 8 * 8);
    const float* in[] = {x.data()};
    float* out[] = {y.data()};
    dumps_ = tensors_by_name(executor.run_and_dump(in, out));
  }

  QuantNet net_{3};
  TensorDumps dumps_;
};

TEST_F(ModelCut, EveryQuantizerIsFoundAndBecomesAnInput) {
  const std::vector<QuantizedTensor> tensors = find_quantized_tensors(net_.graph, dumps_, dumps_);
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(count_activation_quantizers(net_.graph), 3);  // those of weights are none
  for (const QuantizedTensor& t : tensors) EXPECT_EQ(t.place, TensorPlace::kCompared) << t.tensor << ": " << t.note;
  EXPECT_TRUE(tensors[0].of_image);
  EXPECT_FALSE(tensors[1].of_image);

  const CutModel cut = cut_model(net_.graph, tensors);
  EXPECT_THAT(cut.compared, ElementsAre(0, 1, 2));
  EXPECT_EQ(cut.pieces.inputs().size(), 4u);   // the image, and every tensor
  EXPECT_EQ(cut.pieces.outputs().size(), 3u);  // the output, and what two quantizers round
  EXPECT_EQ(cut.scores.outputs().size(), 1u);
  EXPECT_EQ(cut.pieces.outputs()[1]->name, tensors[1].source);
}

TEST_F(ModelCut, ATensorThatThisEngineLacksIsMissing) {
  const std::vector<QuantizedTensor> whole = find_quantized_tensors(net_.graph, dumps_, dumps_);
  TensorDumps less = dumps_;
  less.erase(whole[1].engine_tensor);
  EXPECT_EQ(find_quantized_tensors(net_.graph, less, dumps_)[1].place, TensorPlace::kMissing);
  // Where no engine of the model holds it, it is part of a step.
  const QuantizedTensor merged = find_quantized_tensors(net_.graph, less, less)[1];
  EXPECT_EQ(merged.place, TensorPlace::kMerged);
  EXPECT_THAT(merged.note, HasSubstr("is part of the step that makes '" + whole[2].tensor + "'"));
}

TEST_F(ModelCut, AnotherScaleIsNoMatch) {
  const std::vector<QuantizedTensor> whole = find_quantized_tensors(net_.graph, dumps_, dumps_);
  TensorDumps scaled = dumps_;
  scaled.at(whole[1].engine_tensor).scale *= 2;
  const QuantizedTensor t = find_quantized_tensors(net_.graph, scaled, dumps_)[1];
  EXPECT_EQ(t.place, TensorPlace::kOtherScale);
  EXPECT_THAT(t.note, HasSubstr("0.03"));
}

// As GhostNet has it: what a Concat joins is quantized, and so is what a Slice takes from it.
TEST(ModelCutOfMoves, WhatTwoQuantizersRoundIsComparedUnrounded) {
  QuantNet net{5};
  ir::Value* x = net.fq(net.input({1, 16, 6, 6}), 0.02f, true, 128);
  ir::Value* joined = net.op(OpKind::kConcat, {x, net.conv(x, 16, 16, 3, {.pad = 1})}, {{"axis", int64_t{1}}});
  ir::Value* first = net.fq(joined, 0.02f);
  ir::Value* part = net.op(OpKind::kSlice, {first, net.ints({0}), net.ints({24}), net.ints({1})});
  ir::Value* second = net.fq(part, 0.02f);
  net.finish({net.conv(second, 24, 8, 1)});
  std::vector<QuantizedTensor> tensors = find_quantized_tensors(net.graph, {}, {});
  ASSERT_EQ(tensors.size(), 3u);
  for (QuantizedTensor& t : tensors) t.place = t.tensor == first->name ? TensorPlace::kMerged : TensorPlace::kCompared;
  const CutModel cut = cut_model(net.graph, tensors);
  const ir::Value* source = cut.pieces.outputs().back();
  ASSERT_EQ(source->name, part->name);
  EXPECT_EQ(source->producer->input(0)->name, joined->name);

  for (QuantizedTensor& t : tensors) t.params.scale *= t.tensor == second->name ? 2.0f : 1.0f;
  net.graph.set_constant(second->producer->input(1), ir::Tensor::scalar(0.04f));
  const CutModel other = cut_model(net.graph, tensors);
  EXPECT_EQ(other.pieces.outputs().back()->producer->input(0)->name, first->name);
}

// The linear layers of a transformer: products of rank 3 become products of rows, and their quantizers go with them.
TEST(ModelCutOfTokens, QuantizersOfRowsAreThoseOfTheirTensors) {
  QuantNet net{3};
  ir::Value* tokens = net.fq(net.input({1, 6, 16}), 0.02f, true, 128);
  const auto linear = [&](ir::Value* x, int64_t in, int64_t out) {
    ir::Value* bias = net.constant({out}, -0.5f, 0.5f);
    return net.op(OpKind::kAdd, {net.op(OpKind::kMatMul, {x, net.weights({in, out}, 1)}), bias});
  };
  ir::Value* v = net.fq(net.op(OpKind::kGelu, {linear(tokens, 16, 32)}), 0.03f);
  v = net.fq(linear(v, 32, 16), 0.02f);
  net.finish({net.fq(net.op(OpKind::kAdd, {tokens, v}), 0.05f)});
  engine::Executor executor(testing::compile(net.graph), {.threads = 1});
  const std::vector<float> x = testing::Random(5).values(6 * 16, -1, 1);
  std::vector<float> y(6 * 16);
  const float* in[] = {x.data()};
  float* out[] = {y.data()};
  const TensorDumps dumps = tensors_by_name(executor.run_and_dump(in, out));
  const std::vector<QuantizedTensor> tensors = find_quantized_tensors(net.graph, dumps, dumps);
  ASSERT_EQ(tensors.size(), 4u);
  for (const QuantizedTensor& t : tensors) {
    // The step of the second product adds the tokens, too, and keeps what it rounds in between.
    const bool inner = t.tensor == v->name;
    EXPECT_EQ(t.place, inner ? TensorPlace::kMerged : TensorPlace::kCompared) << t.tensor << ": " << t.note;
  }
}

// The gate of a squeeze-and-excite is computed within one step, which shows its codes on request.
TEST(ModelCutOfGates, TheCodesWithinAStepAreCompared) {
  QuantNet net{7};
  ir::Value* x = net.fq(net.input({2, 8, 6, 6}), 0.02f, true, 128);
  ir::Value* v = net.fq(net.op(OpKind::kGlobalAveragePool, {x}), 0.01f);
  v = net.fq(net.relu(net.conv(v, 8, 4, 1)), 0.02f, true, 0);
  v = net.fq(net.op(OpKind::kSigmoid, {net.conv(v, 4, 8, 1)}), 1.0f / 127);
  net.finish({net.fq(net.op(OpKind::kMul, {x, v}), 0.02f)});
  const auto plan = testing::compile(net.graph, 2);
  ASSERT_THAT(testing::step_kinds(*plan), HasSubstr("squeeze_excite"));
  engine::Executor executor(plan, {.threads = 1});
  const std::vector<float> image = testing::Random(5).values(2 * 8 * 36, -1, 1);
  std::vector<float> y(image.size());
  const float* in[] = {image.data()};
  float* out[] = {y.data()};
  const TensorDumps dumps = tensors_by_name(executor.run_and_dump(in, out));
  const auto expected = testing::evaluate_graph(net.graph, {{"x", {{2, 8, 6, 6}, image}}});
  const std::vector<QuantizedTensor> tensors = find_quantized_tensors(net.graph, dumps, dumps);
  ASSERT_EQ(tensors.size(), 5u);
  for (const QuantizedTensor& t : tensors) {
    ASSERT_EQ(t.place, TensorPlace::kCompared) << t.tensor << ": " << t.note;
    const std::vector<int32_t> codes = codes_of(dumps.at(t.engine_tensor), t.params);
    const std::vector<float>& want = expected.at(t.tensor).data;
    ASSERT_EQ(codes.size(), want.size()) << t.tensor;
    for (size_t i = 0; i < codes.size(); ++i)
      EXPECT_NEAR(numerics::dequantize(codes[i], t.params), want[i], 1e-6) << t.tensor << " " << i;
  }
}

TEST(CodesOf, FloatsAreCodesWhereAllAreMultiplesOfTheScale) {
  const numerics::QuantParams params{.scale = 0.5f, .zero_point = 10, .qmin = 0, .qmax = 255};
  engine::TensorDump dump;
  dump.values = {-5, 0, 1.5f, 122.5f};
  EXPECT_THAT(codes_of(dump, params), ElementsAre(0, 10, 13, 255));
  dump.values[2] = 1.25f;
  EXPECT_TRUE(codes_of(dump, params).empty());
  dump.is_codes = true, dump.codes = {3, 4};
  EXPECT_THAT(codes_of(dump, params), ElementsAre(3, 4));
}

}  // namespace
}  // namespace octet::app
