#include "tasks/detector/decode.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/tensor.h"
#include "vision/nms.h"

namespace octet::tasks::detector {
namespace {

using vision::Box;

const char* layout_text(Layout layout, bool labels) {
  if (labels) return "[things, values] or [batch, things, values]";
  if (layout == Layout::kRows) return "[batch, anchors, values]";
  return layout == Layout::kColumns ? "[batch, values, anchors]" : "[batch, shapes * values, rows, columns]";
}

// The values of the anchors of one image.
class Values {
 public:
  Values(std::span<const float> values, const std::vector<int64_t>& shape, Layout layout, int64_t shapes,
         int64_t image) {
    int64_t size = 1;
    for (size_t i = 1; i < shape.size(); ++i) size *= shape[i];
    values_ = values.subspan(static_cast<size_t>(image * size), static_cast<size_t>(size));
    if (layout == Layout::kGrid) {
      const int64_t cells = shape[2] * shape[3];
      anchors_ = cells * shapes;
      per_shape_ = shape[1] / shapes * cells, per_value_ = cells, per_cell_ = 1, shapes_ = shapes;
    } else {
      const bool rows = layout == Layout::kRows;
      anchors_ = shape[rows ? 1 : 2];
      per_cell_ = rows ? shape[2] : 1, per_value_ = rows ? 1 : anchors_;
    }
  }
  int64_t anchors() const { return anchors_; }
  float at(int64_t anchor, int64_t value) const {
    const int64_t cell = anchor / shapes_, shape = anchor % shapes_;
    return values_[static_cast<size_t>(cell * per_cell_ + shape * per_shape_ + value * per_value_)];
  }

 private:
  std::span<const float> values_;
  int64_t anchors_ = 0, shapes_ = 1, per_cell_ = 0, per_shape_ = 0, per_value_ = 0;
};

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

void softmax(std::span<float> values) {
  const float most = *std::max_element(values.begin(), values.end());
  float sum = 0;
  for (float& value : values) sum += value = std::exp(value - most);
  for (float& value : values) value /= sum;
}

void activate(std::span<float> values, Activation activation) {
  if (activation == Activation::kSoftmax) softmax(values);
  if (activation == Activation::kSigmoid)
    for (float& value : values) value = sigmoid(value);
}

bool usable(const Box& box) {
  return std::isfinite(box.x0) && std::isfinite(box.y0) && std::isfinite(box.x1) && std::isfinite(box.y1) &&
         vision::area(box) > 0;
}

// Of a network that suppresses by itself, as [batch, things, values]: there need be no batch, and no values where each
// thing has one.
std::vector<int64_t> with_all_dimensions(const std::vector<int64_t>& shape, bool boxes) {
  if (shape.size() == 1) return {1, shape[0], 1};
  if (shape.size() != 2) return shape;
  return boxes ? std::vector<int64_t>{1, shape[0], shape[1]} : std::vector<int64_t>{shape[0], shape[1], 1};
}

bool relative_to_levels(const BoxOptions& boxes) {
  return boxes.code == BoxCode::kAnchorCenter || boxes.code == BoxCode::kYolo || boxes.code == BoxCode::kDistances ||
         boxes.unit == Unit::kStride;
}

}  // namespace

std::vector<OutputShape> shapes_of(const Signature& network) {
  std::vector<OutputShape> out;
  for (const Port& port : network.outputs)
    out.push_back({port.name, port.type.shape ? std::vector<int64_t>(port.type.shape->begin(), port.type.shape->end())
                                              : std::vector<int64_t>()});
  return out;
}

std::vector<OutputShape> shapes_of(const Outputs& outputs) {
  std::vector<OutputShape> out;
  for (const OutputView& output : outputs) out.push_back({output.name, output.shape});
  return out;
}

Decoder::Decoder(const Options& options, std::vector<OutputShape> outputs, int64_t height, int64_t width)
    : options_(options), outputs_(std::move(outputs)), height_(height), width_(width) {
  const std::vector<std::string>&boxes = options_.boxes.outputs, &scores = options_.scores.outputs;
  const std::span<const LevelOptions> levels = options_.levels;
  if (boxes.empty()) {
    if (outputs_.size() != 1)
      fail_usage("the network has ", outputs_.size(), " outputs; name those of boxes and scores in the task's section");
  }
  if (has_labels())
    for (OutputShape& output : outputs_)
      output.shape = with_all_dimensions(
          output.shape, boxes.empty() || std::find(boxes.begin(), boxes.end(), output.name) != boxes.end());
  if (boxes.empty()) {
    const std::string& only = outputs_[0].name;
    add_group({.boxes = only, .scores = only, .objectness = only, .labels = only}, levels);
  }
  const std::vector<std::string>&objectness = options_.scores.objectness_outputs, &labels = options_.labels.outputs;
  for (size_t i = 0; i < boxes.size(); ++i)
    add_group({.boxes = boxes[i],
               .scores = scores[i],
               .objectness = objectness.empty() ? scores[i] : objectness[i],
               .labels = labels.empty() ? scores[i] : labels[i]},
              boxes.size() == 1 || levels.empty() ? levels : levels.subspan(i, 1));
}

size_t Decoder::find(const std::string& output) const {
  std::string names;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].name == output) return i;
    names += str(i ? ", '" : "'", outputs_[i].name, "'");
  }
  fail_usage("the network has no output '", output, "'; it has ", names);
}

int64_t Decoder::values_of(size_t output, Layout layout, const Group& group) const {
  const std::vector<int64_t>& shape = outputs_[output].shape;
  if (layout == Layout::kGrid) return shape[1] < 0 ? -1 : shape[1] / group.shapes;
  return shape[layout == Layout::kRows ? 2 : 1];
}

void Decoder::require_values(size_t output, Layout layout, const Group& group, int64_t least, const char* what) const {
  const OutputShape& port = outputs_[output];
  const auto refuse = [&](const auto&... why) {
    fail_usage("output '", port.name, "' is ", ir::shape_string(ir::Shape(port.shape.begin(), port.shape.end())),
               ", and the ", what, " in it must be ", layout_text(layout, has_labels()), ": ", why...);
  };
  if (port.shape.size() != (layout == Layout::kGrid ? 4 : 3)) refuse("it has another number of dimensions");
  if (layout == Layout::kGrid && port.shape[1] >= 0 && port.shape[1] % group.shapes != 0)
    refuse(port.shape[1], " is no multiple of the ", group.shapes, " shapes of a cell");
  const int64_t values = values_of(output, layout, group);
  if (values >= 0 && values < least) refuse("an anchor has ", values, " values, and ", least, " are needed");
  int64_t anchors = layout == Layout::kRows ? port.shape[1] : port.shape.back();
  if (layout == Layout::kGrid)
    anchors = port.shape[2] < 0 || port.shape[3] < 0 ? -1 : port.shape[2] * port.shape[3] * group.shapes;
  const auto expected = static_cast<int64_t>(group.anchors.size());
  if (expected > 0 && anchors >= 0 && anchors != expected)
    refuse("it has ", anchors, " anchors, the levels make ", expected, " of an input of ", height_, " x ", width_,
           " pixels");
}

void Decoder::add_anchors(Group& group, const LevelOptions& level) const {
  const auto cells = [&](size_t axis, int64_t side) {
    return level.cells.empty() ? (side + level.stride - 1) / level.stride : level.cells[axis];
  };
  const int64_t rows = cells(0, height_), columns = cells(1, width_);
  const auto step = [&](int64_t side, int64_t count) {
    return level.stride > 0 ? static_cast<float>(level.stride) : static_cast<float>(side) / static_cast<float>(count);
  };
  const vision::CellSize stride = {.x = step(width_, columns), .y = step(height_, rows)};
  vision::AnchorLevel anchors{.rows = static_cast<int>(rows),
                              .columns = static_cast<int>(columns),
                              .step_y = stride.y,
                              .step_x = stride.x,
                              .offset = static_cast<float>(level.offset),
                              .shapes = {}};
  for (size_t i = 0; i + 1 < level.shapes.size(); i += 2)
    anchors.shapes.push_back({static_cast<float>(level.shapes[i]), static_cast<float>(level.shapes[i + 1])});
  if (anchors.shapes.empty()) anchors.shapes.push_back({stride.x, stride.y});
  const std::vector<Box> made = vision::make_anchors({&anchors, 1});
  group.anchors.insert(group.anchors.end(), made.begin(), made.end());
  group.strides.resize(group.anchors.size(), stride);
}

void Decoder::add_group(const Names& outputs, std::span<const LevelOptions> levels) {
  Group group{.boxes = find(outputs.boxes),
              .scores = find(outputs.scores),
              .objectness = find(outputs.objectness),
              .labels = find(outputs.labels),
              .anchors = {},
              .strides = {}};
  if (options_.boxes.layout == Layout::kGrid || options_.scores.layout == Layout::kGrid) {
    if (levels.size() > 1) fail_usage("layout grid: give an output for each of the ", levels.size(), " levels");
    if (!levels.empty()) group.shapes = std::max<int64_t>(1, std::ssize(levels[0].shapes) / 2);
  }
  if (height_ > 0 && width_ > 0 && relative_to_levels(options_.boxes))
    for (const LevelOptions& level : levels) add_anchors(group, level);
  const ScoreOptions& s = options_.scores;
  const int64_t background = s.background == Background::kNone ? 0 : 1;
  const int64_t of_classes = has_labels() ? 1 : std::max<int64_t>(s.classes, 1);
  require_values(group.scores, s.layout, group, s.first + background + of_classes, "scores");
  require_values(group.labels, s.layout, group, options_.labels.value + 1, "labels");
  require_values(group.objectness, s.layout, group, s.objectness + 1, "objectness");
  const int64_t values = values_of(group.scores, s.layout, group);
  const bool open = values < 0 || has_labels();
  const int64_t classes = s.classes > 0 ? s.classes : open ? -1 : values - s.first - background;
  if (!groups_.empty() && classes != classes_)
    fail_usage("output '", outputs.scores, "' has scores of ", classes, " classes, those before it of ", classes_);
  classes_ = classes;
  require_values(group.boxes, options_.boxes.layout, group,
                 options_.boxes.first + 4 * (options_.boxes.per_class ? std::max<int64_t>(classes_, 1) : 1), "boxes");
  groups_.push_back(std::move(group));
}

Box Decoder::box(const Group& group, const vision::BoxCode& code, size_t anchor) const {
  const BoxOptions& boxes = options_.boxes;
  float x = 1, y = 1;
  if (boxes.unit == Unit::kImage) x = static_cast<float>(width_), y = static_cast<float>(height_);
  if (boxes.unit == Unit::kStride) x = group.strides[anchor].x, y = group.strides[anchor].y;
  switch (boxes.code) {
    case BoxCode::kCorners:
      return {code[0] * x, code[1] * y, code[2] * x, code[3] * y};
    case BoxCode::kCornersYx:
      return {code[1] * x, code[0] * y, code[3] * x, code[2] * y};
    case BoxCode::kCenter:
      return {(code[0] - 0.5f * code[2]) * x, (code[1] - 0.5f * code[3]) * y, (code[0] + 0.5f * code[2]) * x,
              (code[1] + 0.5f * code[3]) * y};
    case BoxCode::kAnchorCenter: {
      vision::CenterSizeCoder coder;
      for (size_t i = 0; i < 4; ++i) coder.variances[i] = static_cast<float>(boxes.variances[i]);
      return coder.decode(code, group.anchors[anchor]);
    }
    case BoxCode::kYolo:
      return vision::YoloCoder{.xy_scale = static_cast<float>(boxes.xy_scale)}.decode(code, group.anchors[anchor],
                                                                                      group.strides[anchor]);
    case BoxCode::kDistances: {
      const Box& a = group.anchors[anchor];
      const float cx = 0.5f * (a.x0 + a.x1), cy = 0.5f * (a.y0 + a.y1);
      const auto by = [&](size_t i) { return code[i] * static_cast<float>(boxes.variances[i]); };
      return {cx - by(0) * x, cy - by(1) * y, cx + by(2) * x, cy + by(3) * y};
    }
  }
  return {};
}

int64_t Decoder::class_of(const Group& group, float label) const {
  const double number = std::round(static_cast<double>(label)) - static_cast<double>(options_.labels.first);
  if (!(number >= 0 && number < 1e6)) return -1;
  if (classes_ >= 0 && number >= static_cast<double>(classes_))
    fail("output '", outputs_[group.labels].name, "' calls a thing ", label, "; there are ", classes_,
         " classes, and the label of the first is ", options_.labels.first, " (detector.labels.first)");
  return static_cast<int64_t>(number);
}

Objects Decoder::propose(const Outputs& outputs, int64_t index) const {
  const BoxOptions& b = options_.boxes;
  const ScoreOptions& s = options_.scores;
  const auto threshold = static_cast<float>(options_.nms.score_threshold);
  const int64_t background = s.background == Background::kNone ? 0 : 1;
  const int64_t first_class = s.background == Background::kFirst ? 1 : 0;
  Objects out;
  const int64_t score_count = has_labels() ? 1 : classes_;
  std::vector<float> scores(static_cast<size_t>(score_count + background));
  for (const Group& group : groups_) {
    const auto values_in = [&](size_t output, Layout layout) {
      return Values(outputs[output].values, outputs_[output].shape, layout, group.shapes, index);
    };
    const Values boxes = values_in(group.boxes, b.layout), values = values_in(group.scores, s.layout);
    const Values objectness = values_in(group.objectness, s.layout), labels = values_in(group.labels, s.layout);
    const auto require_as_many = [&](const Values& others, size_t output, const char* what) {
      if (others.anchors() != values.anchors())
        fail("output '", outputs[output].name, "' has ", what, " of ", others.anchors(), " anchors, '",
             outputs[group.scores].name, "' scores of ", values.anchors());
    };
    require_as_many(boxes, group.boxes, "boxes");
    require_as_many(objectness, group.objectness, "objectness");
    require_as_many(labels, group.labels, "labels");
    for (int64_t anchor = 0; anchor < values.anchors(); ++anchor) {
      float object = 1;
      if (s.objectness >= 0) {
        object = objectness.at(anchor, s.objectness);
        if (s.activation != Activation::kNone) object = sigmoid(object);
        if (!(object >= (s.geometric_mean ? threshold * threshold : threshold))) continue;
      }
      for (size_t i = 0; i < scores.size(); ++i) scores[i] = values.at(anchor, s.first + static_cast<int64_t>(i));
      activate(scores, s.activation);
      const std::span<const float> of_classes(scores.data() + first_class, static_cast<size_t>(score_count));
      const auto best = std::max_element(of_classes.begin(), of_classes.end()) - of_classes.begin();
      for (int64_t c = s.best_only ? best : 0; c < (s.best_only ? best + 1 : score_count); ++c) {
        const float product = of_classes[static_cast<size_t>(c)] * object;
        const float score = s.geometric_mean ? std::sqrt(product) : product;
        if (!(score >= threshold)) continue;
        vision::BoxCode code;
        for (int64_t i = 0; i < 4; ++i)
          code[static_cast<size_t>(i)] = boxes.at(anchor, b.first + (b.per_class ? 4 * c : 0) + i);
        const Box found = vision::clipped(box(group, code, static_cast<size_t>(anchor)), static_cast<float>(width_),
                                          static_cast<float>(height_));
        if (!usable(found)) continue;
        const int64_t label = has_labels() ? class_of(group, labels.at(anchor, options_.labels.value)) : c;
        if (label >= 0) out.push_back({.box = found, .label = static_cast<int>(label), .score = score});
      }
    }
  }
  return out;
}

Objects Decoder::detect(const Outputs& outputs, int64_t index) const {
  const NmsSettings& nms = options_.nms;
  const Objects proposals = propose(outputs, index);
  Objects out;
  for (const int64_t i : vision::nms(proposals, {.iou_threshold = static_cast<float>(nms.iou_threshold),
                                                .score_threshold = static_cast<float>(nms.score_threshold),
                                                .candidates = nms.candidates,
                                                .most = nms.most,
                                                .across_classes = nms.across_classes}))
    out.push_back(proposals[static_cast<size_t>(i)]);
  return out;
}

}  // namespace octet::tasks::detector
