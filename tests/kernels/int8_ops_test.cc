// Kernels without weights: the scalar reference against plain formulas over integers and doubles, every instruction set
// against the reference bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/conv_cases.h"
#include "numerics/quantize.h"

namespace octet::kernels {
namespace {

using testing::OwnedTensor;
using testing::random_tensor;

int64_t pick(std::mt19937& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}
float uniform(std::mt19937& rng, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(rng);
}

Halo random_halo(std::mt19937& rng) {
  return {pick(rng, 0, 1), pick(rng, 0, 1), pick(rng, 0, 2), pick(rng, 0, 1)};
}
OwnedTensor random_like(std::mt19937& rng, int64_t n, int64_t h, int64_t w, int64_t c) {
  return random_tensor(rng, n, h, w, c, random_halo(rng), static_cast<int32_t>(pick(rng, 0, 255)));
}
OwnedTensor random_source(std::mt19937& rng, int64_t n, int64_t h, int64_t w, int64_t c) {
  return testing::random_input(rng, n, h, w, c, random_halo(rng), static_cast<int32_t>(pick(rng, 0, 255)));
}

int code(const QTensor& t, int64_t n, int64_t y, int64_t x, int64_t c) {
  return t.data[n * t.image_stride + y * t.row_stride + x * t.c_pitch + c];
}

// Calls check(n, y, x, c, code) for every real element.
template <typename Check>
void for_each(const QTensor& t, Check&& check) {
  for (int64_t n = 0; n < t.n; ++n)
    for (int64_t y = 0; y < t.h; ++y)
      for (int64_t x = 0; x < t.w; ++x)
        for (int64_t c = 0; c < t.c; ++c) check(n, y, x, c, code(t, n, y, x, c));
}

// Runs the kernel of every instruction set in two shares over `work` and compares with want(n, y, x, c).
template <typename Run, typename Want>
void check_on_every_isa(std::mt19937& rng, OwnedTensor& out, int64_t work, Run&& run, Want&& want) {
  for (Isa isa : supported_isas()) {
    for (auto& b : out.bytes) b = 0xa5;
    const int64_t cut = pick(rng, 0, work);
    run(kernels(isa), Range{0, cut});
    run(kernels(isa), Range{cut, work});
    for_each(out.view, [&](int64_t n, int64_t y, int64_t x, int64_t c, int got) {
      if (::testing::Test::HasFailure()) return;
      ASSERT_EQ(got, want(n, y, x, c)) << isa_name(isa) << " at " << n << "," << y << "," << x << "," << c;
    });
    if (::testing::Test::HasFailure()) return;
  }
}

struct Shape {
  int64_t n, h, w, c;
};
Shape random_shape(std::mt19937& rng) {
  return {pick(rng, 1, 2), pick(rng, 1, 7), pick(rng, 1, 19), pick(rng, 1, 150)};
}
// Channel counts around the special layouts: images, one block, several blocks.
int64_t random_channels(std::mt19937& rng) {
  constexpr int64_t kChannels[] = {1, 3, 4, 5, 16, 17, 32, 48, 64, 65, 96};
  return kChannels[pick(rng, 0, 10)];
}

PoolWindow random_window(std::mt19937& rng, Shape& s, int64_t* out_h, int64_t* out_w) {
  PoolWindow p;
  p.kernel_h = pick(rng, 1, 5);
  p.kernel_w = pick(rng, 1, 5);
  p.stride_h = pick(rng, 1, 3);
  p.stride_w = pick(rng, 1, 3);
  p.dilation_h = pick(rng, 1, 2);
  p.dilation_w = pick(rng, 1, 2);
  p.pad_top = pick(rng, 0, p.kernel_h - 1);
  p.pad_left = pick(rng, 0, p.kernel_w - 1);
  p.pad_bottom = pick(rng, 0, p.kernel_h - 1);
  p.pad_right = pick(rng, 0, p.kernel_w - 1);
  s.h += (p.kernel_h - 1) * p.dilation_h;
  s.w += (p.kernel_w - 1) * p.dilation_w;
  *out_h = (s.h + p.pad_top + p.pad_bottom - (p.kernel_h - 1) * p.dilation_h - 1) / p.stride_h + 1;
  *out_w = (s.w + p.pad_left + p.pad_right - (p.kernel_w - 1) * p.dilation_w - 1) / p.stride_w + 1;
  return p;
}

// Visits the window's positions: visit(y, x, inside the image).
template <typename Visit>
void for_each_tap(const PoolWindow& p, const QTensor& in, int64_t oy, int64_t ox, Visit&& visit) {
  for (int64_t i = 0; i < p.kernel_h; ++i)
    for (int64_t j = 0; j < p.kernel_w; ++j) {
      const int64_t y = oy * p.stride_h - p.pad_top + i * p.dilation_h,
                    x = ox * p.stride_w - p.pad_left + j * p.dilation_w;
      visit(y, x, y >= 0 && y < in.h && x >= 0 && x < in.w);
    }
}

TEST(Int8Ops, MaxPool) {
  std::mt19937 rng(1);
  for (int i = 0; i < 40; ++i) {
    Shape s = random_shape(rng);
    s.c = random_channels(rng);
    MaxPoolArgs a;
    int64_t oh, ow;
    a.window = random_window(rng, s, &oh, &ow);
    const OwnedTensor in = random_source(rng, s.n, s.h, s.w, s.c);
    OwnedTensor out = random_like(rng, s.n, oh, ow, s.c);
    a.in = in.view;
    a.out = out.view;
    check_on_every_isa(
        rng, out, s.n * oh, [&](const KernelTable& k, Range r) { k.max_pool(a, r); },
        [&](int64_t n, int64_t y, int64_t x, int64_t c) {
          int best = 0;
          for_each_tap(a.window, a.in, y, x, [&](int64_t iy, int64_t ix, bool inside) {
            if (inside) best = std::max(best, code(a.in, n, iy, ix, c));
          });
          return best;
        });
  }
}

TEST(Int8Ops, AveragePool) {
  std::mt19937 rng(2);
  for (int i = 0; i < 40; ++i) {
    Shape s = random_shape(rng);
    s.c = random_channels(rng);
    AveragePoolArgs a;
    int64_t oh, ow;
    a.window = random_window(rng, s, &oh, &ow);
    const OwnedTensor in = random_source(rng, s.n, s.h, s.w, s.c);
    OwnedTensor out = random_like(rng, s.n, oh, ow, s.c);
    a.in = in.view;
    a.out = out.view;
    a.count_include_pad = i % 2;
    a.scale_in = uniform(rng, 0.01f, 0.1f);
    a.scale_out = uniform(rng, 0.01f, 0.1f);
    a.hi = i % 3 ? 255 : 130;
    check_on_every_isa(
        rng, out, s.n * oh, [&](const KernelTable& k, Range r) { k.average_pool(a, r); },
        [&](int64_t n, int64_t y, int64_t x, int64_t c) {
          int sum = 0, count = 0;
          for_each_tap(a.window, a.in, y, x, [&](int64_t iy, int64_t ix, bool inside) {
            count += inside || a.count_include_pad;  // taps of a window never pass the pads here
            if (inside) sum += code(a.in, n, iy, ix, c) - a.in.zero_point;
          });
          const float m = numerics::average_multiplier(a.scale_in, std::max(count, 1), a.scale_out);
          return numerics::requantize(sum, m, a.out.zero_point, a.lo, a.hi);
        });
  }
}

TEST(Int8Ops, GlobalAverageToCodesAndToFloats) {
  std::mt19937 rng(3);
  for (int i = 0; i < 40; ++i) {
    Shape s = random_shape(rng);
    s.c = random_channels(rng);
    if (i % 5 == 0) {  // sums that leave 16 bits, several vectors of channels
      constexpr int64_t kChannels[] = {16, 32, 130, 150, 300};
      s.h = 23, s.w = 29, s.c = kChannels[i / 5 % 5];
    }
    const OwnedTensor in = random_source(rng, s.n, s.h, s.w, s.c);
    OwnedTensor out = random_like(rng, s.n, 1, 1, s.c);
    std::vector<float> floats(static_cast<size_t>(s.n * s.c));
    GlobalAverageArgs a{.in = in.view,
                        .out = out.view,
                        .float_out = floats.data(),
                        .scale_in = uniform(rng, 0.01f, 0.1f),
                        .scale_out = uniform(rng, 0.01f, 0.1f)};
    const auto sum = [&](int64_t n, int64_t c) {
      int total = 0;
      for (int64_t y = 0; y < s.h; ++y)
        for (int64_t x = 0; x < s.w; ++x) total += code(a.in, n, y, x, c) - a.in.zero_point;
      return total;
    };
    const auto count = static_cast<int32_t>(s.h * s.w);
    const int64_t blocks = s.n * padded_channels(s.c) / 16;
    check_on_every_isa(
        rng, out, blocks, [&](const KernelTable& k, Range r) { k.global_average(a, r); },
        [&](int64_t n, int64_t, int64_t, int64_t c) {
          return numerics::requantize(sum(n, c), numerics::average_multiplier(a.scale_in, count, a.scale_out),
                                      a.out.zero_point, 0, 255);
        });
    GlobalAverageArgs to_float = a;
    to_float.out.data = nullptr;
    for (Isa isa : supported_isas()) {
      std::fill(floats.begin(), floats.end(), -1.0f);
      kernels(isa).global_average(to_float, Range{0, blocks});
      for (int64_t n = 0; n < s.n; ++n)
        for (int64_t c = 0; c < s.c; ++c)
          ASSERT_EQ(floats[static_cast<size_t>(n * s.c + c)],
                    static_cast<float>(sum(n, c)) * numerics::average_multiplier(a.scale_in, count, 1.0f))
              << isa_name(isa);
    }
  }
}

TEST(Int8Ops, GlobalAverageFromRowSums) {
  std::mt19937 rng(31);
  for (int i = 0; i < 60; ++i) {
    Shape s = random_shape(rng);
    if (i % 10 == 0) s = {1, 3, 301, 17};  // more pixels than 16 bits can add up
    s.c = i % 10 == 0 ? 100 : random_channels(rng);
    const OwnedTensor in = random_source(rng, s.n, s.h, s.w, s.c);
    const int64_t pitch = padded_channels(s.c), rows = s.n * s.h, cut = rng() % (rows + 1);
    const float scale_in = uniform(rng, 0.01f, 0.1f), scale_out = uniform(rng, 0.01f, 0.1f);
    const float m = numerics::average_multiplier(scale_in, static_cast<int32_t>(s.h * s.w), scale_out);
    for (Isa isa : supported_isas()) {
      const KernelTable& k = kernels(isa);
      std::vector<int32_t> sums(static_cast<size_t>(rows * pitch), -1);
      k.row_sums(RowSumsArgs{in.view, sums.data()}, Range{0, cut});
      k.row_sums(RowSumsArgs{in.view, sums.data()}, Range{cut, rows});
      for (int64_t n = 0; n < s.n; ++n) {
        std::vector<uint8_t> mean(static_cast<size_t>(pitch));
        k.mean_of_sums(MeanOfSumsArgs{.sums = sums.data() + n * s.h * pitch,
                                      .rows = s.h,
                                      .channels = pitch,
                                      .pixels = s.h * s.w,
                                      .in_zero_point = in.view.zero_point,
                                      .multiplier = m,
                                      .zero_point = 117,
                                      .lo = 3,
                                      .hi = 250,
                                      .out = mean.data()});
        for (int64_t c = 0; c < s.c; ++c) {
          int32_t total = 0;
          for (int64_t y = 0; y < s.h; ++y)
            for (int64_t x = 0; x < s.w; ++x) total += code(in.view, n, y, x, c) - in.view.zero_point;
          ASSERT_EQ(mean[static_cast<size_t>(c)], numerics::requantize(total, m, 117, 3, 250)) << isa_name(isa);
        }
      }
    }
  }
}

TEST(Int8Ops, AddAndMulWithBroadcasting) {
  std::mt19937 rng(4);
  for (int i = 0; i < 80; ++i) {
    Shape s = random_shape(rng);
    s.c = random_channels(rng);
    const bool pixel = i % 3 == 0, batch = i % 5 == 0;
    const OwnedTensor left = random_source(rng, s.n, s.h, s.w, s.c);
    const OwnedTensor right = random_source(rng, batch ? 1 : s.n, pixel ? 1 : s.h, pixel ? 1 : s.w, s.c);
    OwnedTensor out = random_like(rng, s.n, s.h, s.w, s.c);
    std::vector<uint8_t> table(256);
    for (auto& t : table) t = static_cast<uint8_t>(rng());
    const auto b_code = [&](int64_t n, int64_t y, int64_t x, int64_t c) {
      return code(right.view, batch ? 0 : n, pixel ? 0 : y, pixel ? 0 : x, c) - right.view.zero_point;
    };
    const AddArgs add{.a = left.view,
                      .b = right.view,
                      .out = out.view,
                      .a_multiplier = uniform(rng, 0.1f, 2.0f),
                      .b_multiplier = uniform(rng, -2.0f, 2.0f),
                      .lo = i % 2 ? 0 : out.view.zero_point,
                      .hi = 255,
                      .table = i % 4 ? nullptr : table.data()};
    check_on_every_isa(
        rng, out, s.n * s.h, [&](const KernelTable& k, Range r) { k.add(add, r); },
        [&](int64_t n, int64_t y, int64_t x, int64_t c) {
          const int q =
              numerics::add_quantized(code(left.view, n, y, x, c) - left.view.zero_point, add.a_multiplier,
                                      b_code(n, y, x, c), add.b_multiplier, out.view.zero_point, add.lo, add.hi);
          return add.table ? table[static_cast<size_t>(q)] : q;
        });
    const MulArgs mul{.a = left.view,
                      .b = right.view,
                      .out = out.view,
                      .multiplier = uniform(rng, 0.001f, 0.05f),
                      .lo = 3,
                      .hi = 250};
    check_on_every_isa(
        rng, out, s.n * s.h, [&](const KernelTable& k, Range r) { k.mul(mul, r); },
        [&](int64_t n, int64_t y, int64_t x, int64_t c) {
          const int product = (code(left.view, n, y, x, c) - left.view.zero_point) * b_code(n, y, x, c);
          return numerics::requantize(product, mul.multiplier, out.view.zero_point, 3, 250);
        });
  }
}

TEST(Int8Ops, CopyWritesExactlyItsChannels) {
  std::mt19937 rng(5);
  for (int i = 0; i < 60; ++i) {
    const Shape s = random_shape(rng);
    const OwnedTensor in = random_source(rng, s.n, s.h, s.w, s.c);
    // A window in the middle of a wider tensor, as a concatenation has it.
    const int64_t before = pick(rng, 0, 20), after = pick(rng, 0, 20);
    OwnedTensor whole = random_like(rng, s.n, s.h, s.w, before + s.c + after);
    std::vector<uint8_t> table(256);
    for (auto& t : table) t = static_cast<uint8_t>(rng());
    CopyArgs a{.in = in.view, .out = whole.view, .table = i % 2 ? table.data() : nullptr};
    a.out.data += before;
    a.out.c = s.c;
    check_on_every_isa(
        rng, whole, s.n * s.h, [&](const KernelTable& k, Range r) { k.copy(a, r); },
        [&](int64_t n, int64_t y, int64_t x, int64_t c) {
          if (c < before || c >= before + s.c) return 0xa5;
          const int q = code(in.view, n, y, x, c - before);
          return a.table ? int{table[static_cast<size_t>(q)]} : q;
        });
  }
}

TEST(Int8Ops, ResizeNearest) {
  std::mt19937 rng(6);
  for (int i = 0; i < 20; ++i) {
    const Shape s = random_shape(rng);
    const int64_t oh = pick(rng, 1, 12), ow = pick(rng, 1, 12);
    const OwnedTensor in = random_source(rng, s.n, s.h, s.w, s.c);
    OwnedTensor out = random_like(rng, s.n, oh, ow, s.c);
    std::vector<int32_t> ys(static_cast<size_t>(oh)), xs(static_cast<size_t>(ow));
    for (auto& y : ys) y = static_cast<int32_t>(pick(rng, 0, s.h - 1));
    for (auto& x : xs) x = static_cast<int32_t>(pick(rng, 0, s.w - 1));
    const ResizeNearestArgs a{in.view, out.view, ys.data(), xs.data()};
    check_on_every_isa(
        rng, out, s.n * oh, [&](const KernelTable& k, Range r) { k.resize_nearest(a, r); },
        [&](int64_t n, int64_t y, int64_t x, int64_t c) {
          return code(in.view, n, ys[static_cast<size_t>(y)], xs[static_cast<size_t>(x)], c);
        });
  }
}

TEST(Int8Ops, QuantizeAndDequantizeOfBothLayouts) {
  std::mt19937 rng(7);
  for (int i = 0; i < 60; ++i) {
    Shape s = random_shape(rng);
    s.c = random_channels(rng);
    const FloatStrides strides = i % 2 ? nchw_strides(s.h, s.w, s.c) : nhwc_strides(s.h, s.w, s.c);
    std::vector<float> floats(static_cast<size_t>(s.n * s.h * s.w * s.c));
    const float scale = uniform(rng, 0.005f, 0.1f);
    for (auto& f : floats) {
      f = uniform(rng, -20.0f, 20.0f);
      if (pick(rng, 0, 9) == 0) f = (static_cast<float>(pick(rng, -130, 130)) + 0.5f) * scale;  // ties
      if (pick(rng, 0, 40) == 0) f = std::numeric_limits<float>::quiet_NaN();
      if (pick(rng, 0, 40) == 0) f = i % 4 ? 3e38f : -std::numeric_limits<float>::infinity();
    }
    const auto at = [&](int64_t n, int64_t y, int64_t x, int64_t c) {
      return static_cast<size_t>(n * strides.n + y * strides.h + x * strides.w + c * strides.c);
    };
    OwnedTensor out = random_like(rng, s.n, s.h, s.w, s.c);
    QuantizeArgs q{.in = floats.data(), .in_strides = strides, .out = out.view};
    q.params = {scale, out.view.zero_point, 0, 255};
    if (i % 3 == 0) q.params.qmin = 1;
    if (q.params.zero_point < q.params.qmin) q.params.zero_point = q.out.zero_point = out.view.zero_point = 1;
    check_on_every_isa(
        rng, out, s.n * s.h, [&](const KernelTable& k, Range r) { k.quantize(q, r); },
        [&](int64_t n, int64_t y, int64_t x, int64_t c) {
          return numerics::quantize(floats[at(n, y, x, c)], q.params);
        });
    DequantizeArgs d{.in = out.view, .out = floats.data(), .out_strides = strides, .scale = scale};
    for (Isa isa : supported_isas()) {
      std::fill(floats.begin(), floats.end(), -1e9f);
      kernels(isa).dequantize(d, Range{0, s.n * s.h});
      for_each(out.view, [&](int64_t n, int64_t y, int64_t x, int64_t c, int q8) {
        ASSERT_EQ(floats[at(n, y, x, c)], static_cast<float>(q8 - out.view.zero_point) * scale) << isa_name(isa);
      });
    }
  }
}

// The floats around every border between two codes, where a quotient that is off in its last bit shows.
TEST(Int8Ops, QuantizeRoundsTheExactQuotient) {
  std::mt19937 rng(9);
  for (int i = 0; i < 200; ++i) {
    const float scale = std::exp(uniform(rng, i % 4 ? -8.0f : -40.0f, i % 4 ? 1.0f : 40.0f));
    const auto zero_point = static_cast<int32_t>(pick(rng, 0, 255));
    std::vector<float> floats;
    for (int step = -259; step <= 259; ++step) {
      float x = (static_cast<float>(step) + 0.5f) * scale;
      for (int back = 0; back < 4; ++back) x = std::nextafter(x, -INFINITY);
      for (int ulp = 0; ulp < 9; ++ulp, x = std::nextafter(x, INFINITY)) floats.push_back(x);
    }
    const auto width = static_cast<int64_t>(floats.size() / 3);
    OwnedTensor out = random_like(rng, 1, 1, width, 3);
    const QuantizeArgs q{.in = floats.data(),
                         .in_strides = nchw_strides(1, width, 3),
                         .out = out.view,
                         .params = {scale, zero_point, 0, 255}};
    check_on_every_isa(
        rng, out, 1, [&](const KernelTable& k, Range r) { k.quantize(q, r); },
        [&](int64_t, int64_t, int64_t x, int64_t c) {
          return numerics::quantize(floats[static_cast<size_t>(c * width + x)], q.params);
        });
  }
}

TEST(Int8Ops, HaloIsFilledAndNothingElse) {
  std::mt19937 rng(8);
  for (int i = 0; i < 20; ++i) {
    const Shape s = random_shape(rng);
    const Halo halo{pick(rng, 0, 3), pick(rng, 0, 3), pick(rng, 0, 3), pick(rng, 0, 3)};
    std::vector<uint8_t> bytes(static_cast<size_t>(qtensor_bytes(s.n, s.h, s.w, s.c, halo)), 0x11);
    const QTensor t = make_qtensor(bytes.data(), s.n, s.h, s.w, s.c, halo, 0x77);
    const int64_t cut = pick(rng, 0, s.n * s.h);
    fill_halo(t, halo, {0, cut});
    fill_halo(t, halo, {cut, s.n * s.h});
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t y = -halo.top; y < s.h + halo.bottom; ++y)
        for (int64_t x = -halo.left; x < s.w + halo.right; ++x)
          for (int64_t c = 0; c < t.c_pitch; ++c) {
            const bool inside = y >= 0 && y < s.h && x >= 0 && x < s.w;
            ASSERT_EQ(code(t, n, y, x, c), inside ? 0x11 : 0x77);
          }
    for (size_t b = bytes.size() - kReadSlack; b < bytes.size(); ++b) ASSERT_EQ(bytes[b], 0x11);
  }
}

}  // namespace
}  // namespace octet::kernels
