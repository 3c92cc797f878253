#include "passes/free_batch.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/evaluate_graph.h"
#include "ir/infer.h"
#include "onnx/import.h"
#include "passes/pipelines.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ir::Shape;
using ir::Tensor;

using Build = std::function<ir::Value*(ir::Graph&, ir::Value*)>;

// A network of an input [batch, 8, 4, 4] that ends in `build`.
ir::Graph network(int64_t batch, const Build& build) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, Shape{batch, 8, 4, 4}});
  g.add_output(build(g, g.add(OpKind::kRelu, "relu", {x})));
  return g;
}

ir::Value* ints(ir::Graph& g, const std::string& name, const std::vector<int64_t>& values) {
  return g.add_constant(name, Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

ir::Value* reshape(ir::Graph& g, ir::Value* x, const std::string& name, const std::vector<int64_t>& shape) {
  return g.add(OpKind::kReshape, name, {x, ints(g, name + "_shape", shape)});
}

ir::Value* floats(ir::Graph& g, const std::string& name, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(ir::element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 2.5f;
  return g.add_constant(name, Tensor::of<float>(shape, values));
}

Tensor image(int seed) {
  std::vector<float> values(128);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 37 + static_cast<size_t>(seed) * 11) % 16) / 8;
  return Tensor::of<float>({1, 8, 4, 4}, values);
}

// The only output.
std::vector<float> evaluated(const ir::Graph& g, const Tensor& x) {
  return ir::evaluate_graph(g, {x}).front().to_floats();
}

std::vector<float> joined(std::vector<float> a, const std::vector<float>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(FreeBatch, FreesWhatTreatsImagesApart) {
  const std::vector<Build> free = {
      [](ir::Graph& g, ir::Value* x) { return g.add(OpKind::kFlatten, "y", {x}); },
      [](ir::Graph& g, ir::Value* x) {
        return reshape(g, x, "y", {1, -1});
      },
      [](ir::Graph& g, ir::Value* x) {
        return reshape(g, x, "y", {-1, 128});
      },
      [](ir::Graph& g, ir::Value* x) {  // as torch.onnx.export writes a flatten
        return g.add(OpKind::kReshape, "y", {x, ints(g, "y_shape", {1, 128})}, {{"allowzero", int64_t{1}}});
      },
      [](ir::Graph& g, ir::Value* x) {  // channel shuffle
        ir::Value* t = g.add(OpKind::kTranspose, "t", {reshape(g, x, "a", {1, 2, 4, 4, 4})},
                             {{"perm", std::vector<int64_t>{0, 2, 1, 3, 4}}});
        return reshape(g, t, "y", {1, 8, 4, 4});
      },
      [](ir::Graph& g, ir::Value* x) {
        return g.add(OpKind::kSoftmax, "y", {x}, {{"axis", int64_t{1}}});
      },
      [](ir::Graph& g, ir::Value* x) {  // a linear layer on rows of tokens, as the newer exporter writes it
        ir::Value* rows = reshape(g, x, "rows", {32, 4});
        ir::Value* y = g.add(OpKind::kMatMul, "p", {rows, floats(g, "w", {4, 4})});
        return reshape(g, y, "y", {1, 8, 16});
      },
      [](ir::Graph& g, ir::Value* x) {  // attention: heads before images, images and heads on one axis
        const std::vector<int64_t> first{1, 0, 2, 3}, turned{0, 2, 1};
        ir::Value* parts = g.add(OpKind::kTranspose, "parts", {reshape(g, x, "h", {1, 2, 16, 4})}, {{"perm", first}});
        ir::Value* q = g.add(OpKind::kSlice, "q", {parts, ints(g, "q0", {0}), ints(g, "q1", {1}), ints(g, "qa", {0})});
        ir::Value* head = reshape(g, g.add(OpKind::kSqueeze, "s", {q, ints(g, "sa", {0})}), "one", {1, 16, 4});
        ir::Value* key = g.add(OpKind::kTranspose, "key", {head}, {{"perm", turned}});
        ir::Value* scores = g.add(OpKind::kSoftmax, "p", {g.add(OpKind::kMatMul, "qk", {head, key})});
        return g.add(OpKind::kMatMul, "y", {scores, head});
      },
      [](ir::Graph& g,
         ir::Value* x) {  // tokens before images, as torch.nn.MultiheadAttention has them, and rows of both
        const std::vector<int64_t> turned{1, 0, 2};
        ir::Value* tokens = g.add(OpKind::kTranspose, "t", {reshape(g, x, "a", {1, 16, 8})}, {{"perm", turned}});
        ir::Value* heads = reshape(g, reshape(g, tokens, "h", {16, 2, 4}), "j", {16, 1, 8});
        ir::Value* rows = g.add(OpKind::kGemm, "p", {reshape(g, heads, "r", {16, 8}), floats(g, "w", {8, 4})});
        return g.add(OpKind::kTranspose, "y", {reshape(g, rows, "b", {16, 1, 4})}, {{"perm", turned}});
      },
      [](ir::Graph& g, ir::Value* x) {  // windows of an image beside each other, and back
        const std::vector<int64_t> order{0, 2, 4, 1, 3, 5};
        ir::Value* cut = reshape(g, x, "cut", {1, 8, 2, 2, 2, 2});
        ir::Value* windows = reshape(g, g.add(OpKind::kTranspose, "t", {cut}, {{"perm", order}}), "w", {4, 8, 4});
        return reshape(g, g.add(OpKind::kRelu, "r", {windows}), "y", {1, 2, 2, 32});
      },
      [](ir::Graph& g, ir::Value* x) {  // a Squeeze of the one image, and of all else
        ir::Value* squeezed = g.add(OpKind::kSqueeze, "s", {g.add(OpKind::kGlobalAveragePool, "p", {x})});
        return g.add(OpKind::kUnsqueeze, "y", {squeezed, ints(g, "ua", {0})});
      },
      [](ir::Graph& g, ir::Value* x) {  // to sizes that name the batch
        return g.add(OpKind::kResize, "y", {x, nullptr, nullptr, ints(g, "sizes", {1, 8, 7, 9})},
                     {{"mode", std::string("linear")}});
      },
      [](ir::Graph& g, ir::Value* x) {  // a class token
        return g.add(OpKind::kConcat, "y", {floats(g, "token", {1, 1, 4, 4}), x, floats(g, "last", {1, 2, 4, 4})},
                     {{"axis", int64_t{1}}});
      }};
  for (size_t i = 0; i < free.size(); ++i) {
    ir::Graph g = network(1, free[i]);
    const ir::Graph before = g.clone();
    ASSERT_TRUE(free_batch(g)) << i;
    EXPECT_EQ(g.inputs()[0]->type.shape->front(), ir::kDynamic);
    EXPECT_EQ(g.outputs()[0]->type.shape->front(), ir::kDynamic);
    ir::set_batch(g, 5);
    EXPECT_EQ(g.outputs()[0]->type.shape->front(), 5) << i;
    // Two different images: each is what the file's own batch makes of it.
    const ir::Tensor a = image(1), b = image(2);
    const std::vector<float> both = joined(a.to_floats(), b.to_floats());
    const Shape shape{2, 8, 4, 4};
    EXPECT_EQ(evaluated(g, Tensor::of<float>(shape, both)), joined(evaluated(before, a), evaluated(before, b))) << i;
  }
}

// What PyTorch's exporters make of a transformer, for one image (tests/onnx/fixtures).
TEST(FreeBatch, FreesTransformersAsTheyAreExported) {
  for (const char* name : {"tokens_torchscript_17.onnx", "tokens_dynamo_20.onnx"}) {
    ir::Graph g = onnx::import_model(std::string(OCTET_SOURCE_DIR "/tests/onnx/fixtures/") + name);
    const ir::Graph before = g.clone();
    ASSERT_TRUE(free_batch(g)) << name;
    ir::set_batch(g, 2);
    std::vector<float> pixels[2];
    for (int n = 0; n < 2; ++n)
      for (int i = 0; i < 3 * 16 * 16; ++i) pixels[n].push_back(static_cast<float>((i * (31 + 6 * n)) % 17) / 8 - 1);
    const Shape one{1, 3, 16, 16}, two{2, 3, 16, 16};
    EXPECT_EQ(evaluated(g, Tensor::of<float>(two, joined(pixels[0], pixels[1]))),
              joined(evaluated(before, Tensor::of<float>(one, pixels[0])),
                     evaluated(before, Tensor::of<float>(one, pixels[1]))))
        << name;
  }
}

// With one image, Transposes to rows of tokens and back move nothing, and could be Reshapes.
TEST(FreeBatch, KnowsTheImagesBehindThePassesOfATraining) {
  ir::Graph g = network(1, [](ir::Graph& g, ir::Value* x) {
    const auto turned = [&](ir::Value* in, const char* name, std::vector<int64_t> order) {
      return g.add(OpKind::kTranspose, name, {in}, {{"perm", std::move(order)}});
    };
    ir::Value* rows = turned(reshape(g, x, "flat", {1, 8, 16}), "tokens", {0, 2, 1});
    rows = g.add(OpKind::kMatMul, "product", {turned(rows, "tokens_first", {1, 0, 2}), floats(g, "weights", {8, 8})});
    ir::Value* heads = turned(reshape(g, rows, "heads", {16, 4, 2}), "heads_first", {1, 0, 2});
    ir::Value* attention = g.add(OpKind::kMatMul, "attention", {heads, turned(heads, "keys", {0, 2, 1})});
    ir::Value* mixed = turned(g.add(OpKind::kMatMul, "mixed", {attention, heads}), "back", {1, 0, 2});
    return turned(reshape(g, mixed, "joined", {16, 1, 8}), "images_first", {1, 0, 2});
  });
  const ir::Graph before = g.clone();
  run_pipeline(g, training_passes());
  ASSERT_TRUE(free_batch(g));
  ir::set_batch(g, 2);
  const ir::Tensor a = image(1), b = image(2);
  EXPECT_EQ(evaluated(g, Tensor::of<float>({2, 8, 4, 4}, joined(a.to_floats(), b.to_floats()))),
            joined(evaluated(before, a), evaluated(before, b)));
}

TEST(FreeBatch, LeavesWhatGoesOverTheImages) {
  const auto reduce = [](bool keep) {
    return [keep](ir::Graph& g, ir::Value* x) {
      return g.add(OpKind::kReduceSum, "y", {x, ints(g, "axes", {0})}, {{"keepdims", int64_t{keep}}});
    };
  };
  const std::vector<Build> fixed = {
      reduce(true),
      reduce(false),
      [](ir::Graph& g, ir::Value* x) {
        return g.add(OpKind::kSoftmax, "y", {x}, {{"axis", int64_t{0}}});
      },
      [](ir::Graph& g, ir::Value* x) {
        return g.add(OpKind::kTranspose, "y", {x}, {{"perm", std::vector<int64_t>{1, 0, 2, 3}}});
      },
      [](ir::Graph& g, ir::Value* x) {
        return reshape(g, x, "y", {8, 16});
      },
      [](ir::Graph& g, ir::Value* x) {
        return reshape(g, x, "y", {-1, 16});
      },
      [](ir::Graph& g, ir::Value* x) {
        return g.add(OpKind::kSqueeze, "y", {x, ints(g, "axes", {0})});
      },
      [](ir::Graph& g, ir::Value* x) {  // sizes of one image meet the channels
        ir::Value* mean =
            g.add(OpKind::kReduceMean, "m", {x}, {{"axes", std::vector<int64_t>{1, 2, 3}}, {"keepdims", int64_t{0}}});
        return g.add(OpKind::kMul, "y", {mean, reshape(g, mean, "row", {1, 1})});
      }};
  for (size_t i = 0; i < fixed.size(); ++i) {
    ir::Graph g = network(1, fixed[i]);
    EXPECT_FALSE(free_batch(g)) << i;
    EXPECT_EQ(g.inputs()[0]->type.shape->front(), 1);
    EXPECT_NE(g.find_node("y"), nullptr);
  }
}

// Sizes of zero are in nobody's network, but in files that were damaged or made to do harm; this one took a remainder
// by them.
TEST(FreeBatch, LeavesWhatHasNoElements) {
  const auto flat = [](ir::Graph& g, ir::Value* x) { return g.add(OpKind::kFlatten, "y", {x}); };
  ir::Graph none = network(0, flat);
  EXPECT_FALSE(free_batch(none));
  ir::Graph cut = network(1, [](ir::Graph& g, ir::Value* x) {
    ir::Value* channels = g.add(OpKind::kTranspose, "t", {x}, {{"perm", std::vector<int64_t>{1, 0, 2, 3}}});
    ir::Value* empty =
        g.add(OpKind::kSlice, "s", {channels, ints(g, "first", {0}), ints(g, "last", {0}), ints(g, "axes", {3})});
    return g.add(OpKind::kReshape, "y", {empty, ints(g, "shape", {0, 8})}, {{"allowzero", int64_t{1}}});
  });
  EXPECT_FALSE(free_batch(cut));
  ir::Graph sizes = network(1, [](ir::Graph& g, ir::Value* x) {
    ir::Value* empty =
        g.add(OpKind::kSlice, "s", {x, ints(g, "first", {0}), ints(g, "last", {0}), ints(g, "axes", {3})});
    return g.add(OpKind::kResize, "y", {empty, nullptr, nullptr, ints(g, "to", {1, 8, 8, 0})});
  });
  free_batch(sizes);  // a sanitizer sees what it did wrong
}

TEST(FreeBatch, AnOpenBatchStaysAsItIs) {
  ir::Graph g = network(ir::kDynamic, [](ir::Graph& g, ir::Value* x) { return g.add(OpKind::kFlatten, "y", {x}); });
  EXPECT_TRUE(free_batch(g));
}

}  // namespace
}  // namespace octet::passes
