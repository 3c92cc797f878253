// How the outputs of a detector from elsewhere are to be read. Whoever exported it knows; the file does not say it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schema/schema.h"
#include "tasks/object_evaluator.h"
#include "vision/anchors.h"

namespace octet::tasks::detector {

// Where the values of an anchor (or of a place that has none) are in an output.
enum class Layout {
  kRows,     // [batch, anchors, values]
  kColumns,  // [batch, values, anchors]: YOLOv8 and later
  kGrid,     // [batch, shapes * values, rows, columns]: a head's convolution as it is, shape by shape
};

// What the four numbers of a box are (vision/box_coder.h).
enum class BoxCode {
  kCorners,       // x0, y0, x1, y1
  kCornersYx,     // y0, x0, y1, x1: TensorFlow
  kCenter,        // center x, center y, width, height
  kAnchorCenter,  // relative to an anchor: R-CNN, SSD, RetinaNet
  kYolo,          // YOLOv3, YOLOv4, before the sigmoid
  kDistances,     // from the center of a cell to left, top, right, bottom: FCOS
};

// In which corners, kCenter and kDistances count.
enum class Unit { kPixels, kImage, kStride };

enum class Activation { kNone, kSigmoid, kSoftmax };
enum class Background { kNone, kFirst, kLast };

struct BoxOptions {
  std::vector<std::string> outputs;  // one for all levels, or one a level; empty: the network's only output
  Layout layout = Layout::kRows;
  int64_t first = 0;  // of an anchor's values the first of the box
  BoxCode code = BoxCode::kCorners;
  Unit unit = Unit::kPixels;
  std::vector<double> variances = {1, 1, 1, 1};  // kAnchorCenter, kDistances: the numbers are multiplied by these
  double xy_scale = 1;                           // kYolo: YoloCoder
  bool per_class = false;                        // a box for each class, one behind the other
};

struct ScoreOptions {
  std::vector<std::string> outputs;  // as those of boxes, in the same order; may be the same outputs
  Layout layout = Layout::kRows;
  int64_t first = 0;    // of an anchor's values the first of the scores, the background's included
  int64_t classes = 0;  // without the background; 0: all values from `first` on
  Activation activation = Activation::kNone;
  Background background = Background::kNone;    // a further score, for there being no object
  int64_t objectness = -1;                      // value that multiplies the scores, after the activation; -1: none
  std::vector<std::string> objectness_outputs;  // that hold it, in the order of `outputs`; empty: those do themselves
  bool geometric_mean = false;                  // the score is the root of that product: FCOS
  bool best_only = false;                       // an anchor proposes its best class alone
};

// Networks that end with their own suppression: a row is a thing they found, which has one score and says its class.
// Without batches outputs are then [things, 4] of boxes and [things] of scores and labels, as torchvision's are.
struct LabelOptions {
  std::vector<std::string> outputs;  // as those of the scores; empty: those themselves
  int64_t value = -1;                // of a thing's values its label; -1: there are none, but a score for each class
  int64_t first = 0;                 // label of the first class; things with a lower one are none
};

// One feature map. It has a stride, from which its cells follow (the input divided by it, rounded up); or a number of
// cells, from which the strides follow (the input divided by it: SSD's default boxes); or both.
struct LevelOptions {
  int64_t stride = 0;          // pixels; 0: of each direction as the cells say
  std::vector<int64_t> cells;  // rows, columns; empty: as the stride says
  std::vector<double> shapes;  // width, height, width, height ... of its anchors, in pixels; empty: one point a cell
  double offset = 0.5;         // of the first center from the border, in cells
};

struct NmsSettings {
  double score_threshold = 0.05;
  double iou_threshold = 0.5;
  int64_t candidates = 1000;  // of each class, the best that take part; 0: all
  int64_t most = 100;         // that are kept of an image; 0: all
  bool across_classes = false;
};

struct Options {
  BoxOptions boxes;
  ScoreOptions scores;
  LabelOptions labels;
  std::vector<LevelOptions> levels;
  NmsSettings nms;
  ObjectMetricOptions metrics;
};

void describe(schema::Section& section, Options& options);
// Without how objects are measured.
void describe_decoder(schema::Section& section, Options& options);

}  // namespace octet::tasks::detector
