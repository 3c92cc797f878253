#include "tasks/detector/options.h"

namespace octet::tasks::detector {

OCTET_ENUM_NAMES(Layout, {Layout::kRows, "rows"}, {Layout::kColumns, "columns"}, {Layout::kGrid, "grid"})
OCTET_ENUM_NAMES(BoxCode, {BoxCode::kCorners, "corners"}, {BoxCode::kCornersYx, "corners_yx"},
                 {BoxCode::kCenter, "center"}, {BoxCode::kAnchorCenter, "anchor_center"}, {BoxCode::kYolo, "yolo"},
                 {BoxCode::kDistances, "distances"})
OCTET_ENUM_NAMES(Unit, {Unit::kPixels, "pixels"}, {Unit::kImage, "image"}, {Unit::kStride, "stride"})
OCTET_ENUM_NAMES(Activation, {Activation::kNone, "none"}, {Activation::kSigmoid, "sigmoid"},
                 {Activation::kSoftmax, "softmax"})
OCTET_ENUM_NAMES(Background, {Background::kNone, "none"}, {Background::kFirst, "first"}, {Background::kLast, "last"})

void describe(schema::Section& s, LevelOptions& level) {
  s.field("stride", level.stride)
      .range(0, 65'536)
      .unit("pixels")
      .help("Of the input, from cell to cell; 0: the input divided by the cells, as SSD's default boxes have it.");
  s.field("cells", level.cells)
      .range(1, 65'536)
      .known_elsewhere_as({"grid", "feature_map"})
      .help("Rows and columns of the feature map; none: the input divided by the stride, rounded up.");
  s.field("shapes", level.shapes)
      .range(0, 65'536)
      .unit("pixels")
      .known_elsewhere_as({"anchors"})
      .help("Width, height, width, height ... of the anchors of a cell; empty: none, one place a cell.");
  s.field("offset", level.offset).range(0, 1).unit("cells").help("Of the first center from the border.");
  s.rule("cells", [&level]() -> std::string {
    if (level.cells.empty()) return level.stride > 0 ? "" : "are missing, and so is the stride; give one of them";
    return level.cells.size() == 2 ? "" : str("are ", level.cells.size(), " numbers; give rows and columns");
  });
  s.rule("shapes", [&level]() -> std::string {
    return level.shapes.size() % 2 == 0 ? "" : "has an odd number of values; give width, height, width, height ...";
  });
}

namespace {

void describe_boxes(schema::Section& s, BoxOptions& boxes) {
  s.field("outputs", boxes.outputs)
      .help("Names of the outputs that hold the boxes: one for all, or one for each level. Empty: the only output.");
  s.field("layout", boxes.layout)
      .known_elsewhere_as({"format"})
      .help(
          "rows: [batch, anchors, values]; columns: [batch, values, anchors]; grid: [batch, shapes * values, rows, "
          "columns], the head's convolution as it is.");
  s.field("first", boxes.first).range(0, 1e6).help("Of an anchor's values, the first of its box.");
  s.field("code", boxes.code)
      .known_elsewhere_as({"box_coder", "codec"})
      .help(
          "corners: x0, y0, x1, y1; corners_yx: y0, x0, y1, x1 (TensorFlow); center: x, y, width, height; "
          "anchor_center: offsets from an anchor (SSD, RetinaNet, R-CNN); yolo: YOLOv3 and v4 before the sigmoid; "
          "distances: from the center of a cell to left, top, right, "
          "bottom (FCOS).");
  s.field("unit", boxes.unit)
      .help(
          "corners, corners_yx, center, distances: pixels of the input, shares of it (image), or strides of the "
          "level.");
  s.field("variances", boxes.variances)
      .above(0, 1e6)
      .length(4, 4)
      .help("anchor_center and distances: the four numbers are multiplied by these; SSD: 0.1, 0.1, 0.2, 0.2.");
  s.field("xy_scale", boxes.xy_scale)
      .range(1, 4)
      .known_elsewhere_as({"scale_x_y"})
      .help("yolo: how far the sigmoid is drawn out (YOLOv4: 1.05 to 1.2).");
  s.field("per_class", boxes.per_class).help("An anchor has a box for each class, one behind the other.");
}

void describe_scores(schema::Section& s, ScoreOptions& scores) {
  s.field("outputs", scores.outputs)
      .help("Names of the outputs that hold the scores, in the order of those of the boxes; may be the same ones.");
  s.field("layout", scores.layout).help("As that of the boxes.");
  s.field("first", scores.first)
      .range(0, 1e6)
      .help("Of an anchor's values, the first of its scores, the background's included.");
  s.field("classes", scores.classes)
      .range(0, 1e6)
      .help(
          "How many classes, without the background; 0: all values from `first` on; with labels, as many as have "
          "names.");
  s.field("activation", scores.activation)
      .help("What makes probabilities of the values; none: the network did that itself.");
  s.field("background", scores.background).help("Whether one more score says that there is nothing, and where it is.");
  s.field("objectness", scores.objectness)
      .range(-1, 1e6)
      .help("Of an anchor's values, the one that multiplies its scores (YOLO; FCOS's centerness); -1: none.");
  s.field("objectness_outputs", scores.objectness_outputs)
      .known_elsewhere_as({"centerness"})
      .help("Names of the outputs that hold it where those of the scores do not, in their order.");
  s.field("geometric_mean", scores.geometric_mean).help("The score is the square root of that product, as FCOS's.");
  s.field("best_only", scores.best_only).help("An anchor proposes its best class alone, not every one that is sure.");
}

void describe_labels(schema::Section& s, LabelOptions& labels) {
  s.field("outputs", labels.outputs)
      .help(
          "Names of the outputs that hold the labels, in the order of those of the scores; none: those of the scores.");
  s.field("value", labels.value)
      .range(-1, 1e6)
      .help(
          "Of a thing's values, its label; -1: the network suppresses nothing, and a place has a score for each "
          "class.");
  s.field("first", labels.first)
      .range(-1'000'000, 1'000'000)
      .help("Label of the first class: 1 where 0 is the background, as in torchvision's detectors.");
}

void describe_nms(schema::Section& s, NmsSettings& nms) {
  s.field("score_threshold", nms.score_threshold)
      .range(0, 1)
      .known_elsewhere_as({"confidence_threshold"})
      .help("Less sure boxes are dropped.");
  s.field("iou_threshold", nms.iou_threshold)
      .range(0, 1)
      .known_elsewhere_as({"clustering_iou_threshold"})
      .help("A box that overlaps a surer one by more is dropped; 1: none is (DETR).");
  s.field("candidates", nms.candidates)
      .range(0, 1e6)
      .help("Of each class so many, the surest, take part; 0: all, in quadratic time.");
  s.field("most", nms.most).range(0, 1e6).known_elsewhere_as({"top_k"}).help("So many are kept of an image; 0: all.");
  s.field("across_classes", nms.across_classes).help("A box also drops those of other classes.");
}

}  // namespace

void describe_decoder(schema::Section& section, Options& options) {
  section.section("boxes", [&](schema::Section& s) { describe_boxes(s, options.boxes); })
      .help("Where the boxes are, and how they are written.");
  section.section("scores", [&](schema::Section& s) { describe_scores(s, options.scores); })
      .help("Where the scores of the classes are.");
  section.section("labels", [&](schema::Section& s) { describe_labels(s, options.labels); })
      .help(
          "Of networks that suppress by themselves, and say of each thing they found one score and its class "
          "(docs/foreign_detectors.md).");
  section.list("levels", options.levels)
      .help(
          "Feature maps that anchors or places belong to, in the order of the outputs or, joined, of the rows. Needed "
          "by anchor_center, yolo, distances and by the unit stride.");
  section.section("nms", [&](schema::Section& s) { describe_nms(s, options.nms); })
      .known_elsewhere_as({"nms_config"})
      .help("Non-maximum suppression: one detection for each thing.");
  section.rule("scores.outputs", [&options]() -> std::string {
    const size_t boxes = options.boxes.outputs.size(), scores = options.scores.outputs.size();
    return boxes == scores ? ""
                           : str("are ", scores, ", those of the boxes ", boxes, "; they belong together in order");
  });
  section.rule("scores.objectness_outputs", [&options]() -> std::string {
    const ScoreOptions& scores = options.scores;
    const size_t own = scores.objectness_outputs.size();
    if (own == 0) return "";
    if (scores.objectness < 0) return "are named, and scores.objectness does not say which of their values it is";
    return own == scores.outputs.size()
               ? ""
               : str("are ", own, ", those of the scores ", scores.outputs.size(), "; they belong together in order");
  });
  section.rule("labels", [&options]() -> std::string {
    const LabelOptions& labels = options.labels;
    const ScoreOptions& scores = options.scores;
    if (labels.value < 0)
      return labels.outputs.empty() ? "" : "have outputs, and labels.value does not say which value";
    if (!labels.outputs.empty() && labels.outputs.size() != scores.outputs.size())
      return str("have ", labels.outputs.size(), " outputs, the scores ", scores.outputs.size(),
                 "; they belong together in order");
    const bool rows = options.boxes.layout == Layout::kRows && scores.layout == Layout::kRows;
    if (!rows) return "need the layout rows of boxes and scores";
    if (scores.background != Background::kNone || scores.activation == Activation::kSoftmax || options.boxes.per_class)
      return "do not go with what is of all classes: scores.background, the activation softmax, boxes.per_class";
    return "";
  });
  section.rule("scores.geometric_mean", [&options]() -> std::string {
    return options.scores.geometric_mean && options.scores.objectness < 0 ? "needs scores.objectness, its other factor"
                                                                          : "";
  });
  section.rule("levels", [&options]() -> std::string {
    const BoxOptions& boxes = options.boxes;
    const bool anchors = boxes.code == BoxCode::kAnchorCenter || boxes.code == BoxCode::kYolo;
    const bool relative = anchors || boxes.code == BoxCode::kDistances || boxes.unit == Unit::kStride;
    if (relative && options.levels.empty()) return "are missing; the code of the boxes is relative to them";
    if (boxes.outputs.size() > 1 && !options.levels.empty() && options.levels.size() != boxes.outputs.size())
      return str("are ", options.levels.size(), ", the outputs ", boxes.outputs.size(), "; give one for each");
    for (size_t i = 0; i < options.levels.size(); ++i)
      if (anchors && options.levels[i].shapes.empty())
        return str("have none of the shapes that the code needs, in item ", i + 1);
    return "";
  });
}

void describe(schema::Section& section, Options& options) {
  describe_decoder(section, options);
  describe_object_metrics(section, options.metrics);
}

}  // namespace octet::tasks::detector
