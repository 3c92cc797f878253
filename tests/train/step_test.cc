// One step: several ranks that must agree, and a loss around a loss (a teacher).
#include "train/step.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "train/small_training.h"
#include "train/thread_ranks.h"

namespace octet::train {
namespace {

using testing::batches_of;
using testing::parameters_of;
using testing::quadrants;
using testing::small_network;
using testing::state_of;
using testing::ThreadRanks;

// What one rank ends with.
struct Trained {
  std::map<std::string, at::Tensor> state;
  std::vector<StepLoss> losses;
};

const ExecutorOptions kFollowing = {.averaging = {.activations = 0.3f, .weights = 1}};

// One step for each batch, or for so many.
Trained trained(const ir::Graph& graph, const ExecutorOptions& options, std::span<const data::Batch> batches,
                Communicator& communicator, int accumulate = 1, const ReductionOptions& reduction = {}) {
  Executor executor(graph, options);
  OptimizerOptions sgd;
  sgd.lr = 0.1;
  Optimizer optimizer(sgd, parameters_of(executor));
  testing::QuadrantTask loss(nullptr);
  TrainStep step(executor, optimizer, loss,
                 {.clip_grad_norm = 5, .communicator = communicator, .reduction = reduction, .accumulate = accumulate});
  Trained out;
  for (size_t i = 0; i < batches.size(); ++i)
    if ((i + 1) % static_cast<size_t>(accumulate) == 0)
      out.losses.push_back(step(batches[i], 1));
    else
      step.accumulate(batches[i]);
  out.state = state_of(executor);
  return out;
}

// Rank r gets every second batch, from r on.
std::vector<Trained> on_two_ranks(const ir::Graph& graph, const ExecutorOptions& options,
                                  std::vector<data::Batch> batches, bool sync = false) {
  std::vector<std::vector<data::Batch>> shares(2);
  for (size_t i = 0; i < batches.size(); ++i) shares[i % 2].push_back(std::move(batches[i]));
  std::vector<Trained> out(2);
  ThreadRanks(2).run([&](Communicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    ExecutorOptions own = options;
    if (sync) own.statistics = &communicator;
    out[rank] = trained(graph, own, shares[rank], communicator);
  });
  return out;
}

void expect_same_state(const Trained& a, const Trained& b) {
  for (const auto& [name, tensor] : a.state) EXPECT_TRUE(at::equal(tensor, b.state.at(name))) << name;
}

// Two ranks with half a batch each descend the gradient of the whole batch.
TEST(Step, AveragesGradientsAndLossesOverRanks) {
  const ir::Graph graph = small_network(true);
  const auto pictures = quadrants(96, 3);
  const Trained whole = trained(graph, {}, batches_of(*pictures, 32), single_process());
  const std::vector<Trained> ranks = on_two_ranks(graph, {}, batches_of(*pictures, 16));
  expect_same_state(ranks[0], ranks[1]);
  for (const auto& [name, tensor] : whole.state)
    EXPECT_TRUE(at::allclose(ranks[0].state.at(name), tensor, 1e-4, 1e-5)) << name;
  ASSERT_EQ(whole.losses.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(ranks[0].losses[i].total, whole.losses[i].total, 1e-5);
    EXPECT_EQ(ranks[0].losses[i].total, ranks[1].losses[i].total);
    EXPECT_EQ(ranks[0].losses[i].parts, ranks[1].losses[i].parts);
    EXPECT_EQ(ranks[0].losses[i].parts.at(0).second, ranks[0].losses[i].total);
    EXPECT_TRUE(ranks[0].losses[i].updated);
  }
}

// The scale that covers the images of all ranks is that of one process with all of them, to the bit.
TEST(Step, ScalesFollowTheImagesOfAllRanks) {
  const ir::Graph graph = small_network(true);
  const auto pictures = quadrants(32, 4);
  const Trained whole = trained(graph, kFollowing, batches_of(*pictures, 32), single_process());
  const std::vector<Trained> ranks = on_two_ranks(graph, kFollowing, batches_of(*pictures, 16));
  expect_same_state(ranks[0], ranks[1]);
  const std::string scale = "input/fake_quantize/scale";
  EXPECT_TRUE(at::equal(ranks[0].state.at(scale), whole.state.at(scale)));
  EXPECT_FALSE(at::equal(whole.state.at(scale), at::scalar_tensor(1.0f / 127))) << "the test moves nothing";
}

// Batch norm over the images of all ranks: two with half a batch each do what one does with the whole, with and without
// fused kernels.
TEST(Step, SyncBatchNormIsThatOfTheWholeBatch) {
  const ir::Graph graph = small_network(false);
  const auto pictures = quadrants(96, 5);
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(fused);
    const ExecutorOptions options{.channels_last = fused};
    const Trained whole = trained(graph, options, batches_of(*pictures, 32), single_process());
    const std::vector<Trained> ranks = on_two_ranks(graph, options, batches_of(*pictures, 16), /*sync=*/true);
    expect_same_state(ranks[0], ranks[1]);
    for (const auto& [name, tensor] : whole.state)
      EXPECT_TRUE(at::allclose(ranks[0].state.at(name), tensor, 1e-5, 1e-6)) << name;
    // Sums of float32 in another order, through two updates.
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(ranks[0].losses[i].total, whole.losses[i].total, 1e-5);
    const std::vector<Trained> apart = on_two_ranks(graph, options, batches_of(*pictures, 16));
    EXPECT_FALSE(at::allclose(apart[0].state.at("bn.running_var"), whole.state.at("bn.running_var"), 1e-5, 1e-6))
        << "the test sees no difference";
  }
}

// Several batches make one step of their mean loss, with and without further ranks.
TEST(Step, AccumulatesBatches) {
  const ir::Graph graph = small_network(true);
  const auto pictures = quadrants(64, 8);
  const Trained whole = trained(graph, {}, batches_of(*pictures, 32), single_process());
  const Trained parts = trained(graph, {}, batches_of(*pictures, 16), single_process(), 2);
  ASSERT_EQ(parts.losses.size(), 2u);
  for (const auto& [name, tensor] : whole.state)
    EXPECT_TRUE(at::allclose(parts.state.at(name), tensor, 1e-5, 1e-6)) << name;
  EXPECT_NEAR(parts.losses[1].total, whole.losses[1].total, 1e-6);
}

// Small buckets, so that there are several, and types in which gradients travel.
TEST(Step, GradientsTravelInBuckets) {
  const ir::Graph graph = small_network(false);
  const auto pictures = quadrants(64, 9);
  const auto with = [&](ReductionOptions reduction) {
    std::vector<std::vector<data::Batch>> shares(2);
    std::vector<data::Batch> batches = batches_of(*pictures, 16);
    for (size_t i = 0; i < batches.size(); ++i) shares[i % 2].push_back(std::move(batches[i]));
    std::vector<Trained> out(2);
    ThreadRanks(2).run([&](Communicator& communicator) {
      const auto rank = static_cast<size_t>(communicator.rank());
      out[rank] = trained(graph, {}, shares[rank], communicator, 1, reduction);
    });
    expect_same_state(out[0], out[1]);
    return out[0].state;
  };
  const auto one = with({}), many = with({.bucket_mb = 1e-4});
  const auto half = with({.compression = Compression::kFp16}), brain = with({.compression = Compression::kBf16});
  bool rounded = false;
  for (const auto& [name, tensor] : one) {
    EXPECT_TRUE(at::equal(many.at(name), tensor)) << name;
    EXPECT_TRUE(at::allclose(half.at(name), tensor, 1e-2, 1e-3)) << name;
    EXPECT_TRUE(at::allclose(brain.at(name), tensor, 2e-2, 4e-3)) << name;
    rounded |= !at::equal(half.at(name), tensor) && !at::equal(brain.at(name), half.at(name));
  }
  EXPECT_TRUE(rounded) << "the test compresses nothing";
}

TEST(Step, RanksShareTheirRunningStatistics) {
  const ir::Graph graph = small_network(false);
  const auto pictures = quadrants(32, 5);
  const Trained whole = trained(graph, {}, batches_of(*pictures, 32), single_process());
  const std::vector<Trained> ranks = on_two_ranks(graph, {}, batches_of(*pictures, 16));
  expect_same_state(ranks[0], ranks[1]);
  EXPECT_TRUE(at::allclose(ranks[0].state.at("bn.running_mean"), whole.state.at("bn.running_mean"), 1e-5, 1e-6));
}

// What is not finite on one rank stops the update on all of them.
TEST(Step, NoRankMovesWhenOneLossIsNotFinite) {
  const ir::Graph graph = small_network(false);
  std::vector<data::Batch> batches = batches_of(*quadrants(32, 6), 16);
  batches[1].images.data()[0] = std::numeric_limits<float>::infinity();
  Executor fresh(graph);
  const std::vector<Trained> ranks = on_two_ranks(graph, {}, std::move(batches));
  for (const Trained& rank : ranks) {
    EXPECT_FALSE(rank.losses.at(0).updated);
    for (const auto& [name, tensor] : fresh.named_parameters())
      EXPECT_TRUE(at::equal(rank.state.at(name), tensor)) << name;
  }
}

// A loss around a loss: the student's features descend to those of a teacher.
class Distillation : public Loss {
 public:
  Distillation(Loss& inner, Executor& student, Executor& teacher, const std::string& feature)
      : inner_(inner), teacher_(teacher) {
    student.set_tap([this](const ir::Value&, const at::Tensor& t) { learned_ = t; }, {feature});
    teacher.set_tap([this](const ir::Value&, const at::Tensor& t) { taught_ = t; }, {feature});
  }
  LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override {
    LossParts parts = inner_(outputs, batch);
    teacher_.forward({images_of(batch)}, Mode::kEval);
    parts.emplace_back("feature", at::mse_loss(learned_, taught_));
    return parts;
  }

 private:
  Loss& inner_;
  Executor& teacher_;
  at::Tensor learned_, taught_;
};

struct NoListener : Loss {
  LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch&) override {
    return {{"nothing", outputs.at(0).sum() * 0}};
  }
};

TEST(Step, ATeacherIsALossAroundALoss) {
  const ir::Graph graph = small_network(true);
  ir::Graph taught = graph.clone();
  ir::Value* bias = taught.find_value("conv.bias");
  std::vector<float> moved = bias->constant->to_floats();
  for (float& b : moved) b += 0.5f;
  bias->constant = ir::Tensor::of<float>(bias->constant->shape(), moved);
  Executor student(graph), teacher(taught);
  OptimizerOptions sgd;
  sgd.lr = 1;
  sgd.momentum = sgd.weight_decay = 0;
  Optimizer optimizer(sgd, parameters_of(student));
  NoListener inner;
  Distillation loss(inner, student, teacher, "relu");
  TrainStep step(student, optimizer, loss, {});
  const std::vector<data::Batch> batches = batches_of(*quadrants(64, 7), 64);
  const auto classifier = state_of(student).at("fc.weight");
  const StepLoss first = step(batches[0], 1);
  ASSERT_EQ(first.parts.size(), 2u);
  EXPECT_EQ(first.parts[0].first, "nothing");
  EXPECT_EQ(first.parts[1].first, "feature");
  EXPECT_EQ(first.total, first.parts[0].second + first.parts[1].second);
  StepLoss last;
  for (int i = 0; i < 60; ++i) last = step(batches[0], 1);
  EXPECT_LT(last.total, 0.1 * first.total);
  EXPECT_GT(first.total, 0);
  EXPECT_TRUE(at::equal(state_of(student).at("fc.weight"), classifier)) << "it lies behind the feature";
}

}  // namespace
}  // namespace octet::train
