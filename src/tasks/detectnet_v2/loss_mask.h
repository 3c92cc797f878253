// Cells whose loss counts more or less than that of others: those under chosen objects (TAO's loss_mask_label_filter).
// What nobody looked at, and objects too small to be learned, are so kept from counting as background.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/annotation.h"
#include "schema/schema.h"
#include "tasks/detectnet_v2/rasterizer.h"

namespace octet::tasks::detectnet_v2 {

// Objects whose box has a width and a height in these ranges, borders included; pixels of the network's input.
struct BoxDimensions {
  double min_width = 0, min_height = 0, max_width = 1e9, max_height = 1e9;
};
void describe(schema::Section& s, BoxDimensions& box);

// Objects whose box has area in common with this one; pixels of the network's input.
struct CropBox {
  double crop_left = 0, crop_top = 0, crop_right = 0, crop_bottom = 0;
};
void describe(schema::Section& s, CropBox& crop);

enum class MaskObjective { kCoverage, kBbox };
std::span<const schema::EnumName<MaskObjective>> enum_names(MaskObjective);

// Chooses objects by exactly one of three criteria. By box it chooses among the objects of the class whose cells are
// masked, by source class among all.
struct LabelFilter {
  std::optional<BoxDimensions> bbox_dimensions;
  std::optional<CropBox> bbox_crop;
  std::vector<std::string> source_classes;  // names in the files, also such as no class is learned from
  std::vector<std::string> target_classes;  // whose cells are masked; empty: of all
  std::vector<MaskObjective> objectives;    // of which the cells are masked; empty: of both
};
void describe(schema::Section& s, LabelFilter& filter);

struct LossMaskOptions {
  std::vector<LabelFilter> filters;
  double mask_multiplier = 0;          // of the loss in a cell whose center lies in a chosen object's box
  bool preserve_ground_truth = false;  // cells that are covered by an object of the class keep their loss
};
void describe(schema::Section& s, LossMaskOptions& mask);

// For the classes of a network: LabelFilter::target_classes as labels.
class LossMask {
 public:
  LossMask() = default;  // masks nothing
  // UserError (exit 2) for a target class that there is not.
  LossMask(LossMaskOptions options, const std::vector<std::string>& class_names);

  // Factors of the loss of the objective in each cell, Grid::coverage_size(). `truth`: of the objects, as rasterized.
  std::vector<float> factors(MaskObjective objective, const data::Annotation& annotation, const GridTruth& truth,
                             const Grid& grid);
  // A sentence for each filter that has chosen no object so far, the first time this is asked.
  std::vector<std::string> idle_filters();

 private:
  bool concerns(size_t filter, MaskObjective objective, int label) const;

  LossMaskOptions options_;
  std::vector<std::vector<int>> labels_;  // of each filter's target classes; empty: of all
  std::vector<bool> has_chosen_;
  bool asked_ = false;
};

}  // namespace octet::tasks::detectnet_v2
