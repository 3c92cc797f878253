#include "train/op_cases.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/infer.h"
#include "train/executor.h"

namespace octet::train::testing {

using ir::Attributes;
using ir::Graph;
using ir::OpKind;
using ir::Value;
using Ints = std::vector<int64_t>;

namespace {

uint64_t next(uint64_t& state) {
  state += 0x9e3779b97f4a7c15ull;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::vector<float> random_values(int64_t count, uint64_t seed, double low, double high) {
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(low + (high - low) * static_cast<double>(next(seed) >> 11) * 0x1p-53);
  return values;
}

Value* ints(Graph& g, const Ints& values) {
  return g.add_constant("", ir::Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}
Value* number(Graph& g, float value) {
  return g.add_constant("", ir::Tensor::scalar<float>(value));
}
Value* parameter(Graph& g, const ir::Shape& shape, double low = -1, double high = 1) {
  const std::string name = g.unique_name("p");
  return g.add_constant(name, random_constant(shape, 77 + g.constants().size(), low, high), true);
}

OpCase unary(const std::string& name, OpKind kind, Attributes attributes = {}, double low = -2, double high = 2) {
  return {name, kind, {2, 3, 4, 5}, [=](Graph& g, Value* x) { return g.add(kind, "y", {x}, attributes); },
          true, low,  high};
}

OpCase binary(const std::string& name, OpKind kind, const ir::Shape& other, double low = 0.5, double high = 2) {
  return {name,
          kind,
          {2, 3, 4, 5},
          [=](Graph& g, Value* x) {
            return g.add(kind, "y", {x, parameter(g, other, low, high)});
          },
          true,
          0.25,
          2};
}

OpCase conv(const std::string& name, ir::Shape input, ir::Shape weight, Attributes attributes, bool bias = true) {
  return {name, OpKind::kConv, input, [=](Graph& g, Value* x) {
            std::vector<Value*> in = {x, parameter(g, weight)};
            if (bias) in.push_back(parameter(g, {weight[0]}));
            return g.add(OpKind::kConv, "y", in, attributes);
          }};
}

OpCase transposed(const std::string& name, ir::Shape weight, int64_t filters, Attributes attributes) {
  return {name, OpKind::kConvTranspose, {2, 4, 5, 6}, [=](Graph& g, Value* x) {
            return g.add(OpKind::kConvTranspose, "y", {x, parameter(g, weight), parameter(g, {filters})}, attributes);
          }};
}

OpCase reduction(const std::string& name, OpKind kind, Ints axes, int64_t keep) {
  return {name, kind, {2, 3, 4, 5}, [=](Graph& g, Value* x) {
            return g.add(kind, "y", {x, ints(g, axes)}, {{"keepdims", keep}});
          }};
}

OpCase resize(const std::string& name, const std::string& mode, const std::string& transform, std::vector<float> scales,
              const std::string& nearest = "round_prefer_floor") {
  return {name, OpKind::kResize, {1, 2, 4, 5}, [=](Graph& g, Value* x) {
            Value* s = g.add_constant("", ir::Tensor::of<float>({4}, scales));
            return g.add(OpKind::kResize, "y", {x, nullptr, s},
                         {{"mode", mode}, {"coordinate_transformation_mode", transform}, {"nearest_mode", nearest}});
          }};
}

std::vector<OpCase> make_cases() {
  using A = Attributes;
  std::vector<OpCase> c = {
      conv("conv", {2, 3, 7, 6}, {4, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}),
      conv("conv asymmetric", {2, 3, 7, 6}, {4, 3, 3, 2}, {{"pads", Ints{0, 1, 2, 0}}, {"strides", Ints{2, 1}}}),
      conv("conv same upper", {2, 3, 7, 6}, {4, 3, 3, 3}, {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}}),
      conv("conv same lower", {2, 3, 7, 6}, {4, 3, 2, 2}, {{"auto_pad", std::string("SAME_LOWER")}}, false),
      conv("conv dilated", {2, 4, 8, 8}, {4, 2, 3, 3}, {{"dilations", Ints{2, 1}}, {"group", int64_t{2}}}),
      conv("conv depthwise", {2, 4, 6, 6}, {4, 1, 3, 3}, {{"group", int64_t{4}}, {"pads", Ints{1, 1, 1, 1}}}),
      conv("conv depthwise wide", {2, 20, 9, 7}, {20, 1, 5, 5},
           {{"group", int64_t{20}}, {"pads", Ints{2, 2, 1, 2}}, {"strides", Ints{2, 1}}}),
      conv("conv depthwise dilated", {2, 4, 9, 7}, {4, 1, 3, 3},
           {{"group", int64_t{4}}, {"pads", Ints{2, 3, 2, 3}}, {"dilations", Ints{2, 3}}}, false),
      // Windows of which an end sees nothing but padding.
      conv("conv of a pixel", {2, 4, 1, 1}, {4, 1, 5, 5}, {{"group", int64_t{4}}, {"pads", Ints{2, 2, 2, 2}}}),
      conv("conv of four pixels", {2, 4, 2, 2}, {4, 1, 5, 5}, {{"group", int64_t{4}}, {"pads", Ints{2, 2, 2, 2}}, {"strides", Ints{2, 2}}}),
      conv("conv wide", {2, 3, 2, 3}, {4, 3, 5, 7}, {{"pads", Ints{2, 3, 4, 5}}, {"strides", Ints{1, 2}}}),
      conv("conv wide dilated", {2, 3, 3, 2}, {4, 3, 3, 4}, {{"pads", Ints{1, 4, 4, 5}}, {"dilations", Ints{2, 3}}}),
      conv("conv 1-D", {2, 3, 9}, {4, 3, 3}, {{"pads", Ints{1, 0}}}),
      transposed("conv transpose", {4, 3, 3, 3}, 3, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}),
      transposed("conv transpose output padding", {4, 3, 3, 3}, 3,
                 {{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 1}}, {"output_padding", Ints{1, 1}}}),
      transposed("conv transpose same", {4, 3, 3, 3}, 3,
                 {{"strides", Ints{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}}),
      transposed("conv transpose output shape", {4, 3, 3, 3}, 3, {{"strides", Ints{2, 2}}, {"output_shape", Ints{10, 12}}}),
      transposed("conv transpose grouped", {4, 2, 2, 3}, 4, {{"group", int64_t{2}}, {"dilations", Ints{2, 1}}}),
      {"gemm", OpKind::kGemm, {3, 5},
       [](Graph& g, Value* x) { return g.add(OpKind::kGemm, "y", {x, parameter(g, {4, 5}), parameter(g, {4})}, {{"transB", int64_t{1}}}); }},
      {"gemm scaled", OpKind::kGemm, {5, 3},
       [](Graph& g, Value* x) {
         return g.add(OpKind::kGemm, "y", {x, parameter(g, {5, 4}), parameter(g, {3, 1})},
                      {{"transA", int64_t{1}}, {"alpha", 0.5f}, {"beta", 2.0f}});
       }},
      {"gemm without bias", OpKind::kGemm, {3, 5},
       [](Graph& g, Value* x) { return g.add(OpKind::kGemm, "y", {x, parameter(g, {5, 4})}); }},
      {"matmul", OpKind::kMatMul, {2, 3, 5},
       [](Graph& g, Value* x) { return g.add(OpKind::kMatMul, "y", {x, parameter(g, {5, 4})}); }},
      {"batch norm", OpKind::kBatchNormalization, {3, 4, 5, 6},
       [](Graph& g, Value* x) {
         return g.add(OpKind::kBatchNormalization, "y",
                      {x, parameter(g, {4}, 0.5, 1.5), parameter(g, {4}), g.add_constant("mean", random_constant({4}, 5)),
                       g.add_constant("variance", random_constant({4}, 6, 0.5, 2))},
                      {{"epsilon", 1e-3f}});
       }},
      {"layer norm", OpKind::kLayerNormalization, {2, 3, 4},
       [](Graph& g, Value* x) { return g.add(OpKind::kLayerNormalization, "y", {x, parameter(g, {4}), parameter(g, {4})}); }},
      {"layer norm of two axes without a shift", OpKind::kLayerNormalization, {2, 3, 4},
       [](Graph& g, Value* x) {
         return g.add(OpKind::kLayerNormalization, "y", {x, parameter(g, {3, 4})}, {{"axis", int64_t{1}}, {"epsilon", 0.01f}});
       }},
      {"lrn", OpKind::kLRN, {2, 6, 3, 3},
       [](Graph& g, Value* x) { return g.add(OpKind::kLRN, "y", {x}, {{"size", int64_t{4}}, {"alpha", 0.3f}, {"beta", 0.6f}}); }},
      unary("relu", OpKind::kRelu),
      {"clip", OpKind::kClip, {2, 3, 4},
       [](Graph& g, Value* x) { return g.add(OpKind::kClip, "y", {x, number(g, -1), number(g, 0.75f)}); }},
      {"clip above", OpKind::kClip, {2, 3, 4},
       [](Graph& g, Value* x) { return g.add(OpKind::kClip, "y", {x, nullptr, number(g, 0.75f)}); }},
      unary("leaky relu", OpKind::kLeakyRelu, {{"alpha", 0.2f}}),
      {"prelu", OpKind::kPRelu, {2, 3, 4, 5},
       [](Graph& g, Value* x) { return g.add(OpKind::kPRelu, "y", {x, parameter(g, {3, 1, 1})}); }},
      unary("elu", OpKind::kElu, {{"alpha", 0.7f}}),
      unary("sigmoid", OpKind::kSigmoid),
      unary("hard sigmoid", OpKind::kHardSigmoid, {{"alpha", 0.3f}, {"beta", 0.4f}}),
      unary("hard swish", OpKind::kHardSwish, {}, -5, 5),
      unary("tanh", OpKind::kTanh),
      unary("softplus", OpKind::kSoftplus),
      unary("softmax", OpKind::kSoftmax, {{"axis", int64_t{1}}}),
      unary("log softmax", OpKind::kLogSoftmax),
      unary("exp", OpKind::kExp),
      unary("log", OpKind::kLog, {}, 0.5, 2),
      unary("sqrt", OpKind::kSqrt, {}, 0.5, 2),
      unary("neg", OpKind::kNeg),
      unary("abs", OpKind::kAbs),
      unary("erf", OpKind::kErf),
      unary("gelu", OpKind::kGelu),
      unary("mish", OpKind::kMish),
      unary("floor", OpKind::kFloor),
      binary("add", OpKind::kAdd, {3, 1, 1}),
      binary("sub", OpKind::kSub, {4, 1}),
      binary("mul", OpKind::kMul, {2, 3, 4, 5}),
      binary("div", OpKind::kDiv, {5}),
      binary("pow", OpKind::kPow, {}),
      binary("min", OpKind::kMin, {4, 5}),
      binary("max", OpKind::kMax, {4, 5}),
      unary("max pool", OpKind::kMaxPool, {{"kernel_shape", Ints{2, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{0, 1, 0, 1}}}),
      unary("max pool ceil", OpKind::kMaxPool,
            {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}, {"pads", Ints{1, 0, 0, 1}}}),
      {"max pool 1-D", OpKind::kMaxPool, {2, 3, 9},
       [](Graph& g, Value* x) {
         return g.add(OpKind::kMaxPool, "y", {x}, A{{"kernel_shape", Ints{2}}, {"dilations", Ints{2}}});
       }},
      unary("average pool", OpKind::kAveragePool, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 1}}}),
      unary("average pool padded", OpKind::kAveragePool,
            {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 0, 0, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}}),
      unary("average pool counting pads", OpKind::kAveragePool,
            {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 0, 0, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}, {"count_include_pad", int64_t{1}}}),
      unary("average pool dilated", OpKind::kAveragePool,
            {{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{2, 1}}, {"pads", Ints{1, 1, 1, 1}}}),
      unary("global average pool", OpKind::kGlobalAveragePool),
      unary("global max pool", OpKind::kGlobalMaxPool),
      reduction("reduce mean", OpKind::kReduceMean, {1, -1}, 0),
      reduction("reduce sum", OpKind::kReduceSum, {2}, 1),
      reduction("reduce max", OpKind::kReduceMax, {0, 3}, 0),
      {"argmax", OpKind::kArgMax, {2, 3, 4, 5},
       [](Graph& g, Value* x) { return g.add(OpKind::kArgMax, "y", {x}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}); }, false},
      {"concat", OpKind::kConcat, {2, 3, 4, 5},
       [](Graph& g, Value* x) { return g.add(OpKind::kConcat, "y", {x, parameter(g, {2, 2, 4, 5}), x}, {{"axis", int64_t{1}}}); }},
      {"split", OpKind::kSplit, {2, 5, 4},
       [](Graph& g, Value* x) {
         ir::Node* n = g.add_node(OpKind::kSplit, "split", {x, ints(g, {2, 3})}, {"a", "b"}, {{"axis", int64_t{1}}});
         return g.add(OpKind::kConcat, "y", {n->output(1), n->output(0)}, {{"axis", int64_t{1}}});
       }},
      {"slice", OpKind::kSlice, {2, 6, 7},
       [](Graph& g, Value* x) {
         return g.add(OpKind::kSlice, "y", {x, ints(g, {-1, 1}), ints(g, {-1000, 6}), ints(g, {1, 2}), ints(g, {-2, 3})});
       }},
      {"pad", OpKind::kPad, {2, 3, 4},
       [](Graph& g, Value* x) { return g.add(OpKind::kPad, "y", {x, ints(g, {0, 1, -1, 0, 0, 2}), number(g, 1.5f)}); }},
      {"reshape", OpKind::kReshape, {2, 3, 4},
       [](Graph& g, Value* x) { return g.add(OpKind::kReshape, "y", {x, ints(g, {0, -1, 2})}); }},
      unary("flatten", OpKind::kFlatten, {{"axis", int64_t{2}}}),
      {"squeeze", OpKind::kSqueeze, {2, 1, 4, 1},
       [](Graph& g, Value* x) { return g.add(OpKind::kSqueeze, "y", {x, ints(g, {-1})}); }},
      {"unsqueeze", OpKind::kUnsqueeze, {2, 4},
       [](Graph& g, Value* x) { return g.add(OpKind::kUnsqueeze, "y", {x, ints(g, {0, -1})}); }},
      unary("transpose", OpKind::kTranspose, {{"perm", Ints{0, 2, 3, 1}}}),
      {"expand", OpKind::kExpand, {3, 1},
       [](Graph& g, Value* x) { return g.add(OpKind::kExpand, "y", {x, ints(g, {2, 1, 4})}); }},
      resize("resize nearest", "nearest", "asymmetric", {1, 1, 2, 2}, "floor"),
      resize("resize nearest down", "nearest", "half_pixel", {1, 1, 0.6f, 0.8f}),
      resize("resize linear", "linear", "half_pixel", {1, 1, 2, 1.6f}),
      resize("resize linear corners", "linear", "align_corners", {1, 1, 1.5f, 2}),
      resize("resize linear asymmetric", "linear", "asymmetric", {1, 1, 1.5f, 2}),
      resize("resize cubic", "cubic", "half_pixel", {1, 1, 1.5f, 2}),
      {"depth to space", OpKind::kDepthToSpace, {1, 8, 2, 3},
       [](Graph& g, Value* x) { return g.add(OpKind::kDepthToSpace, "y", {x}, {{"blocksize", int64_t{2}}}); }},
      {"depth to space CRD", OpKind::kDepthToSpace, {1, 8, 2, 3},
       [](Graph& g, Value* x) {
         return g.add(OpKind::kDepthToSpace, "y", {x}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}});
       }},
      unary("identity", OpKind::kIdentity),
      {"dropout", OpKind::kDropout, {2, 3, 4},
       [](Graph& g, Value* x) { return g.add(OpKind::kDropout, "y", {x, number(g, 0.3f)}); }},
      {"cast", OpKind::kCast, {2, 3},
       [](Graph& g, Value* x) { return g.add(OpKind::kCast, "y", {x}, {{"to", int64_t{7}}}); }, false},
      {"quantize linear", OpKind::kQuantizeLinear, {2, 3},
       [](Graph& g, Value* x) {
         return g.add(OpKind::kQuantizeLinear, "y", {x, number(g, 0.02f), g.add_constant("", ir::Tensor::scalar<int8_t>(3))});
       }, false},
      {"dequantize linear", OpKind::kDequantizeLinear, {2, 3},
       [](Graph& g, Value* x) {
         Value* zero = g.add_constant("", ir::Tensor::scalar<uint8_t>(128));
         Value* q = g.add(OpKind::kQuantizeLinear, "q", {x, number(g, 0.02f), zero});
         return g.add(OpKind::kDequantizeLinear, "y", {q, number(g, 0.02f), zero});
       }, false},
      // Its surrogate gradient is not the derivative: fake_quant_test checks it.
      {"fake quantize", OpKind::kFakeQuantize, {2, 3, 4},
       [](Graph& g, Value* x) {
         return g.add(OpKind::kFakeQuantize, "y", {x, g.add_constant("scale", ir::Tensor::scalar<float>(0.01f)),
                                                   g.add_constant("", ir::Tensor::scalar<int8_t>(0))});
       }, false},
  };
  for (const char* mode : {"reflect", "edge", "wrap"})
    c.push_back({std::string("pad ") + mode, OpKind::kPad, {2, 3, 4}, [=](Graph& g, Value* x) {
                   return g.add(OpKind::kPad, "y", {x, ints(g, {0, 1, 3, 0, 2, 1})}, {{"mode", std::string(mode)}});
                 }});
  return c;
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = make_cases();
  return cases;
}

ir::Tensor random_constant(const ir::Shape& shape, uint64_t seed, double low, double high) {
  return ir::Tensor::of<float>(shape, random_values(ir::element_count(shape), seed, low, high));
}

at::Tensor random_tensor(const std::vector<int64_t>& shape, uint64_t seed, double low, double high) {
  const std::vector<float> values = random_values(ir::element_count(shape), seed, low, high);
  return at::tensor(values).reshape(shape);
}

std::vector<float> floats(const at::Tensor& t) {
  const at::Tensor c = t.detach().to(at::kFloat).contiguous();
  return {c.const_data_ptr<float>(), c.const_data_ptr<float>() + c.numel()};
}

ir::Graph case_graph(const OpCase& c) {
  Graph g;
  Value* x = g.add_input("x", {ir::DataType::kFloat32, c.input});
  g.add_output(c.build(g, x));
  ir::infer_shapes(g);
  return g;
}

TEST(OpCases, EveryKindHasOneOrIsRejectedWithAReason) {
  std::set<OpKind> covered;
  for (const OpCase& c : op_cases()) covered.insert(c.kind);
  for (const ir::OpInfo& op : ir::all_ops())
    EXPECT_TRUE(covered.count(op.kind) == 1 || unsupported_reason(op.kind) != nullptr) << op.name;
}

// The shape rules of the graph and the executor agree, in every precision and layout.
TEST(OpCases, ExecuteWithTheInferredShape) {
  for (const OpCase& c : op_cases())
    for (const bool channels_last : {true, false})
      for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16, Precision::kFloat64})
        for (const Mode mode : {Mode::kEval, Mode::kTrain}) {
          SCOPED_TRACE(c.name + " " + precision_name(precision));
          const Graph g = case_graph(c);
          Executor executor(g, {.precision = precision, .channels_last = channels_last});
          const at::Tensor y = executor.forward({random_tensor(c.input, 1, c.low, c.high)}, mode).at(0);
          EXPECT_EQ(y.sizes().vec(), *g.outputs()[0]->type.shape);
          if (at::isFloatingType(y.scalar_type())) {
            EXPECT_EQ(y.scalar_type(), precision == Precision::kFloat64 ? at::kDouble : at::kFloat);
            EXPECT_TRUE(at::isfinite(y).all().item<bool>());
          }
        }
}

// Layout and fusion are matters of speed: the same graph gives the same numbers without them.
TEST(OpCases, LayoutDoesNotChangeValues) {
  for (const OpCase& c : op_cases()) {
    SCOPED_TRACE(c.name);
    const Graph g = case_graph(c);
    const at::Tensor x = random_tensor(c.input, 2, c.low, c.high);
    Executor nhwc(g, {.channels_last = true}), nchw(g, {.channels_last = false});
    for (const Mode mode : {Mode::kEval, Mode::kTrain}) {
      const at::Tensor a = nhwc.forward({x}, mode)[0].to(at::kDouble), b = nchw.forward({x}, mode)[0].to(at::kDouble);
      EXPECT_LE((a - b).abs().max().item<double>(), 1e-5 * (1 + b.abs().max().item<double>()));
    }
  }
}

TEST(OpCases, Bfloat16StaysNearFloat32) {
  for (const OpCase& c : op_cases()) {
    if (!c.differentiable || c.kind == OpKind::kFloor) continue;  // steps amplify any difference
    SCOPED_TRACE(c.name);
    const Graph g = case_graph(c);
    const at::Tensor x = random_tensor(c.input, 3, c.low, c.high);
    Executor low(g, {.precision = Precision::kBFloat16}), full(g, {});
    const at::Tensor a = low.forward({x}, Mode::kEval)[0], b = full.forward({x}, Mode::kEval)[0];
    // 8 bits of significand; inputs, weights and results are rounded.
    EXPECT_LE((a - b).norm().item<double>(), 0.01 * b.norm().item<double>());
  }
}

}  // namespace octet::train::testing
