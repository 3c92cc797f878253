#include "tasks/detectnet_v2/loss.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "tasks/detectnet_v2/task.h"
#include "train/constants.h"
#include "train/saved_tensors.h"

namespace octet::tasks::detectnet_v2 {
namespace {

struct Targets {
  at::Tensor coverage, box_weight, boxes;  // [batch, classes, rows, columns]; boxes with 4 * classes channels
  at::Tensor coverage_factor, box_factor;  // of the loss in each cell, [batch, classes, rows, columns]
};

Targets draw(const data::Batch& batch, const Grid& grid, const RasterizerOptions& options, LossMask& mask) {
  Targets t{.coverage = at::empty({batch.size, grid.classes, grid.rows, grid.columns}, at::kFloat),
            .box_weight = at::empty({batch.size, grid.classes, grid.rows, grid.columns}, at::kFloat),
            .boxes = at::empty({batch.size, 4 * grid.classes, grid.rows, grid.columns}, at::kFloat),
            .coverage_factor = at::empty({batch.size, grid.classes, grid.rows, grid.columns}, at::kFloat),
            .box_factor = at::empty({batch.size, grid.classes, grid.rows, grid.columns}, at::kFloat)};
  for (int64_t i = 0; i < batch.size; ++i) {
    const data::Annotation& annotation = batch.truth[static_cast<size_t>(i)];
    const GridTruth truth = rasterize(annotation.objects, grid, options);
    std::copy(truth.coverage.begin(), truth.coverage.end(),
              t.coverage.mutable_data_ptr<float>() + i * grid.coverage_size());
    std::copy(truth.coverage_weight.begin(), truth.coverage_weight.end(),
              t.box_weight.mutable_data_ptr<float>() + i * grid.coverage_size());
    std::copy(truth.boxes.begin(), truth.boxes.end(), t.boxes.mutable_data_ptr<float>() + i * grid.box_size());
    for (const auto& [factor, objective] :
         {std::pair(&t.coverage_factor, MaskObjective::kCoverage), {&t.box_factor, MaskObjective::kBbox}}) {
      const std::vector<float> factors = mask.factors(objective, annotation, truth, grid);
      std::transform(factors.begin(), factors.end(), factor->mutable_data_ptr<float>() + i * grid.coverage_size(),
                     [weight = annotation.weight](float f) { return weight * f; });
    }
  }
  return t;
}

}  // namespace

std::unique_ptr<train::Loss> make_loss(const tasks::Task& task) {
  return std::make_unique<Loss>(dynamic_cast<const Task&>(task).options().loss);
}

void Loss::start(int64_t classes) {
  const auto of = [&](auto value) {
    std::vector<double> values;
    for (int label = 0; label < classes; ++label) values.push_back(value(options_.costs.of(label)));
    return at::tensor(values, at::kDouble);
  };
  const auto shares = [](const at::Tensor& weights) {
    const at::Tensor sum = weights.sum(0, /*keepdim=*/true);
    return at::where(sum > 0, weights / sum, at::zeros_like(weights));
  };
  class_shares_ = shares(of([](const ClassCost& c) { return c.class_weight; }));
  foreground_ = of([](const ClassCost& c) { return c.coverage_foreground_weight; });
  targets_ = at::stack({of([](const ClassCost& c) { return c.coverage.weight_target; }),
                        of([](const ClassCost& c) { return c.bbox.weight_target; })});
  if (!weights_.defined())
    weights_ = shares(at::stack({of([](const ClassCost& c) { return c.coverage.initial_weight; }),
                                 of([](const ClassCost& c) { return c.bbox.initial_weight; })}));
  if (!cost_sums_.defined()) cost_sums_ = at::zeros_like(weights_);
  if (weights_.size(1) != classes)
    fail("the checkpoint has weights of ", weights_.size(1), " classes, the network has ", classes);
}

train::LossParts Loss::operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) {
  const at::Tensor &coverage = outputs.at(0), &boxes = outputs.at(1);
  const Grid grid{.classes = static_cast<int>(coverage.size(1)),
                  .rows = static_cast<int>(coverage.size(2)),
                  .columns = static_cast<int>(coverage.size(3)),
                  .stride = static_cast<int>(batch.height / coverage.size(2))};
  if (!class_shares_.defined()) start(grid.classes);
  require_classes(batch, grid.classes);
  const Targets truth = draw(batch, grid, options_.rasterizer, mask_);
  const auto here = [&](const at::Tensor& tensor) { return tensor.to(coverage.device(), at::kFloat); };
  const at::Tensor target = here(truth.coverage);

  constexpr double kEpsilon = 1e-5;
  const at::Tensor foreground = here(foreground_).reshape({1, grid.classes, 1, 1});
  const at::Tensor entropy = -(target * (coverage + kEpsilon).log() + (1 - target) * (1 - coverage + kEpsilon).log()) *
                             at::where(target > 0.5, foreground, 1 - foreground) * here(truth.coverage_factor);
  const at::Tensor distance =
      (boxes - here(truth.boxes)).abs().reshape({batch.size, grid.classes, 4, grid.rows, grid.columns}) *
      (here(truth.box_weight) * here(truth.box_factor)).unsqueeze(2);
  const at::Tensor costs = at::stack({entropy.mean({0, 2, 3}), distance.mean({0, 2, 3, 4})});  // [2, classes]
  if (options_.autoweighting.enabled) cost_sums_ += costs.detach().to(at::kCPU, at::kDouble);
  const at::Tensor weighted = (costs * here(weights_ * class_shares_)).sum(1);
  return {{"coverage", weighted[0]}, {"boxes", weighted[1]}};
}

void Loss::end_epoch(train::Communicator& communicator) {
  for (const std::string& sentence : mask_.idle_filters()) log_warning(sentence);
  if (!options_.autoweighting.enabled || !cost_sums_.defined()) return;
  const at::NoGradGuard no_grad;
  communicator.all_reduce({&cost_sums_, 1}, train::Reduce::kMean);  // as good as their sum: only ratios count
  const at::Tensor wanted = at::where(cost_sums_ > 0, targets_ / cost_sums_, at::zeros_like(targets_));
  const at::Tensor sum = wanted.sum(0, /*keepdim=*/true);
  const at::Tensor clamped =
      (wanted / sum).clamp(options_.autoweighting.min_objective_weight, options_.autoweighting.max_objective_weight);
  weights_ = at::where(sum > 0, clamped, weights_);
  cost_sums_ = at::zeros_like(weights_);
}

void Loss::save(checkpoint::NamedTensors& state) const {
  if (!options_.autoweighting.enabled || !weights_.defined()) return;
  state["loss/objective_weights"] = train::to_constant(weights_);
  state["loss/cost_sums"] = train::to_constant(cost_sums_);
}

void Loss::load(const checkpoint::NamedTensors& state) {
  if (!options_.autoweighting.enabled) return;
  for (const auto& [tensor, name] : {std::pair(&weights_, "loss/objective_weights"), {&cost_sums_, "loss/cost_sums"}}) {
    const at::Tensor saved = train::to_torch(train::saved_entry(state, name));
    if (saved.dim() != 2 || saved.size(0) != 2 || saved.scalar_type() != at::kDouble)
      fail("the checkpoint's '", name, "' is none of two objectives for each class");
    *tensor = saved;
  }
  if (weights_.sizes() != cost_sums_.sizes()) fail("the checkpoint's weights and sums of the loss do not fit together");
}

}  // namespace octet::tasks::detectnet_v2
