// The smallest task: how many of the pixels are bright. All that a task is, in one folder.
#pragma once
#include <map>

#include "ir/infer.h"
#include "tasks/task.h"
#include "train/loss.h"

namespace octet::tasks::toy {

inline double brightness(const data::Batch& batch, int64_t image) {
  double sum = 0;
  const size_t pixels = batch.images.size() / static_cast<size_t>(batch.size);
  for (size_t i = 0; i < pixels; ++i) sum += batch.images.data()[static_cast<size_t>(image) * pixels + i];
  return sum / static_cast<double>(pixels);
}

class ErrorEvaluator : public Evaluator {
 public:
  void add(const Outputs& outputs, const data::Batch& batch) override {
    for (int64_t i = 0; i < batch.size; ++i)
      errors_[batch.indices[static_cast<size_t>(i)]] =
          std::abs(outputs.at(0).values[static_cast<size_t>(i)] - brightness(batch, i));
  }
  void merge(const Evaluator& other) override {
    const auto& part = dynamic_cast<const ErrorEvaluator&>(other);
    errors_.insert(part.errors_.begin(), part.errors_.end());
  }
  Metrics result() const override {
    double sum = 0;
    for (const auto& [image, error] : errors_) sum += error;
    return {{"error", sum / static_cast<double>(errors_.size())}};
  }

 private:
  std::map<int64_t, double> errors_;  // by image: sums depend on their order
};

class Task : public tasks::Task {
 public:
  std::unique_ptr<tasks::Task> clone() const override { return std::make_unique<Task>(*this); }
  void describe(schema::Section&) override {}
  ir::Graph build(const models::ModelOptions& options) const override {
    ir::Graph g;
    const auto [c, h, w] = options.input;
    ir::Value* x = g.add_input("input", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, c, h, w}});
    ir::Value* weight = g.add_constant(
        "weight", ir::Tensor::of<float>({1, c * h * w}, std::vector<float>(static_cast<size_t>(c * h * w))), true);
    ir::Value* flat = g.add(ir::OpKind::kFlatten, "flat", {x});
    g.add_output(g.add(ir::OpKind::kGemm, "brightness", {flat, weight}, {{"transB", int64_t{1}}}));
    ir::infer_shapes(g);
    return g;
  }
  void check(const Signature&, int64_t) const override {}
  int64_t classes(const Signature&) const override { return 1; }
  ir::Graph executed_graph(const ir::Graph& network) const override { return network.clone(); }
  std::vector<Prediction> decode(const Outputs& outputs, const data::Batch&) const override {
    std::vector<Prediction> out;
    for (float value : outputs.at(0).values) out.push_back(ClassScores{{value}});
    return out;
  }
  std::unique_ptr<Evaluator> evaluator() const override { return std::make_unique<ErrorEvaluator>(); }
  std::vector<MetricInfo> metrics() const override {
    return {{.name = "error", .title = "error", .unit = "", .larger_is_better = false}};
  }
};

}  // namespace octet::tasks::toy
