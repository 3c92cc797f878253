#include "train/distillation.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "train/small_training.h"
#include "train/step.h"

namespace octet::train {
namespace {

using testing::batches_of;
using testing::quadrants;
using testing::small_network;
using testing::state_of;

// Other weights: a teacher to learn from.
ir::Graph teacher_network() {
  ir::Graph graph = small_network(false);
  for (const auto& [name, seed] : {std::pair("conv.weight", 21u), {"conv.bias", 22u}, {"fc.weight", 23u}}) {
    ir::Value* value = graph.find_value(name);
    graph.set_constant(value, testing::normal_constant(value->constant->shape(), 0.5f, seed));
  }
  return graph;
}

struct Nothing : Loss {
  LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch&) override {
    seen = outputs.size();
    return {{"nothing", outputs.at(0).sum() * 0}};
  }
  size_t seen = 0;
};

std::vector<at::Tensor> run(const ir::Graph& graph, const data::Batch& batch) {
  return Executor(graph).forward({images_of(batch)}, Mode::kEval);
}

std::vector<double> numbers(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.to(at::kDouble).contiguous();
  return {plain.const_data_ptr<double>(), plain.const_data_ptr<double>() + plain.numel()};
}

// Number by number, from what the two networks say.
TEST(Distillation, CriteriaAreTheirFormulas) {
  const ir::Graph student = small_network(false), teacher = teacher_network();
  const data::Batch batch = std::move(batches_of(*quadrants(8, 1), 8)[0]);
  const std::vector<double> s = numbers(run(student, batch)[0]), t = numbers(run(teacher, batch)[0]);
  double l1 = 0, l2 = 0, kl = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    l1 += std::fabs(s[i] - t[i]) / static_cast<double>(s.size());
    l2 += (s[i] - t[i]) * (s[i] - t[i]) / static_cast<double>(s.size());
  }
  const double temperature = 3;
  for (size_t image = 0; image < 8; ++image) {
    double sum_s = 0, sum_t = 0;
    for (size_t c = 4 * image; c < 4 * image + 4; ++c)
      sum_s += std::exp(s[c] / temperature), sum_t += std::exp(t[c] / temperature);
    for (size_t c = 4 * image; c < 4 * image + 4; ++c) {
      const double p = std::exp(t[c] / temperature) / sum_t, q = std::exp(s[c] / temperature) / sum_s;
      kl += p * std::log(p / q) * temperature * temperature / 8;
    }
  }
  for (const auto& [criterion, want] : {std::pair(DistillCriterion::kL1, l1),
                                        {DistillCriterion::kL2, l2},
                                        {DistillCriterion::kKl, kl},
                                        {DistillCriterion::kAuto, kl}}) {
    Nothing nothing;
    Distillation loss(nothing, student, teacher, {.weight = 0.5, .temperature = temperature, .criterion = criterion},
                      {});
    const LossParts parts = loss(run(loss.student(), batch), batch);
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[1].first, "distill/fc");
    EXPECT_NEAR(parts[1].second.item<double>(), 0.5 * want, 1e-5 * want);
    EXPECT_GT(want, 1e-3);
  }
}

// Two features and the output, of a student that is quantized: it comes near, and only it moves.
// Of the convolution's maps: where each channel looks.
TEST(Distillation, OfChannelsIsTheDivergenceOverTheirPlaces) {
  const ir::Graph student = small_network(false), teacher = teacher_network();
  const std::string maps = student.nodes().front()->output()->name;
  const data::Batch batch = std::move(batches_of(*quadrants(4, 1), 4)[0]);
  const double temperature = 2;
  const DistillOptions options{.temperature = temperature,
                               .bindings = {{.student = maps, .criterion = DistillCriterion::kChannel}}};
  Nothing nothing;
  Distillation loss(nothing, student, teacher, options, {});
  const std::vector<at::Tensor> said = run(loss.student(), batch);
  const at::Tensor wanted = run(Distillation(nothing, teacher, teacher, options, {}).student(), batch)[1];
  ASSERT_EQ(said[1].dim(), 4);
  const std::vector<double> s = numbers(said[1]), t = numbers(wanted);
  const size_t channels = static_cast<size_t>(said[1].size(0) * said[1].size(1)), places = s.size() / channels;
  ASSERT_GT(places, 1u);
  double expected = 0;
  for (size_t c = 0; c < channels; ++c) {
    double sum_s = 0, sum_t = 0;
    for (size_t i = c * places; i < (c + 1) * places; ++i)
      sum_s += std::exp(s[i] / temperature), sum_t += std::exp(t[i] / temperature);
    for (size_t i = c * places; i < (c + 1) * places; ++i) {
      const double p = std::exp(t[i] / temperature) / sum_t, q = std::exp(s[i] / temperature) / sum_s;
      expected += p * std::log(p / q) * temperature * temperature / static_cast<double>(channels);
    }
  }
  const LossParts parts = loss(said, batch);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_NEAR(parts[1].second.item<double>(), expected, 1e-5 * expected);
  const DistillOptions logits{.criterion = DistillCriterion::kChannel};
  EXPECT_THAT(
      [&] { Distillation(nothing, student, teacher, logits, {}); },
      ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("channel takes maps, with places behind axis 1")));
}

TEST(Distillation, TheStudentLearnsAndTheTeacherStays) {
  const ir::Graph graph = small_network(true);
  const ir::Graph teacher = teacher_network();
  Nothing nothing;
  Distillation loss(nothing, graph, teacher,
                    {.bindings = {{.student = "pool"},
                                  {.student = "conv", .teacher = "bn", .criterion = DistillCriterion::kL1, .weight = 2},
                                  {.student = "fc"}}},
                    {});
  Executor student(loss.student());
  OptimizerOptions adam;
  adam.type = OptimizerType::kAdam;
  adam.lr = 0.02;
  Optimizer optimizer(adam, testing::parameters_of(student));
  TrainStep step(student, optimizer, loss, {});
  const data::Batch batch = std::move(batches_of(*quadrants(64, 7), 64)[0]);
  const StepLoss first = step(batch, 1);
  ASSERT_EQ(first.parts.size(), 4u);
  EXPECT_EQ(first.parts[2].first, "distill/conv");
  EXPECT_EQ(nothing.seen, 1u) << "the inner loss sees the outputs that it knows";
  StepLoss last;
  for (int i = 0; i < 150; ++i) last = step(batch, 1);
  EXPECT_LT(last.total, 0.2 * first.total);
  // What the teacher says is what it said before, and no tensor of it has asked for a gradient.
  ir::Graph trained = graph.clone();
  student.write_back(trained);
  const at::Tensor said = run(trained, batch)[0], wanted = run(teacher, batch)[0];
  EXPECT_LT((said - wanted).square().mean().item<double>(), 0.3 * last.total + 0.3 * first.total);
  const LossParts parts = loss(student.forward({images_of(batch)}, Mode::kTrain), batch);
  double own = 0;
  const std::vector<at::Tensor> outputs = student.forward({images_of(batch)}, Mode::kEval);
  own = (outputs[0] - wanted).square().mean().item<double>();
  EXPECT_NEAR(parts[3].second.item<double>(), own, 1e-4 * own + 1e-6);
}

// The student's gradient is that of an L2 loss to fixed numbers.
TEST(Distillation, ItsGradientIsThatOfFixedTargets) {
  const ir::Graph graph = small_network(false), teacher = teacher_network();
  const data::Batch batch = std::move(batches_of(*quadrants(16, 3), 16)[0]);
  const at::Tensor wanted = run(teacher, batch)[0];
  Nothing nothing;
  DistillOptions options;
  options.criterion = DistillCriterion::kL2;
  Distillation loss(nothing, graph, teacher, options, {});
  std::map<std::string, at::Tensor> gradients[2];
  for (int i = 0; i < 2; ++i) {
    Executor student(i == 0 ? loss.student() : graph);
    const std::vector<at::Tensor> outputs = student.forward({images_of(batch)}, Mode::kTrain);
    (i == 0 ? loss(outputs, batch)[1].second : at::mse_loss(outputs[0], wanted)).backward();
    for (const auto& [name, tensor] : student.named_parameters()) gradients[i][name] = tensor.grad();
  }
  for (const auto& [name, gradient] : gradients[1])
    EXPECT_TRUE(at::allclose(gradients[0].at(name), gradient, 1e-5, 1e-7)) << name;
}

TEST(Distillation, KeepsTheStateOfTheInnerLoss) {
  struct Stateful : Nothing {
    void end_epoch(Communicator&) override { ++epochs; }
    void save(checkpoint::NamedTensors& state) const override {
      state["loss/epochs"] = ir::Tensor::scalar<int64_t>(epochs);
    }
    void load(const checkpoint::NamedTensors& state) override { epochs = state.at("loss/epochs").to_ints().at(0); }
    int64_t epochs = 0;
  } inner;
  Distillation loss(inner, small_network(false), teacher_network(), {}, {});
  loss.end_epoch(single_process());
  checkpoint::NamedTensors state;
  loss.save(state);
  inner.epochs = 9;
  loss.load(state);
  EXPECT_EQ(inner.epochs, 1);
}

std::string refusal(const DistillOptions& options, const ir::Graph& teacher) {
  Nothing nothing;
  try {
    Distillation(nothing, small_network(false), teacher, options, {});
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Distillation, WhatDoesNotFitIsNamed) {
  using ::testing::HasSubstr;
  const ir::Graph teacher = teacher_network();
  EXPECT_THAT(refusal({.bindings = {{.student = "poool"}}}, teacher),
              HasSubstr("the network that learns computes no tensor 'poool'; did you mean 'pool'?"));
  EXPECT_THAT(refusal({.bindings = {{.student = "pool", .teacher = "fc.weight"}}}, teacher),
              HasSubstr("the teacher computes no tensor 'fc.weight'"));
  EXPECT_THAT(refusal({.bindings = {{.student = "pool", .teacher = "relu"}}}, teacher),
              HasSubstr("'relu' of the teacher is"));
  ir::Graph two = teacher_network();
  two.add_output(two.find_value("relu"));
  EXPECT_THAT(refusal({}, two), HasSubstr("it has 2 outputs, the network that learns has 1"));
}

}  // namespace
}  // namespace octet::train
