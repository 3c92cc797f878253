// What operators become that Octet writes by others. tests/peers/onnx_node_tests.py compares their values with ONNX's
// own tests; here is what these do not have: dynamic sizes, indices of several forms, refusals, parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/files.h"
#include "draft_model.h"
#include "ir/evaluate_graph.h"

namespace octet::onnx {
namespace {

using ir::kDynamic;
using ir::Shape;
using ir::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 0, 1, 2 ... in this shape.
Tensor counted(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(ir::element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return floats(shape, values);
}

Tensor result(const Draft& draft, const Tensor& x) {
  return ir::evaluate_graph(draft.import(), {x}).at(0);
}

// x in a list of constants; `y` = op(x, constants ...).
Draft one(const std::string& op, Shape x, const std::vector<Tensor>& constants, ir::Attributes attributes = {},
          int opset = 21) {
  Draft draft(opset, std::move(x));
  std::vector<std::string> inputs{"x"};
  for (const Tensor& tensor : constants) {
    inputs.push_back("c" + std::to_string(inputs.size()));
    draft.constant(inputs.back(), tensor);
  }
  draft.node(op, inputs, {"y"}, std::move(attributes));
  return draft;
}

std::vector<std::string> trainable(const ir::Graph& graph) {
  std::vector<std::string> out;
  for (const ir::Value* v : graph.constants())
    if (v->trainable) out.push_back(v->name);
  return out;
}

TEST(Upgrade, NormalizationsOfDynamicImages) {
  const Tensor scale = floats({2}, {2, 3}), shift = floats({2}, {10, 20});
  const Draft instance = one("InstanceNormalization", {kDynamic, 2, kDynamic, kDynamic}, {scale, shift});
  const std::vector<float> y = result(instance, counted({1, 2, 1, 2})).to_floats();
  const float unit = 0.5f / std::sqrt(0.25f + 1e-5f);
  const std::vector<float> expected{10 - 2 * unit, 10 + 2 * unit, 20 - 3 * unit, 20 + 3 * unit};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], expected[i], 1e-5f) << i;
  EXPECT_THAT(trainable(instance.import()), ElementsAre("c1_reshaped", "c2_reshaped"));

  const ir::Attributes groups{{"num_groups", int64_t{1}}};
  const Draft group = one("GroupNormalization", {kDynamic, 2, kDynamic, 2}, {scale, shift}, groups);
  EXPECT_EQ(result(group, counted({3, 2, 5, 2})).shape(), (Shape{3, 2, 5, 2}));
  EXPECT_THAT(one("GroupNormalization", {1, 2, kDynamic, kDynamic}, {scale, shift}, groups).error(),
              HasSubstr("needs all of these sizes but one to be known"));
  EXPECT_THAT(one("GroupNormalization", {1, 3, 4, 4}, {scale, shift}, {{"num_groups", int64_t{2}}}).error(),
              HasSubstr("does not divide the 3 channels"));
}

// Opset 18 had a scale for each group, opset 21 has one for each channel.
TEST(Upgrade, ScalesOfGroups) {
  const ir::Attributes groups{{"num_groups", int64_t{2}}};
  const auto y = [&](int opset, std::vector<float> scale) {
    const Shape each{static_cast<int64_t>(scale.size())};
    const Draft draft = one("GroupNormalization", {1, 4, 1, 1},
                            {floats(each, scale), floats(each, std::vector<float>(scale.size()))}, groups, opset);
    return result(draft, counted({1, 4, 1, 1})).to_floats();
  };
  EXPECT_EQ(y(18, {2, 3}), y(21, {2, 2, 3, 3}));
}

TEST(Upgrade, GatherIsSlices) {
  const auto y = [](const Tensor& indices, int64_t axis, size_t slices) {
    const Draft draft = one("Gather", {kDynamic, 6, 2}, {indices}, {{"axis", axis}});
    const std::vector<std::string> ops = op_names(draft.import());
    EXPECT_EQ(static_cast<size_t>(std::count(ops.begin(), ops.end(), "Slice")), slices);
    return result(draft, counted({1, 6, 2}));
  };
  EXPECT_THAT(y(ints({5, 4, 3, 0, 2, 4}), 1, 2).to_floats(), ElementsAre(10, 11, 8, 9, 6, 7, 0, 1, 4, 5, 8, 9));
  EXPECT_THAT(y(ints({-2, -1}), 1, 1).to_floats(), ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(y(ints({2, 1, 0}), 1, 1).to_floats(), ElementsAre(4, 5, 2, 3, 0, 1));
  EXPECT_THAT(y(ints({-1, 0}), 1, 2).to_floats(), ElementsAre(10, 11, 0, 1));
  EXPECT_THAT(y(ints({3, 3}), 1, 2).to_floats(), ElementsAre(6, 7, 6, 7));
  const Tensor square = y(Tensor::of<int64_t>({2, 2}, {0, 1, 2, 3}), 1, 1);
  EXPECT_EQ(square.shape(), (Shape{1, 2, 2, 2}));
  EXPECT_EQ(y(Tensor::scalar(int64_t{1}), 1, 1).shape(), (Shape{1, 2}));
  EXPECT_THAT(one("Gather", {1, 6}, {ints({6})}, {{"axis", int64_t{1}}}).error(), HasSubstr("index 6 is out of range"));
  EXPECT_THAT(one("Gather", {1, kDynamic}, {ints({0, 5})}, {{"axis", int64_t{1}}}).error(), HasSubstr("dynamic"));
}

TEST(Upgrade, ScatterOfABlockIsSlices) {
  std::vector<int64_t> places;
  for (const int64_t row : {1, 2})
    for (const int64_t column : {0, 1}) places.insert(places.end(), {row, column});
  Draft draft(18, {4, 3});
  draft.constant("at", Tensor::of<int64_t>({2, 2, 2}, places)).constant("new", floats({2, 2}, {-1, -2, -3, -4}));
  draft.node("ScatterND", {"x", "at", "new"}, {"y"});
  EXPECT_THAT(result(draft, counted({4, 3})).to_floats(), ElementsAre(0, 1, 2, -1, -2, 5, -3, -4, 8, 9, 10, 11));
  Draft rows(18, {kDynamic, 3});
  rows.constant("at", Tensor::of<int64_t>({1, 1}, {0})).constant("new", floats({1, 3}, {7, 8, 9}));
  rows.node("ScatterND", {"x", "at", "new"}, {"y"});
  EXPECT_THAT(result(rows, counted({2, 3})).to_floats(), ElementsAre(7, 8, 9, 3, 4, 5));
  Draft scattered(18, {4, 3});
  scattered.constant("at", Tensor::of<int64_t>({2, 1}, {2, 0})).constant("new", floats({2, 3}, std::vector<float>(6)));
  EXPECT_THAT(scattered.node("ScatterND", {"x", "at", "new"}, {"y"}).error(), HasSubstr("no block of places"));
}

TEST(Upgrade, WhereOfAConstantMask) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto draft = [&](float other) {
    Draft d(18, {kDynamic, 1, 2});
    d.constant("mask", Tensor(ir::DataType::kBool, {2, 1}, {std::byte{1}, std::byte{0}}));
    d.constant("other", Tensor::scalar(other)).node("Where", {"mask", "x", "other"}, {"y"});
    return d;
  };
  EXPECT_THAT(result(draft(-infinity), counted({1, 1, 2})).to_floats(), ElementsAre(0, 1, -infinity, -infinity));
  EXPECT_THAT(result(draft(7), counted({1, 1, 2})).to_floats(), ElementsAre(0, 1, 7, 7));
}

TEST(Upgrade, AttentionOfDynamicTokens) {
  Draft draft(23, {kDynamic, kDynamic, 4});
  draft.node("Attention", {"x", "x", "x"}, {"y"}, {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}});
  const Tensor y = result(draft, counted({1, 2, 4}));
  EXPECT_EQ(y.shape(), (Shape{1, 2, 4}));
  // The second head of the first token: scores (4 + 9, 12 + 21) / sqrt 2, values (2, 3) and (6, 7).
  EXPECT_NEAR(y.to_floats()[2], 2 + 4 / (1 + std::exp((13 - 33) / std::sqrt(2.0f))), 1e-4f);
  Draft causal(23, {1, 2, kDynamic, 4});
  causal.node("Attention", {"x", "x", "x"}, {"y"}, {{"is_causal", int64_t{1}}});
  EXPECT_THAT(causal.error(), HasSubstr("is_causal needs the number of tokens"));
}

TEST(Upgrade, TilesAndBlocksOfDynamicSizes) {
  EXPECT_THAT(result(one("Tile", {1, kDynamic}, {ints({2, 2})}), counted({1, 2})).to_floats(),
              ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(one("Tile", {1, 2}, {ints({2})}).error(), HasSubstr("1 repeats for a tensor of rank 2"));
  const Draft blocks = one("SpaceToDepth", {kDynamic, 1, kDynamic, kDynamic}, {}, {{"blocksize", int64_t{2}}});
  const Tensor y = result(blocks, counted({1, 1, 2, 4}));
  EXPECT_EQ(y.shape(), (Shape{1, 4, 1, 2}));
  EXPECT_THAT(y.to_floats(), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(one("SpaceToDepth", {1, 1, 3, 4}, {}, {{"blocksize", int64_t{2}}}).error(), HasSubstr("does not divide"));
}

TEST(Upgrade, AffineGridsOfDynamicBatches) {
  const Draft grid = one("AffineGrid", {kDynamic, 2, 3}, {ints({2, 1, 1, 2})});
  // The places of a row of two pixels are -0.5 and 0.5, and 0 across it.
  const std::vector<float> matrices = {1, 0, 0, 0, 1, 0, 2, 5, 3, 4, 6, 1};
  EXPECT_THAT(result(grid, floats({2, 2, 3}, matrices)).to_floats(), ElementsAre(-0.5f, 0, 0.5f, 0, 2, -1, 4, 3));
  const Draft alone = one("AffineGrid", {1, 2, 3}, {ints({1, 1, 1, 2})}, {{"align_corners", int64_t{1}}});
  EXPECT_THAT(result(alone, floats({1, 2, 3}, {2, 5, 3, 4, 6, 1})).to_floats(), ElementsAre(1, -3, 5, 5));
}

TEST(Upgrade, AffineGridsThatCannotBe) {
  EXPECT_THAT(one("AffineGrid", {1, 2, 3}, {ints({1, 1, 4})}).error(),
              HasSubstr("size has 3 numbers, expected 4 or 5"));
  EXPECT_THAT(one("AffineGrid", {1, 2, 3}, {ints({2, 1, 4, 4})}).error(),
              HasSubstr("theta is [1, 2, 3], expected [2, 2, 3]"));
  EXPECT_THAT(one("AffineGrid", {1, 3, 4}, {ints({1, 1, 4, 4})}).error(), HasSubstr("expected [1, 2, 3]"));
  EXPECT_THAT(one("AffineGrid", {1, 2, 3}, {ints({1, 1, 0, 4})}).error(), HasSubstr("expected 1 to 16777216 places"));
  EXPECT_THAT(one("AffineGrid", {1, 2, 3}, {ints({1, 1, 1 << 20, 1 << 20})}).error(),
              HasSubstr("expected 1 to 16777216"));
}

TEST(Upgrade, EinsumIsProducts) {
  const auto y = [](const std::string& equation, Shape x, const Shape& run, const Tensor& w) {
    return result(one("Einsum", std::move(x), {w}, {{"equation", equation}}), counted(run));
  };
  const Tensor w = counted({2, 3});
  EXPECT_THAT(y("bk,kn->bn", {kDynamic, 2}, {2, 2}, w).to_floats(), ElementsAre(3, 4, 5, 9, 14, 19));
  EXPECT_THAT(y("bk,nk->bn", {kDynamic, 3}, {1, 3}, w).to_floats(), ElementsAre(5, 14));
  EXPECT_EQ(y("bhwc,cn->bnhw", {kDynamic, kDynamic, 5, 2}, {2, 4, 5, 2}, w).shape(), (Shape{2, 3, 4, 5}));
  EXPECT_EQ(y("nc,bchw->bnhw", {2, 3}, {2, 3}, counted({1, 3, 1, 2})).shape(), (Shape{1, 2, 1, 2}));
  EXPECT_EQ(y("...c,cn->...n", {kDynamic, 4, 2}, {1, 4, 2}, w).shape(), (Shape{1, 4, 3}));
  EXPECT_THAT(y("bk,kn->bkn", {kDynamic, 2}, {1, 2}, w).to_floats(), ElementsAre(0, 0, 0, 3, 4, 5));
  EXPECT_THAT(y("bk,kn->n", {kDynamic, 2}, {2, 2}, w).to_floats(), ElementsAre(12, 18, 24));
  EXPECT_THAT(one("Einsum", {2, 2}, {}, {{"equation", std::string("ii->i")}}).error(), HasSubstr("diagonal"));
  EXPECT_THAT(one("Einsum", {2, 2}, {w}, {{"equation", std::string("ij,jk->iz")}}).error(),
              HasSubstr("not understood"));
  EXPECT_THAT(one("Einsum", {2, 3}, {w}, {{"equation", std::string("ij,jk->ik")}}).error(), HasSubstr("sizes 3 and 2"));
  EXPECT_THAT(one("Einsum", {2, 3}, {w}, {{"equation", std::string("ij->i")}}).error(), HasSubstr("1 terms for 2"));
}

TEST(Upgrade, OldestOpsets) {
  for (const int opset : {7, 8, 9}) {
    const Tensor c = floats({3}, {1, 1, 1});
    Draft draft(opset, {kDynamic, 3, 4, 4});
    draft.constant("c", c).node("BatchNormalization", {"x", "c", "c", "c", "c"}, {"b"});
    draft.node("Dropout", {"b"}, {"d"}, {{"ratio", 0.3f}});
    draft.node(
        "Slice", {"d"}, {"s"},
        {{"starts", std::vector<int64_t>{1}}, {"ends", std::vector<int64_t>{3}}, {"axes", std::vector<int64_t>{2}}});
    draft.node("Flatten", {"s"}, {"y"});
    EXPECT_EQ(result(draft, counted({2, 3, 4, 4})).shape(), (Shape{2, 24})) << opset;
  }
  const std::vector<float> scales{1, 1, 2, 2};
  const Draft upsample = one("Upsample", {1, 1, 1, 2}, {}, {{"scales", scales}, {"mode", std::string("nearest")}}, 7);
  EXPECT_THAT(result(upsample, counted({1, 1, 1, 2})).to_floats(), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
}

// As torch.onnx.export writes it up to opset 16.
Draft layer_norm(const std::vector<int64_t>& axes, const std::string& squared) {
  Draft draft(14, {kDynamic, 3, 4});
  draft.constant("two", Tensor::scalar(2.0f)).constant("epsilon", Tensor::scalar(1e-6f));
  draft.constant("scale", floats({4}, {1, 2, 3, 4})).constant("shift", floats({4}, {4, 3, 2, 1}));
  draft.node("ReduceMean", {"x"}, {"mean"}, {{"axes", axes}}).node("Sub", {"x", "mean"}, {"centered"});
  draft.node("Pow", {squared, "two"}, {"square"}).node("ReduceMean", {"square"}, {"variance"}, {{"axes", axes}});
  draft.node("Add", {"variance", "epsilon"}, {"more"}).node("Sqrt", {"more"}, {"deviation"});
  draft.node("Div", {"centered", "deviation"}, {"normal"}).node("Mul", {"normal", "scale"}, {"scaled"});
  draft.node("Add", {"shift", "scaled"}, {"y"});
  return draft;
}

TEST(Upgrade, FormulaOfLayerNormalization) {
  const ir::Graph graph = layer_norm({-1}, "centered").import();
  ASSERT_THAT(op_names(graph), ElementsAre("LayerNormalization"));
  EXPECT_EQ(graph.find_node("n_y")->get_float("epsilon"), 1e-6f);
  EXPECT_EQ(graph.find_node("n_y")->input(2)->name, "shift");
  const std::vector<float> y = result(layer_norm({2}, "centered"), counted({1, 3, 4})).to_floats();
  const float unit = 1 / std::sqrt(1.25f + 1e-6f);
  EXPECT_NEAR(y[0], 4 - 1.5f * unit, 1e-5f);
  EXPECT_NEAR(y[11], 1 + 4 * 1.5f * unit, 1e-5f);
  // Something else: the mean of another axis, the squares of another tensor.
  EXPECT_EQ(op_names(layer_norm({1}, "centered").import()).size(), 9u);
  EXPECT_EQ(op_names(layer_norm({-1}, "x").import()).size(), 9u);
}

TEST(Upgrade, EveryOperatorIsInTheDocuments) {
  const std::string page = read_file(std::filesystem::path(OCTET_SOURCE_DIR) / "docs/operators.md");
  for (const std::string& op : supported_operators()) {
    const auto letter = [&](size_t at) {
      return at < page.size() && std::isalnum(static_cast<unsigned char>(page[at]));
    };
    bool found = false;
    for (size_t at = page.find(op); at != std::string::npos && !found; at = page.find(op, at + 1))
      found = !letter(at - 1) && !letter(at + op.size());
    EXPECT_TRUE(found) << op << " is new: give it a line in docs/operators.md";
  }
}

}  // namespace
}  // namespace octet::onnx
