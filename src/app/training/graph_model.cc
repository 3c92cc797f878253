#include "app/training/graph_model.h"

#include <algorithm>

#include "tasks/image_graph.h"
#include "train/graph_runner.h"

namespace octet::app {
namespace {

class GraphModel : public Model {
 public:
  GraphModel(const ModelFile& file, const tasks::Task& task)
      : signature_(file.signature),
        runner_(task.executed_graph(*file.network), "cpu", train::GraphRunner::Arithmetic::kInteger),
        input_(tasks::image_input(runner_.graph())) {
    read_class_names(file, task.classes(signature_));
  }
  tasks::Outputs run(const data::Batch& batch) override {
    data::require_fit(input_, batch.channels, batch.height, batch.width);
    const int64_t images = std::max(input_.batch, batch.size);
    images_.resize(batch.images.size() / static_cast<size_t>(batch.size) * static_cast<size_t>(images));
    data::arrange(batch, input_, images_);
    results_ = runner_.run({{input_.shape(images, batch.channels, batch.height, batch.width), images_}});
    tasks::Outputs out;
    for (size_t i = 0; i < results_.size(); ++i) {
      std::vector<int64_t> shape = results_[i].shape;
      const auto used = results_[i].values.size() / static_cast<size_t>(images) * static_cast<size_t>(batch.size);
      shape.at(0) = batch.size;
      out.push_back({runner_.graph().outputs()[i]->name, shape, {results_[i].values.data(), used}});
    }
    return out;
  }
  const tasks::Signature& signature() const override { return signature_; }
  std::vector<int64_t> input_shape() const override { return {input_.channels, input_.height, input_.width}; }
  int64_t batch_size() const override { return input_.batch; }
  std::string description() const override { return "graph in float32"; }

 private:
  tasks::Signature signature_;
  train::GraphRunner runner_;
  data::NetworkInput input_;
  std::vector<float> images_;
  std::vector<train::FloatArray> results_;
};

}  // namespace

std::unique_ptr<Model> open_graph_model(const ModelFile& file, const tasks::Task& task) {
  task.check(file.signature, 0);
  return std::make_unique<GraphModel>(file, task);
}

}  // namespace octet::app
