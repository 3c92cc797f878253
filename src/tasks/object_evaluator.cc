#include "tasks/object_evaluator.h"

#include <optional>

#include "base/error.h"

namespace octet::tasks {
namespace {

class ObjectEvaluator : public Evaluator {
 public:
  ObjectEvaluator(Detect detect, const ObjectMetricOptions& options) : detect_(std::move(detect)), options_(options) {}

  void add(const Outputs& outputs, const data::Batch& batch) override {
    const Detections found = detect_(outputs, batch);
    require_classes(batch, found.classes);
    if (!precision_)
      precision_.emplace(metrics::AveragePrecisionOptions{.classes = static_cast<int>(found.classes),
                                                          .iou_threshold = static_cast<float>(options_.iou_threshold),
                                                          .interpolation = options_.average_precision});
    for (size_t i = 0; i < found.images.size(); ++i) precision_->add(found.images[i], batch.truth[i].objects);
  }
  Metrics result() const override {
    return {{"map", precision_ ? 100.0 * precision_->result().mean_average_precision : 0.0}};
  }
  std::vector<double> classes() const override {
    std::vector<double> out;
    if (precision_)
      for (const metrics::ClassPrecision& each : precision_->result().classes)
        out.push_back(100.0 * each.average_precision);
    return out;
  }

 private:
  Detect detect_;
  ObjectMetricOptions options_;
  std::optional<metrics::AveragePrecisionAccumulator> precision_;
};

}  // namespace

void describe_object_metrics(schema::Section& section, ObjectMetricOptions& options) {
  section.field("iou_threshold", options.iou_threshold)
      .range(0, 1)
      .known_elsewhere_as({"minimum_detection_ground_truth_overlap"})
      .help("Overlap from which a detection is right.");
  section
      .choice("average_precision_mode", options.average_precision,
              {{metrics::Interpolation::kEnvelope, "integrate"}, {metrics::Interpolation::kElevenPoint, "sample"}})
      .help("integrate: the area under the curve (VOC 2010 and later); sample: eleven points (VOC 2007).");
}

std::unique_ptr<Evaluator> object_evaluator(Detect detect, const ObjectMetricOptions& options) {
  return std::make_unique<ObjectEvaluator>(std::move(detect), options);
}

std::vector<MetricInfo> object_metrics() {
  return {{.name = "map", .title = "mAP", .unit = "%"}};
}

void require_classes(const data::Batch& batch, int64_t classes) {
  for (size_t i = 0; i < batch.truth.size(); ++i)
    for (const vision::Object& object : batch.truth[i].objects)
      if (object.label < 0 || object.label >= classes)
        fail("image ", batch.indices[i], " has an object of class ", object.label, ", the network has ", classes,
             " classes");
}

}  // namespace octet::tasks
