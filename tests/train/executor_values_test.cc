// Values of windowed operators against their definition, written as plain loops.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/infer.h"
#include "train/executor.h"
#include "train/op_cases.h"

namespace octet::train::testing {
namespace {

using ir::OpKind;
using Ints = std::vector<int64_t>;

struct Image {
  int64_t n, c, h, w;
  std::vector<float> v;
  float at(int64_t i, int64_t ch, int64_t y, int64_t x) const { return v[((i * c + ch) * h + y) * w + x]; }
  bool inside(int64_t y, int64_t x) const { return y >= 0 && y < h && x >= 0 && x < w; }
};

Image image(const at::Tensor& t) {
  return {t.size(0), t.size(1), t.size(2), t.size(3), floats(t)};
}

const OpCase& find(const std::string& name) {
  for (const OpCase& c : op_cases())
    if (c.name == name) return c;
  throw std::logic_error("no case " + name);
}

struct Ran {
  ir::Graph graph;
  Image x, y;
  const ir::Node& node() const { return *graph.nodes().back(); }
  std::vector<float> constant(size_t i) const { return node().input(i)->constant->to_floats(); }
};

Ran run(const std::string& name) {
  const OpCase& c = find(name);
  Ran r{case_graph(c), {}, {}};
  Executor executor(r.graph);
  const at::Tensor x = random_tensor(c.input, 31, c.low, c.high);
  r.x = image(x);
  r.y = image(executor.forward({x}, Mode::kEval)[0]);
  return r;
}

TEST(Values, OfConvolutions) {
  for (const char* name : {"conv", "conv asymmetric", "conv same upper", "conv same lower", "conv dilated",
                           "conv depthwise", "conv of a pixel", "conv of four pixels", "conv depthwise wide",
                           "conv depthwise dilated", "conv wide", "conv wide dilated"}) {
    SCOPED_TRACE(name);
    const Ran r = run(name);
    const ir::Shape& ws = r.node().input(1)->constant->shape();
    const std::vector<float> w = r.constant(1),
                             bias = r.node().has_input(2) ? r.constant(2) : std::vector<float>(ws[0]);
    const ir::WindowGeometry g = ir::window_geometry(r.node(), {r.x.h, r.x.w}, {ws[2], ws[3]});
    const int64_t group = r.node().get_int("group"), filters_a_group = ws[0] / group;
    for (int64_t i = 0; i < r.y.n; ++i)
      for (int64_t f = 0; f < ws[0]; ++f)
        for (int64_t oy = 0; oy < r.y.h; ++oy)
          for (int64_t ox = 0; ox < r.y.w; ++ox) {
            double sum = bias[f];
            for (int64_t c = 0; c < ws[1]; ++c)
              for (int64_t ky = 0; ky < ws[2]; ++ky)
                for (int64_t kx = 0; kx < ws[3]; ++kx) {
                  const int64_t y = oy * g.strides[0] - g.pads[0] + ky * g.dilations[0];
                  const int64_t x = ox * g.strides[1] - g.pads[1] + kx * g.dilations[1];
                  if (r.x.inside(y, x))
                    sum += static_cast<double>(w[((f * ws[1] + c) * ws[2] + ky) * ws[3] + kx]) *
                           static_cast<double>(r.x.at(i, f / filters_a_group * ws[1] + c, y, x));
                }
            ASSERT_NEAR(r.y.at(i, f, oy, ox), sum, 1e-4);
          }
  }
}

TEST(Values, OfTransposedConvolutions) {
  struct Expected {
    const char* name;
    Ints begin;  // rows and columns cut off the full result
  };
  for (const auto& [name, begin] :
       {Expected{"conv transpose", {1, 1}}, Expected{"conv transpose output padding", {1, 0}},
        Expected{"conv transpose same", {0, 0}},
        // 11 x 13 in full, 10 x 12 wanted; without SAME_UPPER the odd element is cut in front
        Expected{"conv transpose output shape", {1, 1}}, Expected{"conv transpose grouped", {0, 0}}}) {
    SCOPED_TRACE(name);
    const Ran r = run(name);
    const ir::Shape& ws = r.node().input(1)->constant->shape();
    const std::vector<float> w = r.constant(1), bias = r.constant(2);
    const Ints strides = r.node().get_ints("strides", {1, 1}), dilations = r.node().get_ints("dilations", {1, 1});
    const int64_t group = r.node().get_int("group"), in_a_group = ws[0] / group;
    std::vector<double> sum(r.y.v.size());
    const auto index = [&](int64_t i, int64_t f, int64_t y, int64_t x) {
      return ((i * r.y.c + f) * r.y.h + y) * r.y.w + x;
    };
    for (int64_t i = 0; i < r.y.n; ++i)
      for (int64_t c = 0; c < ws[0]; ++c)
        for (int64_t f = 0; f < ws[1]; ++f)
          for (int64_t iy = 0; iy < r.x.h; ++iy)
            for (int64_t ix = 0; ix < r.x.w; ++ix)
              for (int64_t ky = 0; ky < ws[2]; ++ky)
                for (int64_t kx = 0; kx < ws[3]; ++kx) {
                  const int64_t y = iy * strides[0] + ky * dilations[0] - begin[0];
                  const int64_t x = ix * strides[1] + kx * dilations[1] - begin[1];
                  if (r.y.inside(y, x))
                    sum[index(i, c / in_a_group * ws[1] + f, y, x)] +=
                        static_cast<double>(w[((c * ws[1] + f) * ws[2] + ky) * ws[3] + kx]) *
                        static_cast<double>(r.x.at(i, c, iy, ix));
                }
    for (int64_t i = 0; i < r.y.n; ++i)
      for (int64_t f = 0; f < r.y.c; ++f)
        for (int64_t y = 0; y < r.y.h; ++y)
          for (int64_t x = 0; x < r.y.w; ++x)
            ASSERT_NEAR(r.y.at(i, f, y, x), sum[index(i, f, y, x)] + bias[f], 1e-4) << i << f << y << x;
  }
}

TEST(Values, OfPooling) {
  for (const char* name : {"max pool", "max pool ceil", "average pool", "average pool padded",
                           "average pool counting pads", "average pool dilated"}) {
    SCOPED_TRACE(name);
    const Ran r = run(name);
    const bool maximum = r.node().kind == OpKind::kMaxPool, counting = r.node().get_int("count_include_pad") != 0;
    const ir::WindowGeometry g = ir::window_geometry(r.node(), {r.x.h, r.x.w}, r.node().get_ints("kernel_shape"));
    for (int64_t i = 0; i < r.y.n; ++i)
      for (int64_t c = 0; c < r.y.c; ++c)
        for (int64_t oy = 0; oy < r.y.h; ++oy)
          for (int64_t ox = 0; ox < r.y.w; ++ox) {
            double sum = 0, largest = -std::numeric_limits<double>::infinity();
            int64_t count = 0;
            for (int64_t ky = 0; ky < g.kernel[0]; ++ky)
              for (int64_t kx = 0; kx < g.kernel[1]; ++kx) {
                const int64_t y = oy * g.strides[0] - g.pads[0] + ky * g.dilations[0];
                const int64_t x = ox * g.strides[1] - g.pads[1] + kx * g.dilations[1];
                const bool inside = r.x.inside(y, x);
                // Padding counts if asked for; what ceil_mode adds beyond it never does.
                count += inside || (counting && y < r.x.h + g.pads[2] && x < r.x.w + g.pads[3]) ? 1 : 0;
                if (!inside) continue;
                sum += static_cast<double>(r.x.at(i, c, y, x));
                largest = std::max(largest, static_cast<double>(r.x.at(i, c, y, x)));
              }
            ASSERT_NEAR(r.y.at(i, c, oy, ox), maximum ? largest : sum / static_cast<double>(count), 1e-5);
          }
  }
}

TEST(Values, OfLocalResponseNormalization) {
  const Ran r = run("lrn");  // size 4: one channel below, two above
  for (int64_t c = 0; c < r.x.c; ++c) {
    double sum = 0;
    for (int64_t k = std::max<int64_t>(c - 1, 0); k <= std::min(c + 2, r.x.c - 1); ++k)
      sum += std::pow(static_cast<double>(r.x.at(1, k, 2, 1)), 2);
    EXPECT_NEAR(r.y.at(1, c, 2, 1), r.x.at(1, c, 2, 1) / std::pow(1 + 0.3 / 4 * sum, 0.6), 1e-5);
  }
}

std::vector<float> evaluate(OpKind kind, const ir::Shape& shape, const std::vector<float>& x,
                            const std::vector<std::optional<ir::Tensor>>& constants, ir::Attributes attributes = {}) {
  ir::Graph g;
  std::vector<ir::Value*> inputs = {g.add_input("x", {ir::DataType::kFloat32, shape})};
  for (const auto& c : constants) inputs.push_back(c ? g.add_constant("", *c) : nullptr);
  g.add_output(g.add(kind, "y", inputs, attributes));
  ir::infer_shapes(g);
  Executor executor(g);
  return floats(executor.forward({at::tensor(x).reshape(shape)}, Mode::kEval)[0]);
}

ir::Tensor int_constant(const Ints& v) {
  return ir::Tensor::of<int64_t>({static_cast<int64_t>(v.size())}, v);
}
ir::Tensor float_constant(const std::vector<float>& v) {
  return ir::Tensor::of<float>({static_cast<int64_t>(v.size())}, v);
}

using Floats = std::vector<float>;

// Examples of the ONNX operator documentation.
TEST(Values, OfResizeAreThoseOfTheSpecification) {
  const auto resize = [](const char* mode, const char* transform, const char* nearest, Floats scales, ir::Shape shape,
                         const Floats& x) {
    return evaluate(OpKind::kResize, shape, x, {std::nullopt, float_constant(scales)},
                    {{"mode", std::string(mode)},
                     {"coordinate_transformation_mode", std::string(transform)},
                     {"nearest_mode", std::string(nearest)}});
  };
  EXPECT_EQ(resize("nearest", "half_pixel", "round_prefer_floor", {1, 1, 2, 3}, {1, 1, 2, 2}, {1, 2, 3, 4}),
            (Floats{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4}));
  EXPECT_EQ(
      resize("nearest", "half_pixel", "round_prefer_floor", {1, 1, 0.6f, 0.6f}, {1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}),
      (Floats{1, 3}));
  const Floats linear = resize("linear", "half_pixel", "floor", {1, 1, 2, 2}, {1, 1, 2, 2}, {1, 2, 3, 4});
  const Floats expected = {1, 1.25f, 1.75f, 2, 1.5f, 1.75f, 2.25f, 2.5f, 2.5f, 2.75f, 3.25f, 3.5f, 3, 3.25f, 3.75f, 4};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_FLOAT_EQ(linear[i], expected[i]);
  const Floats corners = resize("linear", "align_corners", "floor", {1, 1, 2, 2}, {1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_NEAR(corners[1], 1.33333333, 1e-6);
  EXPECT_NEAR(corners[15], 4, 1e-6);
  Floats ramp(16);
  for (int i = 0; i < 16; ++i) ramp[i] = static_cast<float>(i + 1);
  const Floats cubic = resize("cubic", "half_pixel", "floor", {1, 1, 2, 2}, {1, 1, 4, 4}, ramp);
  const Floats first_row = {0.47265625f, 0.76953125f, 1.24609375f, 1.875f,
                            2.28125f,    2.91015625f, 3.38671875f, 3.68359375f};
  for (size_t i = 0; i < first_row.size(); ++i) EXPECT_NEAR(cubic[i], first_row[i], 1e-5);
}

TEST(Values, OfOperatorsThatMoveElements) {
  EXPECT_EQ(evaluate(OpKind::kPad, {1, 3}, {1, 2, 3}, {int_constant({0, 2, 0, 1})}, {{"mode", std::string("reflect")}}),
            (Floats{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(evaluate(OpKind::kPad, {1, 3}, {1, 2, 3}, {int_constant({0, 2, 0, 1})}, {{"mode", std::string("edge")}}),
            (Floats{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(evaluate(OpKind::kPad, {1, 3}, {1, 2, 3}, {int_constant({0, 2, 0, 1})}, {{"mode", std::string("wrap")}}),
            (Floats{2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(evaluate(OpKind::kPad, {1, 3}, {1, 2, 3},
                     {int_constant({1, -1}), ir::Tensor::scalar<float>(9), int_constant({-1})}),
            (Floats{9, 1, 2}));
  EXPECT_EQ(evaluate(OpKind::kSlice, {5}, {0, 1, 2, 3, 4},
                     {int_constant({-1}), int_constant({-4}), int_constant({0}), int_constant({-2})}),
            (Floats{4, 2}));
  EXPECT_EQ(evaluate(OpKind::kSlice, {5}, {0, 1, 2, 3, 4},
                     {int_constant({1}), int_constant({std::numeric_limits<int64_t>::max()})}),
            (Floats{1, 2, 3, 4}));
  EXPECT_EQ(evaluate(OpKind::kDepthToSpace, {1, 4, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7}, {}, {{"blocksize", int64_t{2}}}),
            (Floats{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(evaluate(OpKind::kArgMax, {4}, {1, 3, 3, 0}, {}, {{"axis", int64_t{0}}}), (Floats{1}));
  EXPECT_EQ(evaluate(OpKind::kArgMax, {4}, {1, 3, 3, 0}, {}, {{"axis", int64_t{0}}, {"select_last_index", int64_t{1}}}),
            (Floats{2}));
  EXPECT_EQ(evaluate(OpKind::kQuantizeLinear, {6}, {0.5f, 1.5f, -0.5f, 300, -300, std::nanf("")},
                     {ir::Tensor::scalar<float>(1), ir::Tensor::scalar<uint8_t>(128)}),
            (Floats{128, 130, 128, 255, 0, 128}));
}

}  // namespace
}  // namespace octet::train::testing
