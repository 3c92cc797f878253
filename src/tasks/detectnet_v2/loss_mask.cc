#include "tasks/detectnet_v2/loss_mask.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"

namespace octet::tasks::detectnet_v2 {

OCTET_ENUM_NAMES(MaskObjective, {MaskObjective::kCoverage, "coverage"}, {MaskObjective::kBbox, "bbox"})

namespace {

bool fits(const BoxDimensions& range, const vision::Box& box) {
  return box.width() >= range.min_width && box.width() <= range.max_width && box.height() >= range.min_height &&
         box.height() <= range.max_height;
}

bool touches(const CropBox& crop, const vision::Box& box) {
  return box.x0 < crop.crop_right && box.x1 > crop.crop_left && box.y0 < crop.crop_bottom && box.y1 > crop.crop_top;
}

// Whether the filter chooses the object, where the cells of class `label` are masked.
bool chooses(const LabelFilter& filter, const vision::Object& object, int label) {
  if (!filter.source_classes.empty())
    return object.source_class && std::find(filter.source_classes.begin(), filter.source_classes.end(),
                                            *object.source_class) != filter.source_classes.end();
  if (object.label != label) return false;
  return filter.bbox_dimensions ? fits(*filter.bbox_dimensions, object.box) : touches(*filter.bbox_crop, object.box);
}

}  // namespace

void describe(schema::Section& s, BoxDimensions& box) {
  s.field("min_width", box.min_width).range(0, 1e9).unit("pixels").help("Least width.");
  s.field("min_height", box.min_height).range(0, 1e9).unit("pixels").help("Least height.");
  s.field("max_width", box.max_width).range(0, 1e9).unit("pixels").help("Greatest width.");
  s.field("max_height", box.max_height).range(0, 1e9).unit("pixels").help("Greatest height.");
}

void describe(schema::Section& s, CropBox& crop) {
  s.field("crop_left", crop.crop_left).range(-1e9, 1e9).unit("pixels").help("Left border.");
  s.field("crop_top", crop.crop_top).range(-1e9, 1e9).unit("pixels").help("Upper border.");
  s.field("crop_right", crop.crop_right).range(-1e9, 1e9).unit("pixels").help("Right border.");
  s.field("crop_bottom", crop.crop_bottom).range(-1e9, 1e9).unit("pixels").help("Lower border.");
  s.rule("crop_right", [&crop] { return crop.crop_right > crop.crop_left ? "" : "must be more than crop_left"; });
  s.rule("crop_bottom", [&crop] { return crop.crop_bottom > crop.crop_top ? "" : "must be more than crop_top"; });
}

void describe(schema::Section& s, LabelFilter& filter) {
  s.section("bbox_dimensions", filter.bbox_dimensions)
      .known_elsewhere_as({"bbox_dimensions_label_filter"})
      .help("Objects of the class with a box of this size.");
  s.section("bbox_crop", filter.bbox_crop)
      .known_elsewhere_as({"bbox_crop_label_filter"})
      .help("Objects of the class with a box that overlaps this one.");
  s.field("source_classes", filter.source_classes)
      .length(0, 1000)
      .known_elsewhere_as({"source_class_names", "source_class_label_filter"})
      .help("Objects that the files call so, whether a class is learned from them or not, as [DontCare].");
  s.field("target_classes", filter.target_classes)
      .length(0, 1000)
      .known_elsewhere_as({"target_class_names"})
      .help("Classes whose cells are masked; none: all.");
  s.field("objectives", filter.objectives)
      .known_elsewhere_as({"objective_names"})
      .help("Parts of the loss that are masked; none: both.");
  s.rule("source_classes", [&filter]() -> std::string {
    const int given =
        filter.bbox_dimensions.has_value() + filter.bbox_crop.has_value() + !filter.source_classes.empty();
    return given == 1 ? "" : "belongs to a filter with exactly one of bbox_dimensions, bbox_crop and source_classes";
  });
}

void describe(schema::Section& s, LossMaskOptions& mask) {
  s.list("filters", mask.filters)
      .length(0, 1000)
      .known_elsewhere_as({"objective_label_filter_configs"})
      .help("Which objects are masked: those that one of these chooses.");
  s.field("mask_multiplier", mask.mask_multiplier)
      .range(0, 1e6)
      .help("Factor of the loss in cells under them. 0: it does not count; 1: nothing is masked.");
  s.field("preserve_ground_truth", mask.preserve_ground_truth)
      .help("Cells that an object of the class covers keep their loss.");
}

LossMask::LossMask(LossMaskOptions options, const std::vector<std::string>& class_names)
    : options_(std::move(options)) {
  for (const LabelFilter& filter : options_.filters) {
    std::vector<int>& labels = labels_.emplace_back();
    for (const std::string& name : filter.target_classes) {
      const auto found = std::find(class_names.begin(), class_names.end(), name);
      if (found == class_names.end())
        fail_usage("detectnet_v2.loss_mask_label_filter names the class '", name, "', which is none of the classes",
                   did_you_mean(name, class_names));
      labels.push_back(static_cast<int>(found - class_names.begin()));
    }
  }
  has_chosen_.assign(options_.filters.size(), false);
}

bool LossMask::concerns(size_t filter, MaskObjective objective, int label) const {
  const std::vector<MaskObjective>& objectives = options_.filters[filter].objectives;
  const std::vector<int>& labels = labels_[filter];
  return (objectives.empty() || std::find(objectives.begin(), objectives.end(), objective) != objectives.end()) &&
         (labels.empty() || std::find(labels.begin(), labels.end(), label) != labels.end());
}

std::vector<float> LossMask::factors(MaskObjective objective, const data::Annotation& annotation,
                                     const GridTruth& truth, const Grid& grid) {
  std::vector<float> out(static_cast<size_t>(grid.coverage_size()), 1);
  const auto stride = static_cast<float>(grid.stride);
  // Cells whose centers lie between two borders.
  const auto first = [&](float border) { return std::max(0, static_cast<int>(std::ceil(border / stride - 0.5f))); };
  const auto mask = [&](const vision::Box& box, int label) {
    for (int row = first(box.y0); row < std::min(grid.rows, first(box.y1)); ++row)
      for (int column = first(box.x0); column < std::min(grid.columns, first(box.x1)); ++column) {
        const auto cell = static_cast<size_t>(grid.at(label, row, column));
        if (options_.preserve_ground_truth && truth.coverage[cell] > 0) continue;
        out[cell] = static_cast<float>(options_.mask_multiplier);
      }
  };
  for (size_t i = 0; i < options_.filters.size(); ++i)
    for (int label = 0; label < grid.classes; ++label)
      if (concerns(i, objective, label))
        for (const auto* objects : {&annotation.objects, &annotation.others})
          for (const vision::Object& object : *objects)
            if (chooses(options_.filters[i], object, label)) {
              has_chosen_[i] = true;
              mask(object.box, label);
            }
  return out;
}

std::vector<std::string> LossMask::idle_filters() {
  std::vector<std::string> out;
  for (size_t i = 0; i < has_chosen_.size() && !asked_; ++i)
    if (!has_chosen_[i])
      out.push_back(str("detectnet_v2.loss_mask_label_filter.filters[", i, "] chose no object in the first epoch",
                        options_.filters[i].source_classes.empty()
                            ? ""
                            : "; names of source classes match exactly, letter case included"));
  asked_ = true;
  return out;
}

}  // namespace octet::tasks::detectnet_v2
