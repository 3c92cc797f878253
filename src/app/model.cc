#include "app/model.h"

#include <algorithm>
#include <set>

#include "app/class_names.h"
#include "app/engine_build.h"
#include "base/error.h"
#include "engine/executor.h"
#include "lower/lower.h"
#include "tasks/image_graph.h"

namespace octet::app {
namespace {

const engine::Buffer& buffer(const engine::Plan& plan, int id) {
  return plan.buffers[static_cast<size_t>(id)];
}

std::vector<float> as_floats(const dense::Tensor& tensor) {
  const auto converted = [](auto values) { return std::vector<float>(values.begin(), values.end()); };
  switch (tensor.type()) {
    case dense::Type::kFloat:
      return converted(tensor.values<float>());
    case dense::Type::kInt64:
      return converted(tensor.values<int64_t>());
    case dense::Type::kInt32:
      return converted(tensor.values<int32_t>());
    case dense::Type::kBool:
      return converted(tensor.values<bool>());
    case dense::Type::kInt8:
    case dense::Type::kUint8:
      break;  // of no output
  }
  return {};
}

class EngineModel : public Model {
 public:
  // `task` may be nullptr: any.
  EngineModel(std::shared_ptr<const engine::Plan> plan, const ModelFile& file, const tasks::Task* task,
              const RunOptions& options)
      : signature_(app::signature_of(*plan)),
        executor_(plan, {.threads = static_cast<int>(options.threads), .isa = chosen_isa(options.isa)}) {
    if (task) task->check(signature_, 0);
    input_ = tasks::image_input(signature_);
    require_one_image(file, input_.batch);
    read_class_names(file, task ? task->classes(signature_) : -1);
    images_.resize(static_cast<size_t>(buffer(*plan, plan->inputs[0]).elements()));
    for (size_t i = 0; i < plan->outputs.size(); ++i) {
      const engine::Buffer& output = buffer(*plan, plan->outputs[i]);
      if (!plan->program && (output.shape.empty() || output.shape[0] != input_.batch))
        fail_usage(file.path, ": output '", output.name, "' is ", ir::shape_string(output.shape), " for ", input_.batch,
                   " images; it must have a row for each");
      results_.emplace_back(static_cast<size_t>(output.elements()));
      pointers_.push_back(results_.back().data());
      kinds_.push_back(score_kind_of(*plan, i));
    }
  }

  tasks::Outputs run(const data::Batch& batch) override {
    data::require_fit(input_, batch.channels, batch.height, batch.width);
    OCTET_CHECK(batch.size <= input_.batch);
    data::arrange(batch, input_, images_);
    const float* in = images_.data();
    executor_.run(&in, pointers_.data());
    if (executor_.plan().program) return made_outputs();
    tasks::Outputs out;
    for (size_t i = 0; i < results_.size(); ++i) {
      std::vector<int64_t> shape = *signature_.outputs[i].type.shape;
      const auto used = results_[i].size() / static_cast<size_t>(shape[0]) * static_cast<size_t>(batch.size);
      shape[0] = batch.size;
      out.push_back({signature_.outputs[i].name, shape, {results_[i].data(), used}, kinds_[i]});
    }
    return out;
  }
  const tasks::Signature& signature() const override { return signature_; }
  std::vector<int64_t> input_shape() const override { return {input_.channels, input_.height, input_.width}; }
  int64_t batch_size() const override { return input_.batch; }
  std::string description() const override {
    return str("engine, ", isa_name(executor_.isa()), ", ", executor_.threads(),
               executor_.threads() == 1 ? " thread" : " threads");
  }

 private:
  // What a program behind the plan made; labels of classes are exact as floats.
  tasks::Outputs made_outputs() {
    const std::vector<dense::Tensor>& made = executor_.results();
    made_.resize(made.size());
    tasks::Outputs out;
    for (size_t i = 0; i < made.size(); ++i) {
      made_[i] = as_floats(made[i]);
      out.push_back({signature_.outputs[i].name, made[i].shape(), made_[i]});
    }
    return out;
  }

  tasks::Signature signature_;
  engine::Executor executor_;
  data::NetworkInput input_;
  std::vector<float> images_;
  std::vector<std::vector<float>> results_;  // of the plan
  std::vector<std::vector<float>> made_;
  std::vector<float*> pointers_;
  std::vector<metrics::ScoreKind> kinds_;
};

std::unique_ptr<Model> open_engine(const ModelFile& file, const tasks::Task* task, const RunOptions& options) {
  if (file.plan) return std::make_unique<EngineModel>(file.plan, file, task, options);
  const ir::Graph& network = *file.network;
  lower::CompileOptions compile{.input_shape = {}, .isa = chosen_isa(options.isa), .dump_passes = {}};
  if (task) task->check(tasks::signature_of(network), 0);
  const data::NetworkInput in = tasks::image_input(network);
  if (options.input[0] > 0 && (in.channels < 0 || in.height < 0 || in.width < 0)) {
    const auto size = [&](int64_t own, size_t i) { return own >= 0 ? own : options.input.at(i); };
    compile.input_shape =
        in.shape(std::max<int64_t>(1, in.batch), size(in.channels, 0), size(in.height, 1), size(in.width, 2));
  }
  auto plan = std::make_shared<const engine::Plan>(
      build_engine(network, compile, {.threads = static_cast<int>(options.threads)}));
  return std::make_unique<EngineModel>(std::move(plan), file, task, options);
}

}  // namespace

void Model::read_class_names(const ModelFile& file, int64_t classes) {
  class_names_ = class_names_of(file.metadata, file.path);
  if (classes >= 0 && std::ssize(class_names_) > classes)
    fail_usage(file.path, ": names ", class_names_.size(), " classes, but has ", classes, " scores");
}

metrics::ScoreKind score_kind_of(const engine::Plan& plan, size_t output) {
  // From the output back to the step that makes the numbers, through those that only move or convert them.
  int wanted = plan.root(plan.outputs[output]);
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) {
    const bool writes =
        std::any_of(step->outputs.begin(), step->outputs.end(), [&](int id) { return plan.root(id) == wanted; });
    if (!writes) continue;
    if (step->kind == "softmax") {
      // Over the classes, of every image by itself.
      const std::vector<int64_t>& shape = buffer(plan, plan.outputs[output]).shape;
      if (shape.size() != 2 || step->ints.at("outer") != shape[0] || step->ints.at("axis") != shape[1]) break;
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

std::unique_ptr<Model> open_engine_model(const ModelFile& file, const tasks::Task& task, const RunOptions& options) {
  return open_engine(file, &task, options);
}

std::unique_ptr<Model> open_engine_model(const ModelFile& file, const RunOptions& options) {
  return open_engine(file, nullptr, options);
}

}  // namespace octet::app
