// The evaluations against numbers worked out by hand. The engine's tests compare whole networks with them.
#include "ir/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"

namespace octet::ir {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

Tensor float_tensor(Shape shape, const Floats& v) {
  return Tensor::of<float>(std::move(shape), v);
}
Tensor ints(const Ints& v) {
  return Tensor::of<int64_t>({static_cast<int64_t>(v.size())}, v);
}
// 0, 1, 2 ...
Tensor counted(const Shape& shape) {
  Floats v(static_cast<size_t>(element_count(shape)));
  std::iota(v.begin(), v.end(), 0.0f);
  return float_tensor(shape, v);
}

std::optional<std::vector<Tensor>> attempt(OpKind kind, const std::vector<Tensor>& inputs, Attributes attributes = {},
                                           size_t outputs = 1) {
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(t.empty() ? nullptr : &t);
  MemoryBudget budget(1 << 20);
  return evaluate(Node{kind, "n", {}, std::vector<Value*>(outputs, nullptr), std::move(attributes)}, in, budget);
}

Tensor result(OpKind kind, const std::vector<Tensor>& inputs, Attributes attributes = {}) {
  const auto out = attempt(kind, inputs, std::move(attributes));
  EXPECT_TRUE(out.has_value()) << op_info(kind).name;
  return out ? out->front() : Tensor();
}

TEST(Evaluate, Convolutions) {
  const Tensor image = counted({1, 2, 3, 3});
  // Two groups of one channel each; windows of the diagonal, dilated to the corners.
  const Tensor diagonal = float_tensor({2, 1, 2, 2}, {1, 0, 0, 1, 1, 0, 0, -1});
  const Attributes dilated = {{"group", int64_t{2}}, {"dilations", Ints{2, 2}}};
  EXPECT_EQ(result(OpKind::kConv, {image, diagonal, float_tensor({2}, {100, 0})}, dilated).to_floats(),
            (Floats{108, -8}));
  const Attributes strided = {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 0, 0}}, {"group", int64_t{2}}};
  EXPECT_EQ(result(OpKind::kConv, {image, diagonal}, strided).to_floats(), (Floats{0, 2, 6, 12, -9, -11, -15, -4}));
  const Tensor spread = float_tensor({1, 2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40});
  const Tensor y =
      result(OpKind::kConvTranspose, {float_tensor({1, 1, 1, 2}, {1, 5}), spread}, {{"strides", Ints{1, 1}}});
  EXPECT_EQ(y.shape(), (Shape{1, 2, 2, 3}));
  EXPECT_EQ(y.to_floats(), (Floats{1, 7, 10, 3, 19, 20, 10, 70, 100, 30, 190, 200}));
}

// Images go by rows, whatever has more axes by windows: the bits are the same, also where windows lie in the padding
// alone.
TEST(Evaluate, ConvolutionsOfImagesAreThoseOfVolumes) {
  Floats x(2 * 4 * 7 * 6), w(6 * 2 * 3 * 2), b(6);
  for (Floats* values : {&x, &w, &b})
    for (size_t i = 0; i < values->size(); ++i) (*values)[i] = std::sin(0.7f * static_cast<float>(i) + 0.1f);
  for (const int64_t stride : {1, 2, 5})
    for (const int64_t dilation : {1, 3})
      for (const Ints& pads : {Ints{0, 0, 0, 0}, Ints{1, 2, 3, 0}, Ints{9, 9, 9, 9}}) {
        const Attributes image = {
            {"group", int64_t{2}}, {"strides", Ints{stride, 1}}, {"dilations", Ints{1, dilation}}, {"pads", pads}};
        const Attributes volume = {{"group", int64_t{2}},
                                   {"strides", Ints{1, stride, 1}},
                                   {"dilations", Ints{1, 1, dilation}},
                                   {"pads", Ints{0, pads[0], pads[1], 0, pads[2], pads[3]}}};
        const Tensor rows = result(
            OpKind::kConv, {float_tensor({2, 4, 7, 6}, x), float_tensor({6, 2, 3, 2}, w), float_tensor({6}, b)}, image);
        const Tensor windows =
            result(OpKind::kConv,
                   {float_tensor({2, 4, 1, 7, 6}, x), float_tensor({6, 2, 1, 3, 2}, w), float_tensor({6}, b)}, volume);
        EXPECT_EQ(rows.to_floats(), windows.to_floats()) << stride << " " << dilation << " " << pads[0];
      }
}

TEST(Evaluate, Products) {
  const Tensor a = counted({2, 3}), b = counted({3, 2});
  EXPECT_EQ(result(OpKind::kMatMul, {a, b}).to_floats(), (Floats{10, 13, 28, 40}));
  EXPECT_EQ(result(OpKind::kMatMul, {float_tensor({3}, {1, 0, 1}), counted({2, 3, 1})}).to_floats(), (Floats{2, 8}));
  const Attributes scaled = {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 2.0f}, {"beta", 10.0f}};
  EXPECT_EQ(result(OpKind::kGemm, {b, a, float_tensor({2}, {1, 2})}, scaled).to_floats(), (Floats{30, 76, 36, 100}));
}

TEST(Evaluate, Pools) {
  const Tensor x = counted({1, 1, 2, 3});
  const Attributes window = {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 1, 0, 0}}, {"strides", Ints{2, 2}}};
  EXPECT_EQ(result(OpKind::kMaxPool, {x}, window).to_floats(), (Floats{0, 2}));
  EXPECT_EQ(result(OpKind::kAveragePool, {x}, window).to_floats(), (Floats{0, 1.5f}));
  Attributes counting = window;
  counting["count_include_pad"] = int64_t{1};
  EXPECT_EQ(result(OpKind::kAveragePool, {x}, counting).to_floats(), (Floats{0, 0.75f}));
  EXPECT_EQ(result(OpKind::kGlobalAveragePool, {x}).to_floats(), Floats{2.5f});
  // A window far larger than the image takes no longer than the image.
  const int64_t wide = int64_t{1} << 20;
  const Attributes vast = {{"kernel_shape", Ints{wide, wide}}, {"pads", Ints{wide - 1, wide - 1, 0, 0}}};
  EXPECT_EQ(result(OpKind::kMaxPool, {x}, vast).to_floats(), x.to_floats());
  EXPECT_EQ(result(OpKind::kAveragePool, {x}, vast).to_floats(), (Floats{0, 0.5f, 1, 1.5f, 2, 2.5f}));
  // Nor does one of no images that are vast.
  const Tensor none = Tensor::of<float>({0, 1, int64_t{1} << 31, 4}, std::vector<float>());
  EXPECT_EQ(result(OpKind::kMaxPool, {none}, {{"kernel_shape", Ints{2, 2}}}).shape(),
            (Shape{0, 1, (int64_t{1} << 31) - 1, 3}));
  const Attributes lrn = {{"size", int64_t{3}}, {"alpha", 3.0f}, {"beta", 1.0f}, {"bias", 1.0f}};
  EXPECT_EQ(result(OpKind::kLRN, {float_tensor({1, 3, 1, 1}, {1, 2, 3})}, lrn).to_floats(),
            (Floats{1.0f / 6, 2.0f / 15, 3.0f / 14}));
}

TEST(Evaluate, Movement) {
  const Tensor x = counted({1, 4, 1, 2});
  EXPECT_EQ(result(OpKind::kDepthToSpace, {x}, {{"blocksize", int64_t{2}}}).to_floats(),
            (Floats{0, 2, 1, 3, 4, 6, 5, 7}));
  const Tensor deep = counted({1, 8, 1, 1});
  EXPECT_EQ(result(OpKind::kDepthToSpace, {deep}, {{"blocksize", int64_t{2}}}).to_floats(),
            (Floats{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(
      result(OpKind::kDepthToSpace, {deep}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}}).to_floats(),
      (Floats{0, 1, 2, 3, 4, 5, 6, 7}));
  const auto pad = [&](const std::string& mode) {
    return result(OpKind::kPad, {counted({3}), ints({2, -1})}, {{"mode", mode}}).to_floats();
  };
  EXPECT_EQ(pad("constant"), (Floats{0, 0, 0, 1}));
  EXPECT_EQ(pad("edge"), (Floats{0, 0, 0, 1}));
  EXPECT_EQ(pad("reflect"), (Floats{2, 1, 0, 1}));
  EXPECT_EQ(pad("wrap"), (Floats{1, 2, 0, 1}));
  EXPECT_EQ(result(OpKind::kPad, {counted({2}), ints({1, 1}), Tensor::scalar(7.0f)}).to_floats(), (Floats{7, 0, 1, 7}));
  EXPECT_EQ(result(OpKind::kSlice, {counted({2, 3}), ints({1}), ints({1}), ints({1})}).shape(), (Shape{2, 0}));
}

TEST(Evaluate, Resizes) {
  const auto resize = [](const Attributes& attributes, float scale) {
    return result(OpKind::kResize, {float_tensor({3}, {0, 4, 8}), Tensor(), float_tensor({1}, {scale})}, attributes)
        .to_floats();
  };
  const std::string linear = "linear", cubic = "cubic";
  EXPECT_EQ(resize({}, 2), (Floats{0, 0, 4, 4, 8, 8}));
  EXPECT_EQ(resize({{"mode", linear}}, 2), (Floats{0, 1, 3, 5, 7, 8}));
  EXPECT_EQ(resize({{"mode", linear}, {"coordinate_transformation_mode", std::string("align_corners")}}, 3),
            (Floats{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  // At a quarter the weights are -9/128, 111/128, 29/128, -3/128 for a = -0.5.
  EXPECT_EQ(resize({{"mode", cubic}, {"cubic_coeff_a", -0.5f}}, 2)[3], (111 * 4 + 29 * 8 - 3 * 8) / 128.0f);
}

TEST(Evaluate, Quantizers) {
  const Tensor x = float_tensor({2, 2}, {0.5f, 1.5f, -300, 2.5f}), scale = float_tensor({2}, {1, 0.5f});
  const Tensor zero = Tensor::of<int8_t>({2}, std::vector<int8_t>{0, 3});
  const Attributes last = {{"axis", int64_t{-1}}};
  EXPECT_EQ(result(OpKind::kQuantizeLinear, {x, scale, zero}, last).to_ints(), (Ints{0, 6, -128, 8}));
  EXPECT_EQ(result(OpKind::kDequantizeLinear, {Tensor::of<int8_t>({2}, std::vector<int8_t>{4, 4}), scale, zero},
                   {{"axis", int64_t{0}}})
                .to_floats(),
            (Floats{4, 0.5f}));
  EXPECT_EQ(result(OpKind::kFakeQuantize, {x, scale, zero}, last).to_floats(), (Floats{0, 1.5f, -128, 2.5f}));
  const Attributes observing = {{"axis", int64_t{-1}}, {"state", std::string(kObserving)}};
  EXPECT_EQ(result(OpKind::kFakeQuantize, {x, scale, zero}, observing).to_floats(), x.to_floats());
}

TEST(Evaluate, RoundsOnceAndCountsExactly) {
  constexpr int64_t kBig = (int64_t{1} << 53) + 1, kLast = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(result(OpKind::kAdd, {ints({kBig}), ints({0})}).to_ints(), Ints{kBig});
  EXPECT_EQ(result(OpKind::kAdd, {ints({kLast}), ints({1})}).to_ints(), Ints{std::numeric_limits<int64_t>::min()});
  EXPECT_EQ(result(OpKind::kClip, {ints({kBig}), Tensor::scalar(kBig - 1)}).to_ints(), Ints{kBig});
  // 2^24 + 1 + 1: float32 sums would lose both.
  EXPECT_EQ(result(OpKind::kReduceSum, {float_tensor({3}, {0x1p24f, 1, 1})}).to_floats(), Floats{0x1p24f + 2});
  EXPECT_EQ(result(OpKind::kSoftmax, {float_tensor({2}, {1000, 1000})}).to_floats(), (Floats{0.5f, 0.5f}));
  EXPECT_EQ(result(OpKind::kArgMax, {float_tensor({3}, {1, 2, 2})}, {{"select_last_index", int64_t{1}}}).to_ints(),
            Ints{2});
  EXPECT_EQ(result(OpKind::kBatchNormalization,
                   {float_tensor({1, 2}, {3, 3}), float_tensor({2}, {1, 2}), float_tensor({2}, {0, 1}),
                    float_tensor({2}, {1, 1}), float_tensor({2}, {4, 1})},
                   {{"epsilon", 0.0f}})
                .to_floats(),
            (Floats{1, 5}));
}

TEST(Evaluate, NormalizesLayers) {
  // Means 2 and 0, deviations 1 and 3.
  const Tensor x = float_tensor({2, 2}, {1, 3, -3, 3}), scale = float_tensor({2}, {1, 2}),
               shift = float_tensor({2}, {0, 10});
  const Attributes exact = {{"epsilon", 0.0f}};
  EXPECT_EQ(result(OpKind::kLayerNormalization, {x, scale, shift}, exact).to_floats(), (Floats{-1, 12, -1, 12}));
  EXPECT_EQ(result(OpKind::kLayerNormalization, {x, scale}, exact).to_floats(), (Floats{-1, 2, -1, 2}));
}

TEST(Evaluate, RefusesWhatItCannot) {
  EXPECT_EQ(attempt(OpKind::kExp, {ints({1})}), std::nullopt);
  EXPECT_EQ(attempt(OpKind::kReduceMax, {float_tensor({0}, {})}), std::nullopt);
  EXPECT_EQ(attempt(OpKind::kConv, {Tensor::of<int64_t>({1, 1, 1}, Ints{1}), Tensor::of<int64_t>({1, 1, 1}, Ints{1})}),
            std::nullopt);
  EXPECT_THROW(attempt(OpKind::kDiv, {ints({1}), ints({0})}), UserError);
  EXPECT_THROW(attempt(OpKind::kExpand, {ints({1}), ints({1 << 20})}), UserError);  // past the budget
  EXPECT_THROW(attempt(OpKind::kAdd, {ints({1, 2}), ints({1, 2, 3})}), UserError);
}

}  // namespace
}  // namespace octet::ir
