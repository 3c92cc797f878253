// The Classifier that runs an engine file, and the choice between the kinds of files.
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "cli/classifier.h"
#include "cli/flags.h"
#include "data/network_input.h"
#include "engine/engine_file.h"
#include "engine/executor.h"
#ifndef OCTET_WITH_TRAINING
#include "app/network_file.h"
#include "lower/lower.h"
#endif

namespace octet::cli {
namespace {

// From the output back to the step that makes the numbers, through those that only move or convert them.
metrics::ScoreKind score_kind_of(const engine::Plan& plan) {
  int wanted = plan.root(plan.outputs[0]);
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) {
    const bool writes =
        std::any_of(step->outputs.begin(), step->outputs.end(), [&](int id) { return plan.root(id) == wanted; });
    if (!writes) continue;
    if (step->kind == "softmax") {
      // Over the classes, of every image by itself.
      const std::vector<int64_t>& shape = plan.buffers[static_cast<size_t>(plan.outputs[0])].shape;
      if (step->ints.at("outer") != shape[0] || step->ints.at("axis") != shape[1]) break;
      const auto logarithm = step->ints.find("logarithm");
      return logarithm != step->ints.end() && logarithm->second == 1 ? metrics::ScoreKind::kLogProbabilities
                                                                     : metrics::ScoreKind::kProbabilities;
    }
    static const std::set<std::string> moves = {"strided_copy", "copy", "quantize", "dequantize"};
    if (moves.count(step->kind) == 0 || step->inputs.size() != 1) break;
    wanted = plan.root(step->inputs[0]);
  }
  return metrics::ScoreKind::kLogits;
}

class EngineClassifier : public Classifier {
 public:
  EngineClassifier(std::shared_ptr<const engine::Plan> plan, const std::string& path, const ClassifierOptions& options)
      : executor_(plan, {.threads = static_cast<int>(options.threads), .isa = chosen_isa(options.isa)}) {
    if (plan->inputs.size() != 1 || plan->outputs.size() != 1)
      fail_usage(path, ": has ", plan->inputs.size(), " inputs and ", plan->outputs.size(),
                 " outputs; a classifier has one of each");
    const engine::Buffer& input = plan->buffers[static_cast<size_t>(plan->inputs[0])];
    const engine::Buffer& output = plan->buffers[static_cast<size_t>(plan->outputs[0])];
    output_ = output.shape;
    if (output_.size() != 2 || input.shape.at(0) != output_[0])
      fail_usage(path, ": is no classifier of images: input of rank ", input.shape.size(), ", output of rank ",
                 output_.size());
    input_ = data::read_network_input(input.name, input.shape);
    kind_ = score_kind_of(*plan);
    read_class_names(plan->metadata, path);
    buffer_.resize(static_cast<size_t>(input.elements()));
    result_.resize(static_cast<size_t>(output.elements()));
  }

  std::vector<float> scores(const data::Batch& batch) override {
    data::require_fit(input_, batch.channels, batch.height, batch.width);
    OCTET_CHECK(batch.size <= input_.batch);
    data::arrange(batch, input_, buffer_);
    const float* in = buffer_.data();
    float* out = result_.data();
    executor_.run(&in, &out);
    return {result_.begin(), result_.begin() + batch.size * output_[1]};
  }
  int64_t classes() const override { return output_[1]; }
  int64_t batch_size() const override { return input_.batch; }
  metrics::ScoreKind score_kind() const override { return kind_; }
  std::string description() const override {
    return str("engine, ", isa_name(executor_.isa()), ", ", executor_.threads(),
               executor_.threads() == 1 ? " thread" : " threads");
  }
  std::vector<int64_t> input_shape() const override { return {input_.channels, input_.height, input_.width}; }

 private:
  engine::Executor executor_;
  data::NetworkInput input_;
  std::vector<int64_t> output_;
  metrics::ScoreKind kind_;
  std::vector<float> buffer_, result_;
};

}  // namespace

std::unique_ptr<Classifier> open_classifier(const std::string& path, const ClassifierOptions& options) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".octet") return std::make_unique<EngineClassifier>(engine::load_engine(path), path, options);
  if (ending != ".onnx") fail_usage(path, ": unknown kind of model '", ending, "'; expected .onnx or .octet");
#ifdef OCTET_WITH_TRAINING
  return open_graph_classifier(path, options);
#else
  auto plan = std::make_shared<const engine::Plan>(lower::lower(app::load_network(path), {}));
  return std::make_unique<EngineClassifier>(std::move(plan), path, options);
#endif
}

}  // namespace octet::cli
