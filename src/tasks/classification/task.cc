#include "tasks/classification/task.h"

#include "base/error.h"
#include "metrics/scores.h"
#include "metrics/top_k.h"
#include "passes/bypass_softmax.h"
#include "tasks/image_graph.h"

namespace octet::tasks::classification {
namespace {

class TopKEvaluator : public Evaluator {
 public:
  explicit TopKEvaluator(int top_k) : accuracy_(top_k) {}
  void add(const Outputs& outputs, const data::Batch& batch) override {
    const OutputView& logits = outputs.at(0);
    const auto classes = static_cast<size_t>(logits.shape.at(1));
    require_labels(batch, static_cast<int64_t>(classes));
    const std::vector<int64_t> labels = batch.labels();
    accuracy_.add(logits.values, labels);
    for (size_t i = 0; i < labels.size(); ++i)
      loss_ -= metrics::log_probability(logits.values.subspan(i * classes, classes), metrics::ScoreKind::kLogits,
                                        static_cast<int>(labels[i]));
  }
  Metrics result() const override {
    return {{"top1", 100.0 * accuracy_.top_1()},
            {str("top", accuracy_.k()), 100.0 * accuracy_.top_k()},
            {"loss", loss_ / static_cast<double>(std::max<int64_t>(accuracy_.images(), 1))}};
  }

 private:
  metrics::TopKAccumulator accuracy_;
  double loss_ = 0;
};

}  // namespace

void Task::check(const ir::Graph& network) const {
  if (network.inputs().size() != 1 || network.outputs().size() != 1)
    fail_usage("the network has ", network.inputs().size(), " inputs and ", network.outputs().size(),
               " outputs; a classifier has one of each");
  image_input(network);
  const ir::TensorType& type = network.outputs()[0]->type;
  if (!type.shape || type.shape->size() != 2)
    fail_usage("output '", network.outputs()[0]->name, "' is ", ir::type_string(type),
               "; a classifier's is [batch, classes]");
  const int64_t actual = type.shape->at(1);
  if (options_.classes > 0 && actual >= 0 && actual != options_.classes)
    fail_usage("output '", network.outputs()[0]->name, "' has ", actual,
               " classes, the spec says model.num_classes: ", options_.classes);
}

ir::Graph Task::executed_graph(const ir::Graph& network) const {
  ir::Graph graph = image_graph(network);
  passes::bypass_softmax(graph);
  return graph;
}

std::unique_ptr<Evaluator> Task::evaluator() const {
  return std::make_unique<TopKEvaluator>(options_.top_k);
}

void require_labels(const data::Batch& batch, int64_t classes) {
  for (size_t i = 0; i < batch.truth.size(); ++i)
    if (const int label = batch.truth[i].label; label < 0)
      fail("image ", batch.indices[i],
           " belongs to no class; classification learns from data sets with one class an image");
    else if (label >= classes)
      fail("image ", batch.indices[i], " has the label ", label, ", the network has ", classes,
           " outputs; set model.num_classes to fit the data");
}

}  // namespace octet::tasks::classification
