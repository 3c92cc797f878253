// From the outputs of a detector to what it finds.
#pragma once
#include <string>
#include <vector>

#include "tasks/detector/options.h"
#include "tasks/signature.h"
#include "vision/box_coder.h"

namespace octet::tasks::detector {

struct OutputShape {
  std::string name;
  std::vector<int64_t> shape;  // negative: open
};
std::vector<OutputShape> shapes_of(const Signature& network);
std::vector<OutputShape> shapes_of(const Outputs& outputs);

// A network as its options read it.
class Decoder {
 public:
  // `height`, `width`: of the input in pixels; negative: open. UserError (exit 2), naming output, expected and actual
  // shape, where the options do not fit the outputs, as far as their shapes are fixed.
  Decoder(const Options& options, std::vector<OutputShape> outputs, int64_t height, int64_t width);

  int64_t classes() const { return classes_; }  // -1 where the shapes leave it open

  // What the anchors of image `index` propose, clipped to the image. A box that is not finite or has no area proposes
  // nothing, and neither does a score that is NaN. Requires that no shape is open, as for detect().
  Objects propose(const Outputs& outputs, int64_t index) const;
  // What is left of that after suppression, the best score first.
  Objects detect(const Outputs& outputs, int64_t index) const;

 private:
  // An output of boxes, that of their scores, and the anchors that they tell of.
  struct Group {
    size_t boxes = 0, scores = 0, objectness = 0, labels = 0;  // indices of outputs
    int64_t shapes = 1;                                        // anchors of a cell, for Layout::kGrid
    std::vector<vision::Box> anchors;       // a whole cell where a level has no shapes; empty: the code needs none
    std::vector<vision::CellSize> strides;  // of each anchor
  };
  struct Names {
    std::string boxes, scores, objectness, labels;
  };
  void add_group(const Names& outputs, std::span<const LevelOptions> levels);
  void add_anchors(Group& group, const LevelOptions& level) const;
  size_t find(const std::string& output) const;
  void require_values(size_t output, Layout layout, const Group& group, int64_t least, const char* what) const;
  int64_t values_of(size_t output, Layout layout, const Group& group) const;  // of an anchor; -1: open
  vision::Box box(const Group& group, const vision::BoxCode& code, size_t anchor) const;
  int64_t class_of(const Group& group, float label) const;  // -1: of none
  bool has_labels() const { return options_.labels.value >= 0; }

  Options options_;
  std::vector<OutputShape> outputs_;
  int64_t height_, width_;
  std::vector<Group> groups_;
  int64_t classes_ = -1;
};

}  // namespace octet::tasks::detector
