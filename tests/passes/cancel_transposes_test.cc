#include "passes/cancel_transposes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "passes/evaluate.h"
#include "support/keras_twin.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using testing::KerasTwin;
using testing::LayoutBuilder;

TEST(CancelTransposesTest, ThroughBiasAndActivation) {
  LayoutBuilder b;
  auto* y = b.to_nhwc(b.conv(b.x, "conv1", 3), "t1");
  y = b.relu(b.add(y, b.parameter("bias", {3}), "bias_add"), "relu");
  b.graph.add_output(b.conv(b.to_nchw(y, "t2"), "conv2", 2));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 2);
  EXPECT_EQ(b.graph.nodes().size(), 4u);
  EXPECT_EQ(b.graph.find_value("bias")->constant->shape(), (ir::Shape{1, 3, 1, 1}));
  EXPECT_EQ(b.graph.find_value("relu")->type.shape, (ir::Shape{1, 3, 8, 8}));
}

TEST(CancelTransposesTest, ThroughPRelu) {
  LayoutBuilder b;
  auto* y = b.op(OpKind::kPRelu, "prelu", {b.to_nhwc(b.conv(b.x, "conv1", 3), "t1"), b.parameter("slope", {3})});
  b.graph.add_output(b.conv(b.to_nchw(y, "t2"), "conv2", 2));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 2);
  EXPECT_EQ(b.graph.find_value("slope")->constant->shape(), (ir::Shape{1, 3, 1, 1}));
}

TEST(CancelTransposesTest, ThroughAResidualBlockAndAConcat) {
  LayoutBuilder b;
  auto* x = b.relu(b.to_nhwc(b.conv(b.x, "stem", 3), "t1"), "relu");
  auto* y = b.to_nhwc(b.conv(b.to_nchw(x, "t2"), "conv", 3), "t3");
  auto* sum = b.add(y, x, "add");
  auto* both = b.op(OpKind::kConcat, "concat", {sum, x}, {{"axis", int64_t{3}}});
  b.graph.add_output(b.conv(b.to_nchw(both, "t4"), "head", 2));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 4);
  EXPECT_EQ(b.graph.find_node("concat")->get_int("axis"), 1);
}

TEST(CancelTransposesTest, AGraphOutputKeepsItsLayout) {
  LayoutBuilder b;
  auto* y = b.to_nhwc(b.conv(b.x, "conv", 3), "t1");
  b.graph.add_output(b.relu(y, "nhwc"));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 0);
  EXPECT_EQ(b.graph.outputs()[0]->type.shape, (ir::Shape{1, 8, 8, 3}));
}

TEST(CancelTransposesTest, MergesWhatDoesNotCancel) {
  LayoutBuilder b;
  auto* y = b.to_nhwc(b.to_nhwc(b.x, "t1"), "t2");
  b.graph.add_output(b.relu(y, "out"));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 1);
  EXPECT_EQ(b.graph.find_node("t2")->get_ints("perm"), (std::vector<int64_t>{0, 3, 1, 2}));
}

std::map<std::string, int> kinds_in_order(const ir::Graph& graph) {
  std::map<std::string, int> out;
  for (const auto& node : graph.nodes()) ++out[node->info().name];
  return out;
}

TEST(CancelTransposesTest, GoesWhereTheLayoutIsNeeded) {
  LayoutBuilder b;
  auto* y = b.to_nhwc(b.x, "t1");
  b.graph.add_output(b.op(OpKind::kFlatten, "flatten", {y}));
  b.graph.add_output(b.conv(b.to_nchw(b.relu(y, "relu"), "t2"), "conv", 2));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 1);
  EXPECT_EQ(b.graph.find_node("flatten")->input(0)->producer->kind, OpKind::kTranspose);
}

TEST(CancelTransposesTest, StaysWhereNothingIsSaved) {
  LayoutBuilder b;
  auto* y = b.to_nhwc(b.x, "t1");
  b.graph.add_output(b.op(OpKind::kFlatten, "flatten", {b.relu(y, "relu")}));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 0);
  EXPECT_EQ(b.graph.find_node("relu")->input(0)->producer, b.graph.find_node("t1"));
}

// Every operator with a rule, between two convolutions.
TEST(CancelTransposesTest, ThroughEveryOperatorWithARule) {
  using Ints = std::vector<int64_t>;
  const auto ints = [](LayoutBuilder& b, const std::string& name, const Ints& v) {
    return b.graph.add_constant(name, ir::Tensor::of<int64_t>({static_cast<int64_t>(v.size())}, v));
  };
  const auto floats = [](LayoutBuilder& b, const std::string& name, const std::vector<float>& v) {
    return b.graph.add_constant(name, ir::Tensor::of<float>({static_cast<int64_t>(v.size())}, v));
  };
  using Build = std::function<ir::Value*(LayoutBuilder&, ir::Value*)>;
  const std::map<std::string, Build> cases = {
      {"pad",
       [&](auto& b, auto* v) {
         return b.op(OpKind::kPad, "n", {v, ints(b, "p", {0, 1, 2, 0, 0, 3, 1, 1})});
       }},
      {"pad with axes",
       [&](auto& b, auto* v) {
         return b.op(OpKind::kPad, "n", {v, ints(b, "p", {1, 2, 2, 0}), nullptr, ints(b, "a", {-2, 1})});
       }},
      {"slice",
       [&](auto& b, auto* v) {
         return b.op(OpKind::kSlice, "n", {v, ints(b, "s", {1, 0}), ints(b, "e", {7, 2}), ints(b, "a", {2, -1})});
       }},
      {"slice from the first axis",
       [&](auto& b, auto* v) {
         return b.op(OpKind::kSlice, "n", {v, ints(b, "s", {0, 2}), ints(b, "e", {1, 7})});
       }},
      {"concat with a constant",
       [&](auto& b, auto* v) {
         return b.op(OpKind::kConcat, "n", {v, b.parameter("c", {1, 8, 8, 2})}, {{"axis", int64_t{-1}}});
       }},
      {"split",
       [&](auto& b, auto* v) {
         ir::Node* n = b.graph.add_node(OpKind::kSplit, "n", {v}, {"s1", "s2", "s3"},
                                        {{"axis", int64_t{3}}, {"num_outputs", int64_t{3}}});
         ir::infer_node(*n);
         return b.add(b.relu(n->output(2), "r"), n->output(0), "sum");
       }},
      {"mean",
       [&](auto& b, auto* v) {
         return b.op(OpKind::kReduceMean, "n", {v}, {{"axes", Ints{1, 2}}});
       }},
      {"maximum by an input",
       [&](auto& b, auto* v) {
         return b.op(OpKind::kReduceMax, "n", {v, ints(b, "a", {-1})});
       }},
      {"softmax", [&](auto& b, auto* v) { return b.op(OpKind::kSoftmax, "n", {v}); }},
      {"resize",
       [&](auto& b, auto* v) {
         return b.op(OpKind::kResize, "n", {v, nullptr, floats(b, "s", {1, 2, 3, 1})},
                     {{"mode", std::string("linear")}});
       }},
      {"resize to sizes",
       [&](auto& b, auto* v) {
         return b.op(OpKind::kResize, "n", {v, nullptr, nullptr, ints(b, "s", {1, 16, 4, 3})});
       }},
      {"expand",
       [&](auto& b, auto* v) {
         auto* mean = b.op(OpKind::kReduceMean, "m", {v}, {{"axes", Ints{1, 2}}});
         return b.op(OpKind::kExpand, "n", {mean, ints(b, "s", {4, 8, 1})});
       }},
      {"a constant of three axes",
       [&](auto& b, auto* v) {
         return b.op(OpKind::kMul, "n", {v, b.parameter("c", {8, 1, 3})});
       }},
      {"a quantized constant that two read",
       [&](auto& b, auto* v) {
         auto* zero = b.graph.add_constant("z", ir::Tensor::scalar<int8_t>(0));
         auto* scale = b.graph.add_constant("s", ir::Tensor::scalar(0.01f));
         auto* bias = b.op(OpKind::kFakeQuantize, "q", {b.parameter("c", {3}), scale, zero});
         return b.op(OpKind::kMul, "again", {b.add(v, bias, "n"), bias});
       }},
      {"quantizer of channels",
       [&](auto& b, auto* v) {
         auto* zeros = b.graph.add_constant("z", ir::Tensor::of<int8_t>({3}, std::vector<int8_t>{0, 0, 0}));
         return b.op(OpKind::kFakeQuantize, "n", {v, floats(b, "s", {0.1f, 0.2f, 0.3f}), zeros},
                     {{"axis", int64_t{3}}});
       }},
      {"clip",
       [&](auto& b, auto* v) {
         auto* low = b.graph.add_constant("low", ir::Tensor::scalar(-0.5f));
         return b.op(OpKind::kClip, "n", {v, low});
       }},
  };
  for (const auto& [name, build] : cases) {
    SCOPED_TRACE(name);
    LayoutBuilder b;
    ir::Value* y = build(b, b.to_nhwc(b.conv(b.x, "conv1", 3), "t1"));
    b.graph.add_output(b.conv(b.to_nchw(y, "t2"), "conv2", 2));
    EXPECT_EQ(run_and_compare(b.graph, cancel_transposes, 1e-6), 2);
    EXPECT_EQ(kinds_in_order(b.graph).count("Transpose"), 0u);
  }
}

// The mean over an image, or its flattening, ends the layout: no Transpose stays before the classifier.
TEST(CancelTransposesTest, BeforeClassifiers) {
  using Ints = std::vector<int64_t>;
  for (const bool transposed : {false, true}) {
    LayoutBuilder b;
    auto* y = b.to_nhwc(b.conv(b.x, "conv", 3), "t1");
    auto* mean = b.op(OpKind::kReduceMean, "mean", {y}, {{"axes", Ints{1, 2}}, {"keepdims", int64_t{0}}});
    b.graph.add_output(b.gemm(mean, "fc1", 2));
    auto* flat = b.relu(b.op(OpKind::kFlatten, "flatten", {y}), "relu");
    auto* w = b.parameter("w", transposed ? ir::Shape{5, 192} : ir::Shape{192, 5});
    b.graph.add_output(b.op(OpKind::kGemm, "fc2", {flat, w}, {{"transB", int64_t{transposed}}}));
    EXPECT_EQ(run_and_compare(b.graph, cancel_transposes, 1e-6), 1);
    EXPECT_EQ(b.graph.find_node("mean")->get_ints("axes"), (Ints{2, 3}));
    EXPECT_EQ(kinds_in_order(b.graph).count("Transpose"), 0u);
  }
  // One image axis alone: what is left of the two others may be in another order.
  LayoutBuilder b;
  auto* y = b.to_nhwc(b.conv(b.x, "conv", 3), "t1");
  auto* rows = b.op(OpKind::kReduceMean, "rows", {b.relu(y, "relu")}, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}});
  b.graph.add_output(b.conv(b.to_nchw(b.relu(y, "again"), "t2"), "conv2", 2));
  b.graph.add_output(rows);
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes, 1e-6), 1);
  EXPECT_EQ(b.graph.outputs()[1]->type.shape, (ir::Shape{1, 8, 3}));
}

// A list of axes without any means all of them, as no list does: nothing of the order is left behind the reduction.
TEST(CancelTransposesTest, BesideAReductionOfAllAxes) {
  using Ints = std::vector<int64_t>;
  for (const int64_t keepdims : {0, 1})
    for (const std::string stated : {"no", "attribute", "input"}) {
      LayoutBuilder b;
      auto* y = b.to_nhwc(b.conv(b.x, "conv", 3), "t1");
      std::vector<ir::Value*> inputs = {b.relu(y, "relu")};
      ir::Attributes attributes = {{"keepdims", keepdims}};
      if (stated == "attribute") attributes["axes"] = Ints{};
      if (stated == "input") inputs.push_back(b.graph.add_constant("axes", ir::Tensor::of<int64_t>({0}, Ints{})));
      auto* all = b.op(OpKind::kReduceMax, "all", inputs, attributes);
      b.graph.add_output(b.conv(b.to_nchw(b.relu(y, "again"), "t2"), "conv2", 2));
      b.graph.add_output(all);
      run_and_compare(b.graph, cancel_transposes, 1e-6);
      EXPECT_EQ(all->type.shape, keepdims != 0 ? ir::Shape(4, 1) : ir::Shape());
    }
}

// support/keras_twin.h: what is left is the same as in NCHW, but for the Transpose behind the input.
TEST(CancelTransposesTest, AKerasNetworkIsItsTwin) {
  for (const int64_t batch : {1, 2}) {
    KerasTwin keras(true, batch), torch(false, batch);
    const int before = kinds_in_order(keras.graph)["Transpose"];
    EXPECT_EQ(run_and_compare(keras.graph, cancel_transposes, 1e-6), before - 1);
    EXPECT_EQ(keras.graph.inputs()[0]->users.size(), 1u);
    EXPECT_EQ(keras.graph.inputs()[0]->users[0]->kind, OpKind::kTranspose);
    auto expected = kinds_in_order(torch.graph);
    expected["Transpose"] = 1;
    EXPECT_EQ(kinds_in_order(keras.graph), expected);
    // The same numbers for the same image.
    Outputs a = outputs_of(torch.graph);
    ir::Graph& g = keras.graph;
    g.replace_uses(g.inputs()[0]->users[0]->output(), g.add_input("images", torch.graph.inputs()[0]->type));
    g.remove_dead();
    g.erase_input(g.inputs()[0]);
    EXPECT_LT(difference(outputs_of(g), a), 1e-6);
  }
}

// Graphs of everything that lets an order pass, ends it or sets one, at random.
class RandomGraph : public LayoutBuilder {
 public:
  explicit RandomGraph(uint32_t seed) : LayoutBuilder({1, 2, 4, 3}), random_(seed) {
    pool_.push_back(x);
    for (int i = 0; i < 14; ++i)
      if (ir::Value* made = next("n" + std::to_string(i))) pool_.push_back(made);
    for (ir::Value* v : std::vector<ir::Value*>(pool_.begin() + 1, pool_.end()))
      if (v->users.empty() || one_of(6) == 0) graph.add_output(v);
  }

 private:
  using Ints = std::vector<int64_t>;
  int64_t one_of(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  ir::Value* ints(const std::string& name, const Ints& v) {
    return graph.add_constant(name, ir::Tensor::of<int64_t>({static_cast<int64_t>(v.size())}, v));
  }
  ir::Value* next(const std::string& name) {
    ir::Value* v = pool_[static_cast<size_t>(one_of(static_cast<int64_t>(pool_.size())))];
    const ir::Shape shape = *v->type.shape;
    const auto rank = static_cast<int64_t>(shape.size());
    if (ir::element_count(shape) > 4000 || rank < 2) return nullptr;
    const int64_t axis = one_of(rank);
    switch (one_of(13)) {
      case 0:
      case 1:
      case 2: {
        Ints perm(static_cast<size_t>(rank));
        for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
        if (rank == 4 && one_of(3) > 0)
          perm = one_of(2) == 0 ? Ints{0, 2, 3, 1} : Ints{0, 3, 1, 2};
        else
          std::shuffle(perm.begin(), perm.end(), random_);
        return op(OpKind::kTranspose, name, {v}, {{"perm", perm}});
      }
      case 3: {
        for (ir::Value* other : pool_)
          if (other != v && *other->type.shape == shape) return add(v, other, name);
        return op(OpKind::kMul, name, {v, parameter(name + ".c", ir::Shape(shape.end() - 2, shape.end()))});
      }
      case 4:
        return op(OpKind::kConcat, name, {v, v}, {{"axis", axis}});
      case 5: {
        Ints pads(static_cast<size_t>(2 * rank));
        pads[static_cast<size_t>(axis)] = 1;
        return op(OpKind::kPad, name, {v, ints(name + ".p", pads)});
      }
      case 6:
        return op(OpKind::kReduceMean, name, {v}, {{"axes", Ints{axis}}, {"keepdims", one_of(2)}});
      case 7:
        return op(OpKind::kSoftmax, name, {v}, {{"axis", axis}});
      case 8:
        return rank == 4 ? conv(v, name, 2) : relu(v, name);
      case 9: {
        if (shape[0] != 1) return nullptr;
        ir::Value* flat = op(OpKind::kFlatten, name + ".flat", {v});
        return op(OpKind::kMatMul, name, {relu(flat, name + ".relu"), parameter(name + ".w", {channels(flat), 3})});
      }
      case 10:
        return op(OpKind::kSlice, name, {v, ints(name + ".s", {0}), ints(name + ".e", {2}), ints(name + ".a", {axis})});
      case 11:
        return shape[static_cast<size_t>(axis)] == 1
                   ? op(OpKind::kSqueeze, name, {v, ints(name + ".a", {axis})})
                   : op(OpKind::kMul, name, {v, parameter(name + ".c", {shape.back()})});
      default:
        return relu(v, name);
    }
  }

  std::mt19937 random_;
  std::vector<ir::Value*> pool_;
};

TEST(CancelTransposesTest, RandomGraphsComputeWhatTheyDid) {
  int saved = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    saved += run_and_compare(random.graph, cancel_transposes, 1e-5);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(saved, 100);
}

}  // namespace
}  // namespace octet::passes
