// Operators between a DequantizeLinear of constants and the layer that reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draft_model.h"

namespace octet::onnx {
namespace {

using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

// Codes 1, 2, ... with the scales 1, 10, 100 ... along `axis`: values tell which scale an element has.
struct Coded {
  Shape shape;
  int64_t axis = 0;
  std::optional<int8_t> zero_point;
};

Draft draft_of(const Coded& coded, Shape input = {1, 1, 1, 1}) {
  Draft d(19, std::move(input));
  std::vector<int8_t> codes(static_cast<size_t>(ir::element_count(coded.shape)));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int8_t>(i + 1);
  const int64_t channels = coded.axis < 0 ? 1 : coded.shape[static_cast<size_t>(coded.axis)];
  Floats scales{1};
  while (static_cast<int64_t>(scales.size()) < channels) scales.push_back(scales.back() * 10);
  const Shape shape = coded.axis < 0 ? Shape() : Shape{channels};
  d.constant("codes", Tensor::of<int8_t>(coded.shape, codes)).constant("scale", floats(shape, scales));
  std::vector<std::string> inputs = {"codes", "scale"};
  if (coded.zero_point) {
    d.constant("zero", Tensor::of<int8_t>(shape, std::vector<int8_t>(scales.size(), *coded.zero_point)));
    inputs.push_back("zero");
  }
  return d.node("DequantizeLinear", inputs, {"w0"}, {{"axis", std::max<int64_t>(coded.axis, 0)}});
}

// What y = x + w reads as w.
struct Read {
  bool quantized;
  Floats values, scales;
  int64_t axis;
  Shape shape;
};

Read read(Draft& d) {
  const ir::Graph graph = d.node("Add", {"x", "w"}, {"y"}).import();
  const ir::Value* w = graph.find_node("n_y")->input(1);
  if (w->is_constant()) return {false, w->constant->to_floats(), {}, 0, w->constant->shape()};
  const ir::Node& q = *w->producer;
  EXPECT_EQ(q.kind, OpKind::kFakeQuantize);
  EXPECT_EQ(w->name, "w");
  EXPECT_EQ(graph.nodes().size(), 2u);
  return {true, q.input(0)->constant->to_floats(), q.input(1)->constant->to_floats(), q.get_int("axis"),
          q.input(0)->constant->shape()};
}

TEST(QuantizedConstants, ScalesMoveWithTheCodes) {
  Draft transposed = draft_of({{2, 3}, 1});
  const Read t = read(transposed.node("Transpose", {"w0"}, {"w"}, {{"perm", Ints{1, 0}}}));
  EXPECT_TRUE(t.quantized);
  EXPECT_THAT(t.values, ElementsAre(1, 4, 20, 50, 300, 600));
  EXPECT_THAT(t.scales, ElementsAre(1, 10, 100));
  EXPECT_EQ(t.axis, 0);

  Draft reshaped = draft_of({{2, 4}, 0});
  const Read r = read(reshaped.constant("to", ints({1, 2, 2, 2})).node("Reshape", {"w0", "to"}, {"w"}));
  EXPECT_TRUE(r.quantized);
  EXPECT_THAT(r.values, ElementsAre(1, 2, 3, 4, 50, 60, 70, 80));
  EXPECT_EQ(r.axis, 1);

  Draft opened = draft_of({{2, 2}, 1});
  const Read u = read(opened.constant("at", ints({0, -1})).node("Unsqueeze", {"w0", "at"}, {"w"}));
  EXPECT_EQ(u.shape, (Shape{1, 2, 2, 1}));
  EXPECT_EQ(u.axis, 2);

  Draft gathered = draft_of({{3, 2}, 0});
  const Read g = read(gathered.constant("at", ints({2, 0})).node("Gather", {"w0", "at"}, {"w"}));
  EXPECT_TRUE(g.quantized);
  EXPECT_THAT(g.values, ElementsAre(500, 600, 1, 2));
  EXPECT_THAT(g.scales, ElementsAre(100, 1));

  Draft cut = draft_of({{3, 2}, 0});
  cut.constant("from", ints({1})).constant("to", ints({3}));
  const Read s = read(cut.node("Slice", {"w0", "from", "to"}, {"w"}));
  EXPECT_THAT(s.values, ElementsAre(30, 40, 500, 600));
  EXPECT_THAT(s.scales, ElementsAre(10, 100));
}

TEST(QuantizedConstants, JoinedAndSplit) {
  Draft joined = draft_of({{2, 2}, 0});
  joined.constant("s2", floats({}, {7})).node("DequantizeLinear", {"codes", "s2"}, {"v0"});
  const Read c = read(joined.node("Concat", {"w0", "v0"}, {"w"}, {{"axis", int64_t{0}}}));
  EXPECT_TRUE(c.quantized);
  EXPECT_THAT(c.values, ElementsAre(1, 2, 30, 40, 7, 14, 21, 28));
  EXPECT_THAT(c.scales, ElementsAre(1, 10, 7, 7));

  // Side by side no axis has one scale for each index: the values stay, as floats.
  Draft beside = draft_of({{2, 2}, 0});
  beside.constant("s2", floats({}, {7})).node("DequantizeLinear", {"codes", "s2"}, {"v0"});
  const Read b = read(beside.node("Concat", {"w0", "v0"}, {"w"}, {{"axis", int64_t{1}}}));
  EXPECT_FALSE(b.quantized);
  EXPECT_THAT(b.values, ElementsAre(1, 2, 7, 14, 30, 40, 21, 28));

  Draft parts = draft_of({{4, 1}, 0});
  const Read p = read(parts.node("Split", {"w0"}, {"w", "rest"}, {{"num_outputs", int64_t{2}}}));
  EXPECT_TRUE(p.quantized);
  EXPECT_THAT(p.scales, ElementsAre(1, 10));
}

TEST(QuantizedConstants, PaddedByZeros) {
  Draft padded = draft_of({{2, 1}, 0, int8_t{1}});
  const Read p = read(padded.constant("by", ints({1, 0, 0, 1})).node("Pad", {"w0", "by"}, {"w"}));
  EXPECT_TRUE(p.quantized);
  EXPECT_THAT(p.values, ElementsAre(0, 0, 0, 0, 10, 0));
  EXPECT_THAT(p.scales, ElementsAre(1, 1, 10));
  Draft filled = draft_of({{2, 1}, 0});
  filled.constant("by", ints({0, 0, 0, 1})).constant("fill", floats({}, {0.3f}));
  const Read f = read(filled.node("Pad", {"w0", "by", "fill"}, {"w"}));
  EXPECT_FALSE(f.quantized);
  EXPECT_THAT(f.values, ElementsAre(1, 0.3f, 20, 0.3f));
}

TEST(QuantizedConstants, ComputedOnesAreFloats) {
  Draft scaled = draft_of({{2, 2}, 0});
  const Read m = read(scaled.constant("g", floats({2}, {2, 0.5f})).node("Mul", {"w0", "g"}, {"w"}));
  EXPECT_FALSE(m.quantized);
  EXPECT_THAT(m.values, ElementsAre(2, 1, 60, 20));
  EXPECT_THAT(m.scales, IsEmpty());
}

// Floats that a pair quantizes are not lost: training goes on with them.
TEST(QuantizedConstants, FloatsBehindBothMove) {
  for (const bool computed : {false, true}) {
    Draft d(19, {1, 1, 1, 1});
    d.constant("f", floats({2, 2}, {0.2f, 1.4f, 7, 19})).constant("s", floats({2}, {1, 10}));
    d.constant("z", Tensor::of<int8_t>({2}, {0, 0}));
    d.node("QuantizeLinear", {"f", "s", "z"}, {"q"}, {{"axis", int64_t{-1}}});
    d.node("DequantizeLinear", {"q", "s", "z"}, {"w0"}, {{"axis", int64_t{1}}});
    if (computed) d.node("Neg", {"w0"}, {"n"});
    const Read r = read(d.node("Transpose", {computed ? "n" : "w0"}, {"w"}));
    EXPECT_EQ(r.quantized, !computed);
    if (computed) {
      EXPECT_THAT(r.values, ElementsAre(0, -7, -0.0f, -20));
    } else {
      EXPECT_THAT(r.values, ElementsAre(0.2f, 7, 1.4f, 19));
      EXPECT_EQ(r.axis, 0);
    }
  }
}

TEST(QuantizedConstants, BiasesMove) {
  Draft d(19, {1, 1, 1, 1});
  d.constant("b", Tensor::of<int32_t>({4}, {1, -2, 100000, 4})).constant("s", floats({4}, {1, 2, 3, 4}));
  d.node("DequantizeLinear", {"b", "s"}, {"b0"}, {{"axis", int64_t{0}}}).constant("to", ints({2, 2}));
  const Read r = read(d.node("Reshape", {"b0", "to"}, {"w"}));
  EXPECT_FALSE(r.quantized);
  EXPECT_THAT(r.values, ElementsAre(1, -4, 300000, 16));
}

}  // namespace
}  // namespace octet::onnx
