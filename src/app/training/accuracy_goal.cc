#include "app/training/accuracy_goal.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>

#include "app/model.h"
#include "app/training/calibration.h"
#include "base/error.h"
#include "base/log.h"
#include "base/temporary_path.h"
#include "onnx/export.h"
#include "report/progress.h"
#include "tasks/image_graph.h"
#include "train/quantization_error.h"

namespace octet::app {
namespace {

// The order of layers needs few images, and keeps the activations of a batch.
constexpr int64_t kRankingImages = 32, kRankingBatch = 8;

std::string number(double value, const char* format = "%.2f") {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

class Judge {
 public:
  Judge(const spec::ExperimentSpec& spec, const AccuracyGoal& goal) : spec_(spec), goal_(goal) {}

  tasks::MetricInfo metric() const {
    if (is_labeled()) return spec_.task->metrics().at(0);
    return {.name = "agreement", .title = "agreement with float", .unit = "%"};
  }

  // The first network is the float one.
  Measured measure(const ir::Graph& graph) {
    const TemporaryPath folder(std::filesystem::temp_directory_path() / "octet-candidate",
                               TemporaryPath::Kind::kFolder);
    const std::filesystem::path file = folder.path() / "model.onnx";
    onnx::export_model(graph, file, {.quantize_weights = true});
    const std::unique_ptr<Model> model = open_engine_model(read_model_file(file.string()), *spec_.task, {});
    const std::unique_ptr<tasks::Evaluator> evaluator = spec_.task->evaluator();
    Measured out{.ms = 1e9, .bytes = static_cast<int64_t>(std::filesystem::file_size(file))};
    std::vector<tasks::Prediction> predictions;
    images_.loader->start_epoch(0);
    while (const std::optional<data::Batch> batch = images_.loader->next()) {
      const auto start = std::chrono::steady_clock::now();
      const tasks::Outputs outputs = model->run(*batch);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      out.ms = std::min(out.ms, took.count() / static_cast<double>(batch->size));
      if (is_labeled()) {
        evaluator->add(outputs, *batch);
      } else {
        for (tasks::Prediction& each : spec_.task->decode(outputs, *batch)) predictions.push_back(std::move(each));
      }
    }
    if (is_labeled()) {
      out.score = evaluator->result().at(metric().name);
    } else {
      if (expected_.empty()) expected_ = predictions;
      int64_t same = 0;
      for (size_t i = 0; i < predictions.size(); ++i) same += tasks::agree(predictions[i], expected_.at(i));
      out.score = 100.0 * static_cast<double>(same) / static_cast<double>(predictions.size());
    }
    return out;
  }

  void open(int64_t batch_size) {
    if (images_.loader) return;
    images_ = goal_.validation(batch_size);
    spec_.task->name_classes(images_.dataset->class_names());
    if (images_.loader->images_per_epoch() == 0) fail("there is no image to judge by");
  }

 private:
  bool is_labeled() const { return images_.dataset && images_.dataset->labeled(); }

  spec::ExperimentSpec spec_;
  const AccuracyGoal& goal_;
  DataStream images_;
  std::vector<tasks::Prediction> expected_;
};

std::vector<std::string> rank_layers(const ir::Graph& graph, const AccuracyGoal& goal) {
  const DataStream images = goal.calibration(kRankingBatch);
  report::Progress progress({.label = "ranking layers", .total = 100, .unit = "%"});
  const train::QuantizationErrors found =
      train::measure_quantization_errors(tasks::image_graph(graph), *images.loader, kRankingImages,
                                         [&](int64_t done, int64_t of) { progress.update(100 * done / of); });
  progress.finish();
  std::vector<std::string> layers;
  std::set<std::string> seen;
  for (const train::QuantizerError& each : found.quantizers)
    for (const std::string& reader : each.readers)
      if (graph.find_node(reader) && seen.insert(reader).second) layers.push_back(reader);
  return layers;
}

}  // namespace

AccuracySearch reach_accuracy(const ir::Graph& network, const spec::ExperimentSpec& spec,
                              const quant::QuantOptions& options, const AccuracyGoal& goal) {
  spec.task->check(tasks::signature_of(network), 0);
  Judge judge(spec, goal);
  judge.open(std::max<int64_t>(1, tasks::images_at_a_time(network)));  // as the engine takes them, which is timed, too
  const tasks::MetricInfo metric = judge.metric();
  AccuracyTools tools;
  tools.quantize = [&](const quant::QuantOptions& wanted) {
    ir::Graph graph = network.clone();
    const DataStream images = goal.calibration(0);
    calibrate(graph, *images.loader, wanted, {});
    return graph;
  };
  tools.quantize_as = [&](const quant::QuantOptions& wanted, const ir::Graph& rounded) {
    ir::Graph graph = network.clone();
    const DataStream images = goal.calibration(0);
    calibrate_as(graph, *images.loader, wanted, rounded);
    return graph;
  };
  tools.measure = [&](const ir::Graph& graph) { return judge.measure(graph); };
  tools.rank = [&](const ir::Graph& graph) { return rank_layers(graph, goal); };
  tools.progress = [&](const AccuracyStep& step) {
    log_info(step.what, ": ", metric.title, " ", number(step.score), " ", metric.unit, ", ", number(step.ms, "%.3f"),
             " ms an image", step.kept ? "" : "; not kept");
  };
  return search_accuracy(network, options, goal.bounds, metric.larger_is_better, tools);
}

}  // namespace octet::app
