#include "app/peer_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/peer_process.h"
#include "base/cpu_limits.h"
#include "base/error.h"

namespace octet::app {
namespace {

// Whether a Softmax over the classes made the scores.
metrics::ScoreKind score_kind_of(const ir::Value* output) {
  const ir::Node* node = output->producer;
  if (node == nullptr) return metrics::ScoreKind::kLogits;
  if (node->kind == ir::OpKind::kSoftmax) return metrics::ScoreKind::kProbabilities;
  if (node->kind == ir::OpKind::kLogSoftmax) return metrics::ScoreKind::kLogProbabilities;
  return metrics::ScoreKind::kLogits;
}

class PeerModel : public Model {
 public:
  // `classes`: -1 where that is left open.
  PeerModel(const ModelFile& file, const std::string& runtime, const std::string& flag, int64_t classes,
            const RunOptions& options)
      : signature_(file.signature),
        input_(tasks::image_input(signature_)),
        process_({.flag = flag,
                  .peer = runtime,
                  .model = file.path,
                  .threads = static_cast<int>(options.threads > 0 ? options.threads : available_cpus()),
                  .batch = 1,
                  .mode = "outputs",
                  .environment = {}}) {
    require_one_image(file, input_.batch);
    read_class_names(file, classes);
    open_outputs_ = has_open_outputs(file);
    if (open_outputs_)
      kinds_.resize(signature_.outputs.size(), metrics::ScoreKind::kLogits);
    else
      for (const ir::Value* output : file.network->outputs()) kinds_.push_back(score_kind_of(output));
    results_.resize(kinds_.size());
  }

  tasks::Outputs run(const data::Batch& batch) override {
    data::require_fit(input_, batch.channels, batch.height, batch.width);
    const int64_t images = std::max(input_.batch, batch.size);
    images_.resize(batch.images.size() / static_cast<size_t>(batch.size) * static_cast<size_t>(images));
    data::arrange(batch, input_, images_);
    std::string line;
    for (const int64_t side : input_.shape(images, batch.channels, batch.height, batch.width)) line += str(side, " ");
    process_.send(line, images_);
    const std::vector<std::vector<int64_t>> shapes = read_shapes(images);
    tasks::Outputs out;
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::vector<int64_t> shape = shapes[i];
      size_t elements = 1;
      for (const int64_t side : shape) elements *= static_cast<size_t>(side);
      results_[i].resize(elements);
      process_.read(results_[i]);
      if (!open_outputs_) shape[0] = batch.size;
      const size_t used = elements / static_cast<size_t>(images) * static_cast<size_t>(batch.size);
      out.push_back({signature_.outputs[i].name, shape, {results_[i].data(), used}, kinds_[i]});
    }
    return out;
  }
  const tasks::Signature& signature() const override { return signature_; }
  std::vector<int64_t> input_shape() const override { return {input_.channels, input_.height, input_.width}; }
  int64_t batch_size() const override { return input_.batch; }
  std::string description() const override { return process_.name() + " " + process_.version(); }

 private:
  // Each has a row for each image, or all are of one.
  std::vector<std::vector<int64_t>> read_shapes(int64_t images) {
    const nlohmann::json answer = nlohmann::json::parse(process_.read_line(), nullptr, false);
    if (answer.is_object()) fail(process_.name(), " refuses the images: ", answer.value("error", "no reason given"));
    if (!answer.is_array() || answer.size() != results_.size())
      fail(process_.name(), " stopped, or gave other outputs than the ", results_.size(), " of the file");
    auto shapes = answer.get<std::vector<std::vector<int64_t>>>();
    for (size_t i = 0; i < shapes.size(); ++i)
      if (!open_outputs_ && (shapes[i].empty() || shapes[i][0] != images))
        fail(process_.name(), ": output '", signature_.outputs[i].name, "' is ", ir::shape_string(shapes[i]), " for ",
             images, " images; it must have a row for each");
    return shapes;
  }

  tasks::Signature signature_;
  data::NetworkInput input_;
  PeerProcess process_;
  std::vector<metrics::ScoreKind> kinds_;
  std::vector<float> images_;
  std::vector<std::vector<float>> results_;
  bool open_outputs_ = false;
};

void require_onnx(const ModelFile& file, const std::string& flag, const std::string& runtime) {
  if (!file.network) fail_usage(file.path, ": ", flag, " ", runtime, " runs ONNX files (.onnx) alone");
}

}  // namespace

std::unique_ptr<Model> open_peer_model(const ModelFile& file, const std::string& runtime, const tasks::Task& task,
                                       const RunOptions& options) {
  require_onnx(file, "--runtime", runtime);
  task.check(file.signature, 0);
  return std::make_unique<PeerModel>(file, runtime, "--runtime", task.classes(file.signature), options);
}

std::unique_ptr<Model> open_peer_model(const ModelFile& file, const std::string& runtime, const std::string& flag,
                                       const RunOptions& options) {
  require_onnx(file, flag, runtime);
  return std::make_unique<PeerModel>(file, runtime, flag, -1, options);
}

}  // namespace octet::app
