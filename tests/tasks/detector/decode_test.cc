#include "tasks/detector/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "schema/tree.h"
#include "tasks/detectnet_v2/decode.h"
#include "tasks/detector/task.h"
#include "vision/box_coder.h"

namespace octet::tasks::detector {
namespace {

using testing::HasSubstr;

// What a network says of `anchors`, by [anchor][value].
struct Said {
  int64_t anchors = 0, values = 0;
  std::vector<float> numbers;
  float& at(int64_t anchor, int64_t value) { return numbers[static_cast<size_t>(anchor * values + value)]; }
};

Said random_values(int64_t anchors, int64_t values, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  Said out{anchors, values, std::vector<float>(static_cast<size_t>(anchors * values))};
  for (float& number : out.numbers) number = normal(random);
  return out;
}

std::vector<float> laid_out(Said& said, Layout layout, int64_t shapes) {
  std::vector<float> out;
  if (layout == Layout::kRows) return said.numbers;
  if (layout == Layout::kColumns) shapes = 1;
  for (int64_t shape = 0; shape < shapes; ++shape)
    for (int64_t value = 0; value < said.values; ++value)
      for (int64_t cell = 0; cell < said.anchors / shapes; ++cell) out.push_back(said.at(cell * shapes + shape, value));
  return out;
}

// Two levels of 3 x 4 and 2 x 2 cells in an input of 24 x 32 pixels, each with an output of boxes and scores joined.
struct TwoLevels {
  Options options;
  std::vector<std::vector<float>> memory;
  Outputs outputs;

  TwoLevels(BoxCode code, Layout layout, int64_t shapes, int64_t classes = 3) {
    for (const int64_t stride : {8, 16}) {
      LevelOptions level{.stride = stride, .shapes = {}};
      for (int64_t i = 0; i < shapes; ++i) {
        level.shapes.push_back(static_cast<double>(10 + 3 * i + stride));
        level.shapes.push_back(static_cast<double>(12 - i + stride));
      }
      options.levels.push_back(level);
      options.boxes.outputs.push_back("level" + std::to_string(stride));
    }
    options.scores.outputs = options.boxes.outputs;
    options.boxes.layout = options.scores.layout = layout;
    options.boxes.code = code;
    options.scores.first = 4;
    options.scores.activation = Activation::kSigmoid;
    const std::vector<std::pair<int64_t, int64_t>> grids = {{3, 4}, {2, 2}};
    for (size_t i = 0; i < 2; ++i) {
      const auto [rows, columns] = grids[i];
      Said said = random_values(rows * columns * shapes, 4 + classes, static_cast<unsigned>(i));
      memory.push_back(laid_out(said, layout, shapes));
      std::vector<int64_t> shape = {1, said.anchors, said.values};
      if (layout == Layout::kColumns) shape = {1, said.values, said.anchors};
      if (layout == Layout::kGrid) shape = {1, shapes * said.values, rows, columns};
      outputs.push_back({options.boxes.outputs[i], shape, {}});
    }
    for (size_t i = 0; i < 2; ++i) outputs[i].values = memory[i];
  }
  Objects propose() const { return Decoder(options, shapes_of(outputs), 24, 32).propose(outputs, 0); }
};

void expect_same(const Objects& a, const Objects& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].box, b[i].box) << i;
    EXPECT_EQ(a[i].label, b[i].label) << i;
    EXPECT_EQ(a[i].score, b[i].score) << i;
  }
}

TEST(Detector, LayoutsAreThreeWaysToWriteTheSame) {
  for (const BoxCode code : {BoxCode::kCorners, BoxCode::kAnchorCenter, BoxCode::kYolo}) {
    const Objects rows = TwoLevels(code, Layout::kRows, 2).propose();
    EXPECT_GT(rows.size(), 5u);
    expect_same(rows, TwoLevels(code, Layout::kColumns, 2).propose());
    expect_same(rows, TwoLevels(code, Layout::kGrid, 2).propose());
  }
}

// One anchor, whose values are given.
Objects decoded(const Options& options, std::vector<float> values, int64_t height = 64, int64_t width = 96) {
  const Outputs outputs = {{"out", {1, 1, std::ssize(values)}, values}};
  return Decoder(options, shapes_of(outputs), height, width).propose(outputs, 0);
}

TEST(Detector, EveryCodeDecodesWhatItsCoderWrote) {
  const vision::Box box = {10, 8, 42, 50};
  const auto with = [&](BoxCode code, Unit unit, const vision::BoxCode& written, std::vector<LevelOptions> levels) {
    Options options{.boxes = {.code = code, .unit = unit}, .scores = {.first = 4}, .levels = std::move(levels)};
    const Objects found = decoded(options, {written[0], written[1], written[2], written[3], 0.75f});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NEAR(found[0].box.x0, box.x0, 1e-4);
    EXPECT_NEAR(found[0].box.y0, box.y0, 1e-4);
    EXPECT_NEAR(found[0].box.x1, box.x1, 1e-4);
    EXPECT_NEAR(found[0].box.y1, box.y1, 1e-4);
    EXPECT_EQ(found[0].score, 0.75f);
  };
  with(BoxCode::kCorners, Unit::kPixels, {10, 8, 42, 50}, {});
  with(BoxCode::kCorners, Unit::kImage, {10 / 96.0f, 8 / 64.0f, 42 / 96.0f, 50 / 64.0f}, {});
  with(BoxCode::kCenter, Unit::kPixels, {26, 29, 32, 42}, {});
  with(BoxCode::kCenter, Unit::kImage, {26 / 96.0f, 29 / 64.0f, 32 / 96.0f, 42 / 64.0f}, {});
  // The only cell of a level of stride 96: its anchor lies around (48, 48).
  const std::vector<LevelOptions> level = {{.stride = 96, .shapes = {40, 30}}};
  const vision::Box anchor = {28, 33, 68, 63};
  with(BoxCode::kAnchorCenter, Unit::kPixels, vision::CenterSizeCoder{}.encode(box, anchor), level);
  with(BoxCode::kDistances, Unit::kPixels, vision::DistanceCoder{}.encode(box, 48, 48), {{.stride = 96, .shapes = {}}});
  with(BoxCode::kDistances, Unit::kStride, vision::DistanceCoder{.scale = 96}.encode(box, 48, 48),
       {{.stride = 96, .shapes = {}}});
  vision::BoxCode yolo = vision::YoloCoder{}.encode(box, anchor, {96, 96});
  for (size_t i = 0; i < 2; ++i) yolo[i] = std::log(yolo[i] / (1 - yolo[i]));
  with(BoxCode::kYolo, Unit::kPixels, yolo, level);
}

TEST(Detector, VariancesMultiply) {
  const vision::Box box = {10, 8, 42, 50}, anchor = {28, 33, 68, 63};
  Options options{.boxes = {.code = BoxCode::kAnchorCenter, .variances = {0.1, 0.1, 0.2, 0.2}},
                  .scores = {.first = 4},
                  .levels = {{.stride = 96, .shapes = {40, 30}}}};
  const auto code = vision::CenterSizeCoder{.variances = {0.1f, 0.1f, 0.2f, 0.2f}}.encode(box, anchor);
  EXPECT_NEAR(decoded(options, {code[0], code[1], code[2], code[3], 1})[0].box.x1, 42, 1e-4);
}

// Softmax, sigmoid, the background's place and the objectness, against the formulas.
TEST(Detector, ScoresAreWhatTheFormulasSay) {
  const std::vector<float> values = {5, 5, 20, 20, 0.7f, -0.4f, 1.3f, 0.2f};
  const auto scores = [&](const ScoreOptions& s) {
    std::vector<float> out;
    for (const vision::Object& o : decoded({.scores = s, .nms = {.score_threshold = 0}}, values))
      out.push_back(o.score);
    return out;
  };
  const auto e = [&](size_t i) { return std::exp(static_cast<double>(values[i])); };
  const double sum = e(4) + e(5) + e(6) + e(7);
  const auto near = [](const std::vector<float>& is, const std::vector<double>& wanted) {
    ASSERT_EQ(is.size(), wanted.size());
    for (size_t i = 0; i < is.size(); ++i) EXPECT_NEAR(is[i], wanted[i], 1e-6) << i;
  };
  near(scores({.first = 4, .activation = Activation::kSoftmax, .background = Background::kFirst}),
       {e(5) / sum, e(6) / sum, e(7) / sum});
  near(scores({.first = 4, .activation = Activation::kSoftmax, .background = Background::kLast}),
       {e(4) / sum, e(5) / sum, e(6) / sum});
  const auto sigmoid = [&](size_t i) { return e(i) / (1 + e(i)); };
  near(scores({.first = 5, .activation = Activation::kSigmoid, .objectness = 4}),
       {sigmoid(4) * sigmoid(5), sigmoid(4) * sigmoid(6), sigmoid(4) * sigmoid(7)});
  near(scores({.first = 5, .activation = Activation::kSigmoid, .objectness = 4, .best_only = true}),
       {sigmoid(4) * sigmoid(6)});
  near(scores({.first = 4, .classes = 2, .activation = Activation::kSigmoid}), {sigmoid(4), sigmoid(5)});
  near(scores({.first = 6}), {1.3, 0.2});
}

// SSD's default boxes: the input divided by the cells, which need not be whole pixels, nor alike in both directions.
TEST(Detector, CellsMakeTheStrides) {
  const Options options{.boxes = {.code = BoxCode::kAnchorCenter},
                        .scores = {.first = 4},
                        .levels = {{.cells = {3, 6}, .shapes = {10, 12}}}};
  std::vector<float> values(static_cast<size_t>(3 * 6 * 5));
  for (size_t anchor = 0; anchor < 18; ++anchor) values[anchor * 5 + 4] = 1;
  const Outputs outputs = {{"out", {1, 18, 5}, values}};
  const Objects found = Decoder(options, shapes_of(outputs), 64, 100).propose(outputs, 0);
  ASSERT_EQ(found.size(), 18u);
  for (size_t i = 0; i < found.size(); ++i) {
    const double x = (static_cast<double>(i % 6) + 0.5) * 100 / 6, y = (static_cast<double>(i / 6) + 0.5) * 64 / 3;
    EXPECT_NEAR(found[i].box.x0, x - 5, 1e-4);
    EXPECT_NEAR(found[i].box.y0, y - 6, 1e-4);
    EXPECT_NEAR(found[i].box.x1, x + 5, 1e-4);
    EXPECT_NEAR(found[i].box.y1, y + 6, 1e-4);
  }
}

// Distances in strides, which are not those of the other direction.
TEST(Detector, BothCellsAndStrideMayBeGiven) {
  Options options{.boxes = {.code = BoxCode::kDistances, .unit = Unit::kStride},
                  .scores = {.first = 4},
                  .levels = {{.cells = {1, 1}}}};
  const vision::Box of_cell = decoded(options, {0.25f, 0.25f, 0.25f, 0.25f, 1}, 40, 80).at(0).box;
  EXPECT_EQ(of_cell, (vision::Box{20, 10, 60, 30}));
  options.levels[0].stride = 32;  // a map that leaves out the border
  const vision::Box of_stride = decoded(options, {0.25f, 0.25f, 0.25f, 0.25f, 1}, 40, 80).at(0).box;
  EXPECT_EQ(of_stride, (vision::Box{8, 8, 24, 24}));
}

// FCOS: centerness in an output of its own, and the root of its product with the scores.
TEST(Detector, ObjectnessMayLieElsewhere) {
  const std::vector<float> boxes = {5, 5, 20, 20, 30, 5, 50, 20}, scores = {1, -2, 0.5f, 3}, centerness = {9, -1, 9, 2};
  const Outputs outputs = {{"box", {1, 2, 4}, boxes}, {"cls", {1, 2, 2}, scores}, {"ctr", {1, 2, 2}, centerness}};
  Options options{.boxes = {.outputs = {"box"}},
                  .scores = {.outputs = {"cls"},
                             .activation = Activation::kSigmoid,
                             .objectness = 1,
                             .objectness_outputs = {"ctr"},
                             .geometric_mean = true},
                  .nms = {.score_threshold = 0.3}};
  const Objects found = Decoder(options, shapes_of(outputs), 64, 96).propose(outputs, 0);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  // sqrt(sigmoid(-2) sigmoid(-1)) = 0.18 is below the threshold; sqrt(sigmoid(1) sigmoid(-1)) = 0.44, though
  // sigmoid(-1) = 0.27 alone is, too.
  ASSERT_EQ(found.size(), 3u);
  EXPECT_NEAR(found[0].score, std::sqrt(sigmoid(1) * sigmoid(-1)), 1e-6);
  EXPECT_EQ(found[0].label, 0);
  EXPECT_NEAR(found[1].score, std::sqrt(sigmoid(0.5) * sigmoid(2)), 1e-6);
  EXPECT_NEAR(found[2].score, std::sqrt(sigmoid(3) * sigmoid(2)), 1e-6);
  options.scores.geometric_mean = false;
  const Objects products = Decoder(options, shapes_of(outputs), 64, 96).propose(outputs, 0);
  ASSERT_EQ(products.size(), 2u);
  EXPECT_NEAR(products[0].score, sigmoid(0.5) * sigmoid(2), 1e-6);
}

TEST(Detector, ProposesNothingThatIsNoNumberOrHasNoArea) {
  const Options options{.scores = {.first = 4}};
  const float nan = std::nanf("");
  EXPECT_EQ(decoded(options, {5, 5, 20, 20, 0.5f}).size(), 1u);
  EXPECT_EQ(decoded(options, {5, 5, 20, 20, nan}).size(), 0u);
  EXPECT_EQ(decoded(options, {5, nan, 20, 20, 0.5f}).size(), 0u);
  EXPECT_EQ(decoded(options, {5, 5, INFINITY, 20, 0.5f})[0].box.x1, 96);  // cut at the image's border
  EXPECT_EQ(decoded(options, {20, 5, 5, 20, 0.5f}).size(), 0u);
  EXPECT_EQ(decoded(options, {200, 5, 220, 20, 0.5f}).size(), 0u);  // outside of the image
}

// The grid of a network of Octet's own, read as one from elsewhere.
TEST(Detector, ReadsTheGridOfAnotherTask) {
  const detectnet_v2::Grid grid{.classes = 2, .rows = 4, .columns = 6, .stride = 16};
  Said coverage = random_values(grid.cells(), 2, 1), boxes = random_values(grid.cells(), 8, 2);
  for (float& number : coverage.numbers) number = std::abs(number) / 4;
  for (float& number : boxes.numbers) number = std::abs(number);
  const std::vector<float> c = laid_out(coverage, Layout::kGrid, 1), b = laid_out(boxes, Layout::kGrid, 1);
  const Outputs outputs = {{"cov", {1, 2, 4, 6}, c}, {"box", {1, 8, 4, 6}, b}};
  const Options options{.boxes = {.outputs = {"box"},
                                  .layout = Layout::kGrid,
                                  .code = BoxCode::kDistances,
                                  .variances = {35, 35, 35, 35},
                                  .per_class = true},
                        .scores = {.outputs = {"cov"}, .layout = Layout::kGrid},
                        .levels = {{.stride = 16, .shapes = {}, .offset = 0.5 / 16}},
                        .nms = {.score_threshold = 0.1}};
  Objects own = Decoder(options, shapes_of(outputs), 64, 96).propose(outputs, 0);
  const Objects other =
      detectnet_v2::propose(c, b, grid, {.clustering = detectnet_v2::ClusteringOptions{.coverage_threshold = 0.1}});
  std::stable_sort(own.begin(), own.end(), [](const auto& x, const auto& y) { return x.label < y.label; });
  ASSERT_GT(own.size(), 10u);
  ASSERT_EQ(own.size(), other.size());
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(own[i].label, other[i].label);
    EXPECT_EQ(own[i].score, other[i].score);
    EXPECT_LT(std::abs(own[i].box.x0 - other[i].box.x0) + std::abs(own[i].box.y1 - other[i].box.y1), 1e-4);
  }
}

std::string refusal(const Options& options, std::vector<OutputShape> outputs, int64_t height = 24, int64_t width = 32) {
  try {
    Decoder(options, std::move(outputs), height, width);
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    return e.what();
  }
  return "(taken)";
}

TEST(Detector, NamesWhatDoesNotFit) {
  const Options joined{.scores = {.first = 4}};
  EXPECT_EQ(refusal(joined, {{"out", {-1, -1, 7}}}), "(taken)");
  EXPECT_EQ(refusal(joined, {{"out", {-1, 50, 4}}}),
            "output 'out' is [?, 50, 4], and the scores in it must be [batch, anchors, values]: an anchor has 4 "
            "values, and 5 are needed");
  EXPECT_THAT(refusal(joined, {{"out", {-1, 5, 4, 4}}}), HasSubstr("another number of dimensions"));
  EXPECT_THAT(refusal(joined, {{"a", {1, 5, 5}}, {"b", {1, 5, 5}}}), HasSubstr("the network has 2 outputs"));
  Options named = joined;
  named.boxes.outputs = named.scores.outputs = {"rows"};
  EXPECT_EQ(refusal(named, {{"a", {1, 5, 5}}, {"b", {1, 5, 5}}}), "the network has no output 'rows'; it has 'a', 'b'");
  Options anchors = joined;
  anchors.boxes.code = BoxCode::kAnchorCenter;
  anchors.levels = {{.stride = 8, .shapes = {10, 10, 20, 20}}};
  EXPECT_EQ(refusal(anchors, {{"out", {1, 24, 7}}}), "(taken)");
  EXPECT_THAT(refusal(anchors, {{"out", {1, 25, 7}}}),
              HasSubstr("it has 25 anchors, the levels make 24 of an input of 24 x 32 pixels"));
  Options elsewhere = named;
  elsewhere.boxes.outputs = elsewhere.scores.outputs = {"a"};
  elsewhere.scores.objectness = 5;
  EXPECT_THAT(refusal(elsewhere, {{"a", {1, 5, 5}}}),
              HasSubstr("the objectness in it must be [batch, anchors, values]: an anchor has 5 values, and 6 are"));
  elsewhere.scores.objectness_outputs = {"c"};
  EXPECT_THAT(refusal(elsewhere, {{"a", {1, 5, 5}}}), HasSubstr("no output 'c'"));
  anchors.boxes.layout = anchors.scores.layout = Layout::kGrid;
  EXPECT_THAT(refusal(anchors, {{"out", {1, 15, 3, 4}}}), HasSubstr("15 is no multiple of the 2 shapes of a cell"));
}

std::string spec_error(const std::string& text) {
  Options options;
  schema::Section section;
  describe(section, options);
  try {
    schema::read_section(section, schema::parse_yaml(text, "s.yaml"), "detector", {});
  } catch (const UserError& e) {
    return e.what();
  }
  return "(accepted)";
}

TEST(Detector, TheSpecSaysWhatIsMissing) {
  EXPECT_EQ(spec_error("scores: {first: 4, activation: sigmoid}\n"), "(accepted)");
  EXPECT_THAT(spec_error("boxes: {code: anchor_center}\n"),
              HasSubstr("'detector.levels' are missing; the code of the boxes is relative to them"));
  EXPECT_THAT(spec_error("boxes: {code: yolo}\nlevels: [{stride: 8}]\n"),
              HasSubstr("'detector.levels' have none of the shapes that the code needs, in item 1"));
  EXPECT_THAT(spec_error("boxes: {outputs: [a, b]}\nscores: {outputs: [a]}\n"),
              HasSubstr("'detector.scores.outputs' are 1, those of the boxes 2"));
  EXPECT_THAT(spec_error("levels: [{stride: 8, shapes: [1, 2, 3]}]\n"), HasSubstr("odd number of values"));
  EXPECT_EQ(spec_error("levels: [{cells: [3, 5]}]\n"), "(accepted)");
  EXPECT_THAT(spec_error("levels: [{offset: 0}]\n"), HasSubstr("are missing, and so is the stride"));
  EXPECT_THAT(spec_error("levels: [{cells: [3]}]\n"), HasSubstr("are 1 numbers; give rows and columns"));
  EXPECT_THAT(spec_error("boxes: {outputs: [a]}\nscores: {outputs: [b], objectness_outputs: [c]}\n"),
              HasSubstr("scores.objectness does not say which"));
  EXPECT_EQ(spec_error("scores: {first: 4}\nlabels: {value: 5}\n"), "(accepted)");
  EXPECT_THAT(spec_error("boxes: {outputs: [a]}\nscores: {outputs: [b]}\nlabels: {outputs: [c]}\n"),
              HasSubstr("'detector.labels' have outputs, and labels.value does not say which value"));
  EXPECT_THAT(spec_error("scores: {first: 4, background: first}\nlabels: {value: 5}\n"),
              HasSubstr("do not go with what is of all classes"));
  EXPECT_THAT(spec_error("boxes: {outputs: [a]}\nscores: {outputs: [b], objectness: 0, objectness_outputs: [c, d]}\n"),
              HasSubstr("are 2, those of the scores 1"));
  EXPECT_THAT(spec_error("scores: {geometric_mean: true}\n"), HasSubstr("needs scores.objectness"));
}

TEST(Detector, KnowsItsClassesFromTheScores) {
  const auto type = [](ir::Shape shape) { return ir::TensorType{ir::DataType::kFloat32, std::move(shape)}; };
  const Signature network{.inputs = {{"images", type({1, 3, 64, 96})}}, .outputs = {{"out", type({1, 84, 126})}}};
  Options options{.boxes = {.layout = Layout::kColumns, .code = BoxCode::kCenter},
                  .scores = {.layout = Layout::kColumns, .first = 4}};
  EXPECT_EQ(Task(options).classes(network), 80);
  EXPECT_NO_THROW(Task(options).check(network, 80));
  EXPECT_THROW(Task(options).check(network, 81), UserError);
  EXPECT_THROW(Task(options).build({}), UserError);
}

TEST(Detector, NvinferIsToldWhatAParserWouldNeed) {
  const auto type = [](ir::Shape shape) { return ir::TensorType{ir::DataType::kFloat32, std::move(shape)}; };
  const Signature network{.inputs = {{"images", type({1, 3, 64, 96})}},
                          .outputs = {{"boxes", type({1, 126, 4})}, {"scores", type({1, 126, 80})}}};
  Options options{.nms = {.score_threshold = 0.25, .iou_threshold = 0.6, .most = 50}};
  const NvinferReading reading = Task(options).nvinfer(network);
  EXPECT_EQ(reading.type, NvinferReading::Type::kRaw);
  EXPECT_THAT(reading.outputs, testing::ElementsAre("boxes", "scores"));
  ASSERT_EQ(reading.remarks.size(), 1u);
  EXPECT_THAT(reading.remarks[0],
              HasSubstr("cluster-mode=2, nms-iou-threshold=0.6, topk=50, pre-cluster-threshold=0.25"));
  options.nms = {.iou_threshold = 1, .most = 0};
  EXPECT_THAT(Task(options).nvinfer(network).remarks[0], HasSubstr("cluster-mode=4, pre-cluster-threshold=0.05"));
}

}  // namespace
}  // namespace octet::tasks::detector
