// The Classifier that runs an ONNX file with LibTorch.
#include "cli/classifier.h"
#include "cli/network_file.h"
#include "tasks/classification.h"
#include "tasks/graph_runner.h"

namespace octet::cli {
namespace {

ir::Graph load(const std::string& path) {
  ir::Graph graph = load_network(path);
  tasks::require_classifier(graph, 0);
  return graph;
}

class GraphClassifier : public Classifier {
 public:
  explicit GraphClassifier(const std::string& path) : runner_(load(path)) {
    read_class_names(runner_.graph().metadata, path);
  }
  std::vector<float> scores(const data::Batch& batch) override {
    return runner_.run({{{batch.size, batch.channels, batch.height, batch.width},
                         {batch.images.data(), batch.images.size()}}})[0].values;
  }
  int64_t classes() const override { return runner_.graph().outputs()[0]->type.shape->at(1); }
  std::string description() const override { return "graph in float32"; }
  std::vector<int64_t> input_shape() const override {
    const ir::TensorType& type = runner_.graph().inputs()[0]->type;
    if (!type.shape || type.shape->size() != 4) return {-1, -1, -1};
    return {type.shape->begin() + 1, type.shape->end()};
  }

 private:
  tasks::GraphRunner runner_;
};

}  // namespace

std::unique_ptr<Classifier> open_graph_classifier(const std::string& path, const ClassifierOptions&) {
  return std::make_unique<GraphClassifier>(path);
}

}  // namespace octet::cli
