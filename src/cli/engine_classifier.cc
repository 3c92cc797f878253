// The Classifier that runs an engine file, and the choice between the kinds of files.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "cli/classifier.h"
#include "cli/flags.h"
#include "engine/engine_file.h"
#include "engine/executor.h"
#ifndef OCTET_WITH_TRAINING
#include "cli/network_file.h"
#include "lower/lower.h"
#endif

namespace octet::cli {
namespace {

class EngineClassifier : public Classifier {
 public:
  EngineClassifier(std::shared_ptr<const engine::Plan> plan, const std::string& path, const ClassifierOptions& options)
      : executor_(plan, {.threads = static_cast<int>(options.threads), .isa = chosen_isa(options.isa)}) {
    if (plan->inputs.size() != 1 || plan->outputs.size() != 1)
      fail_usage(path, ": has ", plan->inputs.size(), " inputs and ", plan->outputs.size(),
                 " outputs; a classifier has one of each");
    const engine::Buffer& input = plan->buffers[static_cast<size_t>(plan->inputs[0])];
    const engine::Buffer& output = plan->buffers[static_cast<size_t>(plan->outputs[0])];
    input_ = input.shape;
    output_ = output.shape;
    if (input_.size() != 4 || output_.size() != 2 || input_[0] != output_[0])
      fail_usage(path, ": is no classifier of images: input of rank ", input_.size(), ", output of rank ", output_.size());
    read_class_names(plan->metadata, path);
    buffer_.resize(static_cast<size_t>(input.elements()));
    result_.resize(static_cast<size_t>(output.elements()));
  }

  std::vector<float> scores(const data::Batch& batch) override {
    if (batch.channels != input_[1] || batch.height != input_[2] || batch.width != input_[3])
      fail("the images are ", batch.channels, "x", batch.height, "x", batch.width, ", the engine was compiled for ",
           input_[1], "x", input_[2], "x", input_[3]);
    OCTET_CHECK(batch.size <= input_[0]);
    std::fill(std::copy_n(batch.images.data(), batch.images.size(), buffer_.begin()), buffer_.end(), 0.0f);
    const float* in = buffer_.data();
    float* out = result_.data();
    executor_.run(&in, &out);
    return {result_.begin(), result_.begin() + batch.size * output_[1]};
  }
  int64_t classes() const override { return output_[1]; }
  int64_t batch_size() const override { return input_[0]; }
  std::string description() const override {
    return str("engine, ", isa_name(executor_.isa()), ", ", executor_.threads(),
               executor_.threads() == 1 ? " thread" : " threads");
  }
  std::vector<int64_t> input_shape() const override { return {input_.begin() + 1, input_.end()}; }

 private:
  engine::Executor executor_;
  std::vector<int64_t> input_, output_;
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
  auto plan = std::make_shared<const engine::Plan>(lower::lower(load_network(path), {}));
  return std::make_unique<EngineClassifier>(std::move(plan), path, options);
#endif
}

}  // namespace octet::cli
