#include "tasks/object_evaluator.h"

#include <algorithm>

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
    set_classes(found.classes);
    for (size_t i = 0; i < found.images.size(); ++i)
      images_.push_back({.image = batch.indices[i],
                         .found = std::move(found.images[i]),
                         .truth = batch.truth[i].objects,
                         .geometry = batch.geometry[i]});
  }
  void merge(const Evaluator& other) override {
    const auto& part = dynamic_cast<const ObjectEvaluator&>(other);
    if (part.images_.empty()) return;
    set_classes(part.classes_);
    images_.insert(images_.end(), part.images_.begin(), part.images_.end());
    // Detections of equal score count in the order of the images.
    std::stable_sort(images_.begin(), images_.end(), [](const auto& a, const auto& b) { return a.image < b.image; });
  }
  Metrics result() const override {
    return {{"map", images_.empty() ? 0.0 : 100.0 * precision().result().mean_average_precision}};
  }
  Details details() const override { return images_.empty() ? Details{} : object_details(images_, precision()); }

 private:
  void set_classes(int64_t classes) {
    OCTET_CHECK(images_.empty() || classes == classes_, classes, " classes after ", classes_);
    classes_ = classes;
  }
  metrics::AveragePrecisionAccumulator precision() const {
    metrics::AveragePrecisionAccumulator out(average_precision_options(options_, static_cast<int>(classes_)));
    for (const MeasuredImage& each : images_) out.add(each.found, each.truth);
    return out;
  }

  Detect detect_;
  ObjectMetricOptions options_;
  int64_t classes_ = 0;
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
