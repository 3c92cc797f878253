#include "tasks/classification/task.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "metrics/top_k.h"
#include "passes/bypass_softmax.h"
#include "tasks/image_graph.h"

namespace octet::tasks::classification {
namespace {

class TopKEvaluator : public Evaluator {
 public:
  TopKEvaluator(int64_t top_k, std::vector<std::string> names)
      : accuracy_(static_cast<int>(top_k)), names_(std::move(names)) {}
  void add(const Outputs& outputs, const data::Batch& batch) override {
    const OutputView& scores = outputs.at(0);
    const auto classes = static_cast<size_t>(scores.shape.at(1));
    require_labels(batch, static_cast<int64_t>(classes));
    const std::vector<int64_t> labels = batch.labels();
    accuracy_.add(scores.values, labels);
    for (size_t i = 0; i < labels.size(); ++i) {
      const std::span<const float> of_image = scores.values.subspan(i * classes, classes);
      losses_.push_back({.image = batch.indices[i],
                         .loss = -metrics::log_probability(of_image, scores.scores, static_cast<int>(labels[i]))});
      const int best = metrics::top_1(of_image);
      if (best != labels[i])
        mistakes_.push_back({.image = batch.indices[i],
                             .label = labels[i],
                             .predicted = best,
                             .confidence = std::exp(metrics::log_probability(of_image, scores.scores, best))});
    }
    keep_most_confident();
  }
  void merge(const Evaluator& other) override {
    const auto& part = dynamic_cast<const TopKEvaluator&>(other);
    accuracy_.merge(part.accuracy_);
    losses_.insert(losses_.end(), part.losses_.begin(), part.losses_.end());
    mistakes_.insert(mistakes_.end(), part.mistakes_.begin(), part.mistakes_.end());
    keep_most_confident();
    // A sum depends on its order.
    std::stable_sort(losses_.begin(), losses_.end(), [](const auto& a, const auto& b) { return a.image < b.image; });
  }
  Metrics result() const override {
    double loss = 0;
    for (const ImageLoss& each : losses_) loss += each.loss;
    return {{"top1", 100.0 * accuracy_.top_1()},
            {str("top", accuracy_.k()), 100.0 * accuracy_.top_k()},
            {"loss", loss / static_cast<double>(std::max<int64_t>(accuracy_.images(), 1))}};
  }
  Details details() const override {
    Details out{.columns = {{.name = "top1", .title = "top-1", .unit = "%"},
                            {.name = "images", .title = "images", .unit = ""},
                            {.name = "precision", .title = "precision", .unit = "%"}}};
    const std::vector<double> recognized = accuracy_.per_class_accuracy();
    for (int64_t label = 0; label < accuracy_.classes(); ++label) {
      int64_t images = 0, taken_for = 0;
      for (int64_t other = 0; other < accuracy_.classes(); ++other) {
        images += accuracy_.confusion(label, other);
        taken_for += accuracy_.confusion(other, label);
      }
      out.classes.push_back(
          {100.0 * recognized[static_cast<size_t>(label)], static_cast<double>(images),
           100.0 * static_cast<double>(accuracy_.confusion(label, label)) / static_cast<double>(taken_for)});
    }
    out.confusion.assign(accuracy_.confusion_matrix().begin(), accuracy_.confusion_matrix().end());
    for (const Mistake& m : mistakes_) {
      char confidence[16];
      std::snprintf(confidence, sizeof confidence, "%.2f", m.confidence);
      out.worst.push_back({.image = m.image,
                           .text = str("taken for ", name(m.predicted), " (", confidence, "), is ", name(m.label)),
                           .marks = {}});
    }
    return out;
  }

 private:
  struct ImageLoss {
    int64_t image = 0;  // in the dataset
    double loss = 0;
  };
  struct Mistake {
    int64_t image = 0, label = 0, predicted = 0;
    double confidence = 0;  // probability of the class that it was taken for
  };
  static constexpr size_t kKept = 24;

  std::string name(int64_t label) const {
    const auto at = static_cast<size_t>(label);
    return at < names_.size() ? names_[at] : "class " + std::to_string(label);
  }
  // In an order that does not depend on that of the images.
  void keep_most_confident() {
    std::sort(mistakes_.begin(), mistakes_.end(), [](const Mistake& a, const Mistake& b) {
      return a.confidence != b.confidence ? a.confidence > b.confidence : a.image < b.image;
    });
    if (mistakes_.size() > kKept) mistakes_.resize(kKept);
  }

  metrics::TopKAccumulator accuracy_;
  std::vector<ImageLoss> losses_;
  std::vector<Mistake> mistakes_;  // the most confident
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<tasks::Task> make_task() {
  return std::make_unique<Task>(Options{});
}

void Task::describe(schema::Section& section) {
  section.field("label_smoothing", options_.label_smoothing)
      .range(0, 0.999)
      .help("Share of the target that is spread over all classes.");
  section.field("top_k", options_.top_k)
      .range(1, 1'000'000)
      .help("Accuracy of the k best classes is reported beside top-1.");
}

void Task::check(const Signature& network, int64_t classes) const {
  if (network.inputs.size() != 1 || network.outputs.size() != 1)
    fail_usage("the network has ", network.inputs.size(), " inputs and ", network.outputs.size(),
               " outputs; a classifier has one of each");
  image_input(network);
  const Port& output = network.outputs[0];
  if (!output.type.shape || output.type.shape->size() != 2)
    fail_usage("output '", output.name, "' is ", ir::type_string(output.type), "; a classifier's is [batch, classes]");
  const int64_t actual = this->classes(network);
  if (classes > 0 && actual >= 0 && actual != classes)
    fail_usage("output '", output.name, "' has ", actual, " classes, the spec says model.num_classes: ", classes);
}

ir::Graph Task::executed_graph(const ir::Graph& network) const {
  ir::Graph graph = image_graph(network);
  passes::bypass_softmax(graph);
  return graph;
}

std::vector<Prediction> Task::decode(const Outputs& outputs, const data::Batch& batch) const {
  const OutputView& scores = outputs.at(0);
  const auto classes = static_cast<size_t>(scores.shape.at(1));
  std::vector<Prediction> out;
  for (size_t i = 0; i < static_cast<size_t>(batch.size); ++i)
    out.push_back(ClassScores{metrics::probabilities(scores.values.subspan(i * classes, classes), scores.scores)});
  return out;
}

NvinferReading Task::nvinfer(const Signature& network) const {
  return {.type = NvinferReading::Type::kClassifier,
          .outputs = {network.outputs.at(0).name},
          .property = {{"classifier-threshold", "0"}},
          .classes = {},
          .remarks = {"classifier-threshold is that of the output as the file gives it: probabilities only where the "
                      "network ends with a Softmax"}};
}

std::unique_ptr<Evaluator> Task::evaluator() const {
  return std::make_unique<TopKEvaluator>(options_.top_k, names_);
}

std::vector<MetricInfo> Task::metrics() const {
  const std::string k = std::to_string(options_.top_k);
  std::vector<MetricInfo> out = {{.name = "top1", .title = "top-1", .unit = "%"}};
  if (options_.top_k > 1) out.push_back({.name = "top" + k, .title = "top-" + k, .unit = "%"});
  out.push_back({.name = "loss", .title = "loss", .unit = "", .larger_is_better = false});
  return out;
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
