// The Classifier that runs an ONNX file with LibTorch.
#include <algorithm>

#include "app/network_file.h"
#include "cli/classifier.h"
#include "tasks/classification/task.h"
#include "tasks/image_graph.h"
#include "train/graph_runner.h"

namespace octet::cli {
namespace {

ir::Graph load(const std::string& path) {
  ir::Graph graph = app::load_network(path);
  const tasks::classification::Task task({});
  task.check(graph);
  return task.executed_graph(graph);
}

class GraphClassifier : public Classifier {
 public:
  explicit GraphClassifier(const std::string& path) : runner_(load(path)), input_(tasks::image_input(runner_.graph())) {
    read_class_names(runner_.graph().metadata, path);
  }
  std::vector<float> scores(const data::Batch& batch) override {
    data::require_fit(input_, batch.channels, batch.height, batch.width);
    const int64_t images = std::max(input_.batch, batch.size);
    images_.resize(batch.images.size() / static_cast<size_t>(batch.size) * static_cast<size_t>(images));
    data::arrange(batch, input_, images_);
    std::vector<float> scores =
        runner_.run({{input_.shape(images, batch.channels, batch.height, batch.width), images_}})[0].values;
    scores.resize(scores.size() / static_cast<size_t>(images) * static_cast<size_t>(batch.size));
    return scores;
  }
  int64_t classes() const override { return runner_.graph().outputs()[0]->type.shape->at(1); }
  metrics::ScoreKind score_kind() const override { return metrics::ScoreKind::kLogits; }
  int64_t batch_size() const override { return input_.batch; }
  std::string description() const override { return "graph in float32"; }
  std::vector<int64_t> input_shape() const override { return {input_.channels, input_.height, input_.width}; }

 private:
  train::GraphRunner runner_;
  data::NetworkInput input_;
  std::vector<float> images_;
};

}  // namespace

std::unique_ptr<Classifier> open_graph_classifier(const std::string& path, const ClassifierOptions&) {
  return std::make_unique<GraphClassifier>(path);
}

}  // namespace octet::cli
