#include "ir/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/print.h"
#include "ir/test_graph.h"
#include "ir/verify.h"

namespace octet::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> order(const Graph& graph) {
  std::vector<std::string> out;
  for (const auto& node : graph.nodes()) out.push_back(node->name);
  return out;
}

// x -> a -> b -> output, and a -> c, unused
struct Chain {
  Graph graph;
  Value* x = graph.add_input("x", floats({2}));
  Value* a = graph.add(OpKind::kRelu, "a", {x});
  Value* b = graph.add(OpKind::kNeg, "b", {a});
  Value* c = graph.add(OpKind::kAbs, "c", {a});
  Chain() { graph.add_output(b); }
};

TEST(GraphTest, NamesAreUnique) {
  Chain g;
  EXPECT_THAT(error_of([&] { g.graph.add_input("a", floats({})); }), HasSubstr("two values are named 'a'"));
  EXPECT_THAT(error_of([&] { g.graph.add(OpKind::kRelu, "a", {g.x}); }), HasSubstr("two nodes are named 'a'"));
  EXPECT_THAT(error_of([&] { g.graph.rename(g.b, "a"); }), HasSubstr("two values are named 'a'"));
  EXPECT_EQ(g.graph.unique_name("a"), "a_1");
  EXPECT_EQ(g.graph.add(OpKind::kRelu, "", {g.x})->name, "Relu");
  EXPECT_EQ(g.graph.add(OpKind::kRelu, "", {g.x})->name, "Relu_1");
}

TEST(GraphTest, InventedNamesAreTheFirstThatAreFree) {
  Chain g;
  for (const char* name : {"Relu", "Relu_1", "Relu_2", "Relu_3"})
    EXPECT_EQ(g.graph.add(OpKind::kRelu, "", {g.x})->name, name);
  g.graph.erase(g.graph.find_node("Relu_1"));
  EXPECT_EQ(g.graph.unique_name("Relu"), "Relu_1");
  g.graph.rename(g.graph.find_value("Relu_2"), "other");
  g.graph.rename(g.graph.find_node("Relu_2"), "other");
  EXPECT_EQ(g.graph.add(OpKind::kRelu, "", {g.x})->name, "Relu_1");
  EXPECT_EQ(g.graph.add(OpKind::kRelu, "", {g.x})->name, "Relu_2");
  EXPECT_EQ(g.graph.add(OpKind::kRelu, "", {g.x})->name, "Relu_4");
}

TEST(GraphTest, InsertsBeforeANodeAndAfterAnother) {
  Chain g;
  Node* b = g.graph.find_node("b");
  g.graph.add(OpKind::kSqrt, "s", {g.a}, {}, b);
  g.graph.add(OpKind::kExp, "e", {g.a}, {}, g.graph.next(b));
  EXPECT_THAT(order(g.graph), ElementsAre("a", "s", "b", "e", "c"));
  EXPECT_EQ(g.graph.next(g.graph.find_node("c")), nullptr);
}

TEST(GraphTest, ReplaceUsesCanSpareANode) {
  Chain g;
  Node* b = g.graph.find_node("b");
  Value* s = g.graph.add(OpKind::kSqrt, "s", {g.a}, {}, b);
  g.graph.replace_uses(g.a, s, false, s->producer);
  EXPECT_EQ(s->producer->input(0), g.a);
  EXPECT_EQ(b->input(0), s);
  EXPECT_THAT(g.a->users, ElementsAre(s->producer));
  EXPECT_EQ(s->users.size(), 2u);
  verify(g.graph);
}

TEST(GraphTest, ReplaceUsesTakesEveryUseOfANode) {
  Chain g;
  Value* sum = g.graph.add(OpKind::kAdd, "sum", {g.b, g.b});
  g.graph.add_output(sum);
  g.graph.replace_uses(g.b, g.c);
  EXPECT_THAT(sum->producer->inputs, ElementsAre(g.c, g.c));
  EXPECT_THAT(g.b->users, ElementsAre());
  EXPECT_THAT(g.c->users, ElementsAre(sum->producer, sum->producer));
  EXPECT_TRUE(g.graph.is_output(g.c) && !g.graph.is_output(g.b));
  verify(g.graph);
}

TEST(GraphTest, ReplaceUsesMovesOutputsUnlessKept) {
  Chain g;
  g.graph.replace_uses(g.b, g.c, true);
  EXPECT_THAT(g.graph.outputs(), ElementsAre(g.b));
  g.graph.replace_uses(g.b, g.c);
  EXPECT_THAT(g.graph.outputs(), ElementsAre(g.c));
}

TEST(GraphTest, RemoveDeadFollowsChains) {
  Chain g;
  g.graph.add_constant("unused", Tensor::scalar<float>(1));
  g.graph.add(OpKind::kExp, "d", {g.c});
  EXPECT_EQ(g.graph.remove_dead(), 3);  // d, then c, and the constant
  EXPECT_THAT(order(g.graph), ElementsAre("a", "b"));
  EXPECT_EQ(g.graph.find_value("unused"), nullptr);
  EXPECT_EQ(g.graph.remove_dead(), 0);
  verify(g.graph);
}

TEST(GraphTest, EraseRefusesWhatIsUsed) {
  Chain g;
  EXPECT_THROW(g.graph.erase(g.graph.find_node("a")), InternalError);
  EXPECT_THROW(g.graph.erase(g.graph.find_node("b")), InternalError);  // a graph output
  verify(g.graph);                                                     // still whole
}

TEST(GraphTest, SortIsStableAndNamesACycle) {
  Chain g;
  Value* d = g.graph.add(OpKind::kExp, "d", {g.x});
  g.graph.set_input(g.graph.find_node("a"), 0, d);
  g.graph.sort_topologically();
  EXPECT_THAT(order(g.graph), ElementsAre("d", "a", "b", "c"));
  g.graph.set_input(g.graph.find_node("d"), 0, g.c);
  EXPECT_THAT(error_of([&] { g.graph.sort_topologically(); }), HasSubstr("depends on its own output (a cycle)"));
}

TEST(GraphTest, RenamesNodesAndValues) {
  Chain g;
  g.graph.rename(g.b, "logits");
  g.graph.rename(g.graph.find_node("b"), "head");
  EXPECT_EQ(g.graph.find_value("logits"), g.b);
  EXPECT_EQ(g.graph.find_node("head"), g.b->producer);
  EXPECT_EQ(g.graph.find_node("b"), nullptr);
  EXPECT_THAT(error_of([&] { g.graph.rename(g.b->producer, "a"); }), HasSubstr("two nodes are named 'a'"));
  verify(g.graph);
}

TEST(GraphTest, SetConstantKeepsTheTypeTrue) {
  Graph graph;
  Value* w = graph.add_constant("w", filled({2}), true);
  graph.set_constant(w, Tensor::of<int8_t>({3}, std::vector<int8_t>{1, 2, 3}));
  EXPECT_EQ(type_string(w->type), "int8[3]");
  EXPECT_TRUE(w->trainable);
  EXPECT_THROW(graph.set_constant(graph.add_input("x", floats({})), Tensor::scalar<float>(1)), InternalError);
}

TEST(GraphTest, CloneIsIndependent) {
  Chain g;
  g.graph.metadata["k"] = "v";
  const std::string before = to_text(g.graph);
  Graph copy = g.graph.clone();
  copy.erase(copy.find_node("c"));
  copy.rename(copy.find_value("x"), "y");
  EXPECT_EQ(to_text(g.graph), before);
  EXPECT_EQ(copy.find_node("a")->input(0)->name, "y");
  verify(copy);
}

TEST(NodeTest, ReadsAttributesWithDefaults) {
  Chain g;
  Value* e = g.graph.add(OpKind::kElu, "elu", {g.x}, {{"alpha", 2.0f}});
  EXPECT_EQ(e->producer->get_float("alpha"), 2.0f);
  Value* soft = g.graph.add(OpKind::kSoftmax, "soft", {g.x});
  EXPECT_EQ(soft->producer->get_int("axis", 7), -1);  // the table's default comes before the fallback
  EXPECT_EQ(soft->producer->get_int("other", 7), 7);
  e->producer->attributes["none"] = std::vector<int64_t>();
  EXPECT_EQ(e->producer->get_ints("none", {1, 2}), (std::vector<int64_t>{1, 2}));
  EXPECT_THAT(error_of([&] { e->producer->get_ints("alpha"); }),
              HasSubstr("attribute alpha has another type than ints"));
}

TEST(TensorTest, ConvertsEveryType) {
  const auto half = [](uint16_t bits, DataType type) {
    return Tensor(type, {1}, {std::byte(bits & 255), std::byte(bits >> 8)}).to_floats()[0];
  };
  EXPECT_EQ(half(0x3c00, DataType::kFloat16), 1.0f);
  EXPECT_EQ(half(0xc500, DataType::kFloat16), -5.0f);
  EXPECT_EQ(half(0x0001, DataType::kFloat16), 0x1p-24f);
  EXPECT_EQ(half(0x8001, DataType::kFloat16), -0x1p-24f);
  EXPECT_EQ(half(0x7bff, DataType::kFloat16), 65504.0f);
  EXPECT_EQ(half(0x7c00, DataType::kFloat16), INFINITY);
  EXPECT_EQ(half(0x4049, DataType::kBFloat16), 3.140625f);
  EXPECT_THAT(Tensor::of<int8_t>({2}, std::vector<int8_t>{-128, 127}).to_ints(), ElementsAre(-128, 127));
  EXPECT_THAT(Tensor::of<uint8_t>({1}, std::vector<uint8_t>{255}).to_floats(), ElementsAre(255.0f));
  EXPECT_THROW(Tensor::scalar<float>(1).values<int8_t>(), InternalError);
  EXPECT_THROW(Tensor(DataType::kFloat32, {2}, std::vector<std::byte>(7)), InternalError);
}

}  // namespace
}  // namespace octet::ir
