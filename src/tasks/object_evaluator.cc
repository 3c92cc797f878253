#include "tasks/object_evaluator.h"

#include <optional>

#include "base/error.h"
#include "tasks/object_details.h"

namespace octet::tasks {
namespace {

class ObjectEvaluator : public Evaluator {
 public:
  ObjectEvaluator(Detect detect, const ObjectMetricOptions& options) : detect_(std::move(detect)), options_(options) {}

  void add(const Outputs& outputs, const data::Batch& batch) override {
    Detections found = detect_(outputs, batch);
    require_classes(batch, found.classes);
    if (!precision_) precision_.emplace(average_precision_options(options_, static_cast<int>(found.classes)));
    for (size_t i = 0; i < found.images.size(); ++i) {
      precision_->add(found.images[i], batch.truth[i].objects);
      images_.push_back({.image = batch.indices[i],
                         .found = std::move(found.images[i]),
                         .truth = batch.truth[i].objects,
                         .geometry = batch.geometry[i]});
    }
  }
  Metrics result() const override {
    return {{"map", precision_ ? 100.0 * precision_->result().mean_average_precision : 0.0}};
  }
  Details details() const override { return precision_ ? object_details(images_, *precision_) : Details{}; }

 private:
  Detect detect_;
  ObjectMetricOptions options_;
  std::optional<metrics::AveragePrecisionAccumulator> precision_;
  std::vector<MeasuredImage> images_;
};

}  // namespace

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
