#include "ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/infer.h"
#include "ir/test_graph.h"

namespace octet::ir {
namespace {

using ::testing::HasSubstr;

// x -> FakeQuantize "q" -> Relu "r" -> output
struct Small {
  Graph graph;
  Value* x = graph.add_input("x", floats({kDynamic, 4}));
  Value* scale = graph.add_constant("scale", Tensor::scalar<float>(0.5f));
  Value* zero = graph.add_constant("zero", Tensor::scalar<int8_t>(0));
  Value* q = graph.add(OpKind::kFakeQuantize, "q", {x, scale, zero});
  Value* r = graph.add(OpKind::kRelu, "r", {q});
  Small() { graph.add_output(r); }
  Node* node(const char* name) { return graph.find_node(name); }
  std::string error() {
    return error_of([&] { verify(graph); });
  }
  // Puts another constant in the place of an input of the FakeQuantize node.
  void constant(size_t index, Tensor t) { graph.set_input(node("q"), index, graph.add_constant("", std::move(t))); }
};

TEST(Verify, AcceptsAWholeGraph) {
  Small s;
  EXPECT_EQ(s.error(), "");
  EXPECT_EQ(error_of([&] { verify(s.graph.clone()); }), "");
}

TEST(Verify, RefusesUnknownAttributesAndWrongTypes) {
  Small s;
  s.node("q")->attributes["qmni"] = int64_t{-127};
  EXPECT_EQ(s.error(), "node 'q' (FakeQuantize): attribute 'qmni' is unknown; did you mean 'qmin'?");
  s.node("q")->attributes = {{"qmin", -127.0f}};
  EXPECT_EQ(s.error(), "node 'q' (FakeQuantize): attribute 'qmin' is of type float, expected int");
}

TEST(Verify, RefusesWrongArity) {
  Small s;
  s.graph.set_input(s.node("r"), 1, s.x);
  EXPECT_EQ(s.error(), "node 'r' (Relu): 2 inputs, expected 1");
}

TEST(Verify, RefusesNodesOutOfOrder) {
  Graph graph;
  Value* x = graph.add_input("x", floats({1}));
  Value* a = graph.add(OpKind::kRelu, "a", {x});
  graph.add_output(graph.add(OpKind::kRelu, "b", {a}));
  Value* c = graph.add(OpKind::kNeg, "c", {x});
  graph.set_input(graph.find_node("b"), 0, c);
  EXPECT_EQ(error_of([&] { verify(graph); }), "node 'b' (Relu): reads 'c' before node 'c' (Neg) makes it");
  graph.sort_topologically();
  EXPECT_EQ(error_of([&] { verify(graph); }), "");
}

TEST(Verify, RefusesValuesThatNobodyMakes) {
  Small s;
  s.graph.add_output(s.q);
  EXPECT_EQ(s.error(), "");
  s.graph.add_output(s.q);
  EXPECT_THAT(s.error(), HasSubstr("value 'q' is an output twice"));
  Graph none;
  EXPECT_THAT(error_of([&] { verify(none); }), HasSubstr("has no outputs"));
  Small t;
  t.zero->constant.reset();
  EXPECT_THAT(t.error(), HasSubstr("reads 'zero', which is no graph input, no constant and made by no node"));
}

TEST(Verify, RefusesStaleUserLists) {
  Small s;
  s.node("r")->inputs[0] = s.x;  // not through set_input
  EXPECT_THAT(s.error(), HasSubstr("change inputs through Graph::set_input"));
}

TEST(Verify, RefusesNamesChangedBehindTheGraphsBack) {
  Small s;
  s.q->name = "other";
  EXPECT_THAT(s.error(), HasSubstr("value 'other' is not found by its name"));
  Small t;
  t.node("q")->name = "other";
  EXPECT_THAT(t.error(), HasSubstr("node 'other' is not found by its name"));
}

TEST(Verify, RefusesStaleAndMissingTypes) {
  Small s;
  s.r->type.shape = Shape{kDynamic, 5};
  EXPECT_EQ(
      s.error(),
      "node 'r' (Relu): output 'r' is declared float32[?, 5], but should be float32[?, 4]; run infer_shapes after "
      "changing a graph");
  infer_shapes(s.graph);
  EXPECT_EQ(s.error(), "");
  s.x->type.data_type = DataType::kUndefined;
  EXPECT_THAT(s.error(), HasSubstr("value 'x' has no data type"));
  Small t;
  t.scale->type.shape = Shape{1};
  EXPECT_THAT(t.error(), HasSubstr("constant 'scale' is declared float32[1], but holds float32[]"));
}

TEST(Verify, ChecksFakeQuantize) {
  const auto with_scale = [](float value) {
    Small s;
    s.constant(1, Tensor::scalar<float>(value));
    return s.error();
  };
  for (const float bad : {0.0f, -1.0f, std::nanf(""), std::numeric_limits<float>::infinity()})
    EXPECT_THAT(with_scale(bad), HasSubstr("at 0, expected a positive number")) << bad;
  EXPECT_EQ(with_scale(std::numeric_limits<float>::denorm_min()), "");

  Small zero;
  zero.node("q")->attributes["qmin"] = int64_t{-5};
  zero.constant(2, Tensor::scalar<int8_t>(-6));
  EXPECT_THAT(zero.error(), HasSubstr("holds -6 at 0, expected an integer in [-5, 127]"));
  zero.constant(2, Tensor::scalar<float>(0.5f));
  EXPECT_THAT(zero.error(), HasSubstr("holds 0.5 at 0"));

  Small range;
  range.node("q")->attributes["qmin"] = int64_t{127};
  EXPECT_THAT(range.error(), HasSubstr("qmin 127 is not below qmax 127"));

  Small state;
  for (const char* known : kQuantizerStates) {
    state.node("q")->attributes["state"] = std::string(known);
    EXPECT_EQ(state.error(), "");
  }
  state.node("q")->attributes["state"] = std::string("melted");
  EXPECT_THAT(state.error(), HasSubstr("state is 'melted', expected observing, frozen, learned, offset or clip"));

  Small axis;
  axis.constant(1, filled({3}));
  axis.constant(2, Tensor::of<int8_t>({3}, std::vector<int8_t>(3)));
  EXPECT_THAT(axis.error(), HasSubstr("should be a scalar or have 4 elements"));

  Small variable;
  variable.graph.set_input(variable.node("q"), 1, variable.graph.add_input("s", floats({})));
  EXPECT_THAT(variable.error(), HasSubstr("input 1 's' float32[] should be constant"));
}

TEST(CheckFiniteConstants, NamesTensorAndElement) {
  const auto error = [](Tensor t) {
    Graph graph;
    graph.add(OpKind::kAdd, "sum", {graph.add_input("x", floats({1})), graph.add_constant("w", std::move(t))});
    return error_of([&] { check_finite_constants(graph); });
  };
  EXPECT_EQ(error(Tensor::of<float>({3}, std::vector<float>{1, 2, 3})), "");
  EXPECT_EQ(error(Tensor::of<float>({3}, std::vector<float>{1, 2, std::nanf("")})),
            "initializer 'w' float32[3] holds NaN at element 2 (used by node 'sum' (Add)); the model is damaged or its "
            "training diverged");
  EXPECT_THAT(error(Tensor::of<float>({2}, std::vector<float>{1, -INFINITY})),
              HasSubstr("holds infinity at element 1"));

  Graph half;  // 0x7e00: NaN of float16
  const std::vector<std::byte> bytes = {std::byte{0}, std::byte{0x3c}, std::byte{0}, std::byte{0x7e}};
  half.add_constant("h", Tensor(DataType::kFloat16, {2}, bytes));
  EXPECT_THAT(error_of([&] { check_finite_constants(half); }), HasSubstr("'h' float16[2] holds NaN at element 1"));
}

}  // namespace
}  // namespace octet::ir
