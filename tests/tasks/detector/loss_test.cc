// A detector from elsewhere has nothing to learn but what a teacher says.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/memory_dataset.h"
#include "ir/infer.h"
#include "tasks/registry.h"
#include "tasks/support.h"
#include "tasks/training.h"
#include "train/distillation.h"
#include "train/step.h"

namespace octet::tasks::detector {

std::unique_ptr<train::Loss> make_loss(const tasks::Task&);

namespace {

// Two rows of five values from a picture of two pixels.
ir::Graph network(float weight) {
  ir::Graph g;
  ir::Value* x = g.add_input("images", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 1, 1, 2}});
  ir::Value* flat = g.add(ir::OpKind::kFlatten, "flat", {x});
  std::vector<float> weights(20);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = weight * static_cast<float>(i % 7);
  ir::Value* w = g.add_constant("w", ir::Tensor::of<float>({10, 2}, weights), true);
  ir::Value* rows = g.add(ir::OpKind::kGemm, "rows", {flat, w}, {{"transB", int64_t{1}}});
  g.add_output(
      g.add(ir::OpKind::kReshape, "out", {rows, g.add_constant("s", ir::Tensor::of<int64_t>({3}, {-1, 2, 5}))}));
  ir::infer_shapes(g);
  return g;
}

TEST(DetectorLoss, IsAllOfATeacher) {
  const auto task = all_tasks()[0].make();
  const std::unique_ptr<train::Loss> loss = make_loss(*task);
  EXPECT_TRUE(loss->needs_teacher());
  const auto dataset = pictures_of_two(std::string("\xff\x00\x00\xff", 4), {0, 1});
  data::Loader loader(*dataset, {.batch_size = 2});
  loader.start_epoch(0);
  const data::Batch batch = loader.next().value();
  EXPECT_TRUE((*loss)({}, batch).empty());

  const ir::Graph teacher = network(0.5f);
  train::Distillation taught(*loss, network(0.25f), teacher, {}, {});
  EXPECT_FALSE(taught.needs_teacher());
  train::Executor student(taught.student());
  const std::vector<at::Tensor> said = student.forward({train::images_of(batch)}, train::Mode::kTrain);
  const std::vector<at::Tensor> wanted =
      train::Executor(teacher).forward({train::images_of(batch)}, train::Mode::kEval);
  const train::LossParts parts = taught(said, batch);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].first, "distill/out");
  EXPECT_NEAR(parts[0].second.item<double>(), (said[0] - wanted[0]).square().mean().item<double>(), 1e-6);
  EXPECT_GT(parts[0].second.item<double>(), 0.01);
}

}  // namespace
}  // namespace octet::tasks::detector
