#include "tasks/classification.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "passes/bypass_softmax.h"
#include "tasks/image_graph.h"

namespace octet::tasks {
namespace {

at::Tensor images_of(const data::Batch& batch) {
  return at::from_blob(const_cast<float*>(batch.images.data()),
                       {batch.size, batch.channels, batch.height, batch.width}, at::kFloat);
}

at::Tensor labels_of(const data::Batch& batch) {
  return at::from_blob(const_cast<int64_t*>(batch.labels.data()), {batch.size}, at::kLong);
}

void require_labels(const data::Batch& batch, int64_t classes) {
  for (size_t i = 0; i < batch.labels.size(); i++)
    if (batch.labels[i] < 0 || batch.labels[i] >= classes)
      fail("image ", batch.indices[i], " has the label ", batch.labels[i], ", the network has ", classes,
           " outputs; set model.num_classes to fit the data");
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, double smoothing) {
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Mean, -100, smoothing);
}

}  // namespace

void require_classifier(const ir::Graph& graph, int64_t classes) {
  if (graph.inputs().size() != 1 || graph.outputs().size() != 1)
    fail_usage("the network has ", graph.inputs().size(), " inputs and ", graph.outputs().size(),
               " outputs; a classifier has one of each");
  image_input(graph);
  const ir::TensorType& type = graph.outputs()[0]->type;
  if (!type.shape || type.shape->size() != 2)
    fail_usage("output '", graph.outputs()[0]->name, "' is ", ir::type_string(type),
               "; a classifier's is [batch, classes]");
  const int64_t actual = type.shape->at(1);
  if (classes > 0 && actual >= 0 && actual != classes)
    fail_usage("output '", graph.outputs()[0]->name, "' has ", actual, " classes, the spec says model.num_classes: ",
               classes);
}

ClassificationResult evaluate_classifier(train::Executor& executor, data::Loader& loader, int top_k,
                                         const std::function<void(int64_t)>& progress) {
  ClassificationResult result{metrics::TopKAccumulator(top_k), 0, {}, {}, 0};
  int64_t images = 0;
  loader.start_epoch(0);
  while (std::optional<data::Batch> batch = loader.next()) {
    const at::Tensor logits = executor.forward({images_of(*batch)}, train::Mode::kEval).at(0).to(at::kCPU).contiguous();
    result.classes = logits.size(1);
    require_labels(*batch, result.classes);
    const std::span<const float> scores(logits.const_data_ptr<float>(), static_cast<size_t>(logits.numel()));
    result.accuracy.add(scores, batch->labels);
    result.loss += cross_entropy(logits, labels_of(*batch), 0).item<double>() * static_cast<double>(batch->size);
    result.logits.insert(result.logits.end(), scores.begin(), scores.end());
    for (int64_t i = 0; i < batch->size; i++)
      result.predictions.push_back(
          metrics::top_1(scores.subspan(static_cast<size_t>(i * result.classes), static_cast<size_t>(result.classes))));
    images += batch->size;
    if (progress) progress(images);
  }
  if (images == 0) fail("there is no image to evaluate");
  result.loss /= static_cast<double>(images);
  return result;
}

ClassificationTask::ClassificationTask(const ClassificationOptions& options, data::Loader* validation)
    : options_(options), validation_(validation) {}

ir::Graph ClassificationTask::executed_graph(const ir::Graph& network) const {
  ir::Graph graph = image_graph(network);
  passes::bypass_softmax(graph);
  return graph;
}

at::Tensor ClassificationTask::loss(const std::vector<at::Tensor>& outputs, const data::Batch& batch) {
  require_labels(batch, outputs.at(0).size(1));
  return cross_entropy(outputs[0], labels_of(batch).to(outputs[0].device()), options_.label_smoothing);
}

std::map<std::string, double> ClassificationTask::evaluate(train::Executor& executor) {
  OCTET_CHECK(validation_ != nullptr);
  const ClassificationResult result = evaluate_classifier(executor, *validation_, options_.top_k);
  std::map<std::string, double> out;
  out["val_top1"] = 100.0 * result.accuracy.top_1();
  out["val_top" + std::to_string(options_.top_k)] = 100.0 * result.accuracy.top_k();
  out["val_loss"] = result.loss;
  return out;
}

}  // namespace octet::tasks
