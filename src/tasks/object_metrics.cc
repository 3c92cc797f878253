#include "tasks/object_metrics.h"

namespace octet::tasks {
namespace {

void describe_sides(schema::Section& s, metrics::BoxLimits& limits) {
  const auto side = [&](const char* name, double& value, const char* help) {
    s.field(name, value).range(0, 1e6).unit("pixels").help(help);
  };
  side("minimum_height", limits.minimum_height, "Least height.");
  side("maximum_height", limits.maximum_height, "Greatest height.");
  side("minimum_width", limits.minimum_width, "Least width.");
  side("maximum_width", limits.maximum_width, "Greatest width.");
  const auto in_order = [&s](const char* key, const double& least, const double& greatest) {
    s.rule(key, [&least, &greatest]() -> std::string {
      return least <= greatest ? "" : "is less than the minimum; nothing would be measured";
    });
  };
  in_order("maximum_height", limits.minimum_height, limits.maximum_height);
  in_order("maximum_width", limits.minimum_width, limits.maximum_width);
}

}  // namespace

void describe(schema::Section& s, ObjectMatchingOptions& options) {
  s.field("minimum_detection_ground_truth_overlap", options.minimum_detection_ground_truth_overlap)
      .range(0, 1)
      .known_elsewhere_as({"iou_threshold"})
      .help("IoU from which a detection is right.");
  s.section("evaluation_box_config", [&](schema::Section& inner) { describe_sides(inner, options.evaluation_box); })
      .help(
          "Sides of the objects that are measured, in the network's input. Objects of other sizes count neither way, "
          "and neither do detections of them, nor wrong ones of other sizes.");
}

void describe_object_metrics(schema::Section& section, ObjectMetricOptions& options) {
  section
      .section(
          "evaluation",
          [&](schema::Section& s) {
            describe_by_class(s, options.matching);
            s.choice(
                 "average_precision_mode", options.average_precision,
                 {{metrics::Interpolation::kEnvelope, "integrate"}, {metrics::Interpolation::kElevenPoint, "sample"}})
                .help("integrate: the area under the curve (VOC 2010 and later); sample: eleven points (VOC 2007).");
            s.field("tao_compatible", options.tao_compatible)
                .help(
                    "Measure as TAO does: coordinates are rounded to whole pixels, both borders of a box count, "
                    "what lies outside evaluation_box_config is as if it were not there, integrate leaves out "
                    "what lies before the first recall (a perfect detector of n objects has 1 - 1/n), and classes "
                    "without objects are 0 in the mean.");
          })
      .known_elsewhere_as({"evaluation_config"})
      .help("How detections are measured.");
}

metrics::AveragePrecisionOptions average_precision_options(const ObjectMetricOptions& options, int classes) {
  const bool tao = options.tao_compatible;
  metrics::AveragePrecisionOptions out{.classes = classes,
                                       .matching = {},
                                       .interpolation = options.average_precision,
                                       .borders = tao ? vision::Borders::kInclusive : vision::Borders::kExclusive,
                                       .whole_pixels = tao,
                                       .discard_outside = tao,
                                       .mean_of_all = tao};
  if (tao && options.average_precision == metrics::Interpolation::kEnvelope)
    out.interpolation = metrics::Interpolation::kTaoEnvelope;
  for (int label = 0; label < classes; ++label) {
    const ObjectMatchingOptions& own = options.matching.of(label);
    out.matching.push_back({.iou_threshold = static_cast<float>(own.minimum_detection_ground_truth_overlap),
                            .limits = own.evaluation_box});
  }
  return out;
}

}  // namespace octet::tasks
