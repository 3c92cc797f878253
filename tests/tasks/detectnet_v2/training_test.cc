// The GridBox head on every backbone of the zoo, as its training runs it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "ir/verify.h"
#include "tasks/detectnet_v2/loss.h"
#include "tasks/detectnet_v2/task.h"
#include "train/executor.h"

namespace octet::tasks::detectnet_v2 {
namespace {

struct TrainedCase {
  std::string arch;
  models::Layout layout;
};

std::vector<TrainedCase> cases() {
  std::vector<TrainedCase> out;
  for (const models::ModelInfo& info : models::all_models()) {
    if (info.input[1] <= 32) continue;           // the CIFAR ResNets end at stride 4
    if (info.name.starts_with("vit")) continue;  // has a grid of tokens whose stride is that of small images
    out.push_back({info.name, models::Layout::kTorchvision});
    if (models::has_tao_layout(info.name)) out.push_back({info.name, models::Layout::kTao});
  }
  return out;
}

class EveryBackbone : public ::testing::TestWithParam<TrainedCase> {};

TEST_P(EveryBackbone, TrainsAGridBoxHeadAtStrideSixteen) {
  constexpr int64_t kHeight = 32, kWidth = 64;
  const Task task{Options{}};
  ir::Graph graph = task.build(
      {.arch = GetParam().arch, .num_classes = 2, .input = {3, kHeight, kWidth}, .layout = GetParam().layout});
  ir::verify(graph);
  task.check(signature_of(graph), 2);
  const Grid grid = grid_of(signature_of(graph));
  EXPECT_EQ(grid.stride, 16);
  EXPECT_EQ(grid.rows, kHeight / 16);
  EXPECT_EQ(grid.columns, kWidth / 16);
  train::Executor executor(task.executed_graph(graph));
  data::Batch batch;
  batch.size = 2, batch.channels = 3, batch.height = kHeight, batch.width = kWidth;
  batch.truth.assign(2, {.label = -1, .objects = {{.box = {4, 4, 40, 28}, .label = 1}}});
  batch.indices = {0, 1};
  at::manual_seed(1);
  const std::vector<at::Tensor> outputs = executor.forward({at::rand({2, 3, kHeight, kWidth})}, train::Mode::kTrain);
  EXPECT_EQ(outputs.at(0).sizes(), (at::IntArrayRef{2, 2, kHeight / 16, kWidth / 16}));
  EXPECT_EQ(outputs.at(1).sizes(), (at::IntArrayRef{2, 8, kHeight / 16, kWidth / 16}));
  Loss loss{LossOptions{}};
  at::Tensor total = at::zeros({});
  for (const auto& [name, part] : loss(outputs, batch)) total = total + part;
  EXPECT_TRUE(std::isfinite(total.item<double>()));
  std::vector<at::Tensor> parameters;
  for (const auto& [name, tensor] : executor.named_parameters()) parameters.push_back(tensor);
  for (const at::Tensor& gradient : torch::autograd::grad({total}, parameters))
    EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryBackbone, ::testing::ValuesIn(cases()), [](const auto& info) {
  return info.param.arch + (info.param.layout == models::Layout::kTao ? "_tao" : "");
});

}  // namespace
}  // namespace octet::tasks::detectnet_v2
