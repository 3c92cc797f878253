// Kernels without weights but pooling: the scalar reference against plain formulas over integers and doubles, every
// instruction set against the reference bit for bit.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/int8_op_cases.h"
#include "numerics/quantize.h"

namespace octet::kernels {
namespace {

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

TEST(Int8Ops, ScaleShiftCodes) {
  std::mt19937 rng(9);
  for (int i = 0; i < 60; ++i) {
    Shape s = random_shape(rng);
    if (i % 2) s.c = pick(rng, 1, 200);
    const OwnedTensor in = random_source(rng, s.n, s.h, s.w, s.c);
    OwnedTensor out = random_like(rng, s.n, s.h, s.w, s.c);
    std::vector<float> multiplier(static_cast<size_t>(s.c)), offset(multiplier.size());
    for (size_t c = 0; c < multiplier.size(); ++c) {
      multiplier[c] = uniform(rng, -3.0f, 3.0f), offset[c] = uniform(rng, -300.0f, 300.0f);
      if (c % 3 == 1) multiplier[c] = 0.5f, offset[c] = static_cast<float>(pick(rng, -100, 100));  // ties
      if (c % 7 == 1) multiplier[c] = uniform(rng, -16000.0f, 16000.0f);
    }
    ScaleShiftCodesArgs a{in.view, out.view, multiplier.data(), offset.data()};
    a.lo = static_cast<int32_t>(pick(rng, 0, 128)), a.hi = static_cast<int32_t>(pick(rng, a.lo, 255));
    check_on_every_isa(
        rng, out, s.n * s.h, [&](const KernelTable& k, Range r) { k.scale_shift_codes(a, r); },
        [&](int64_t n, int64_t y, int64_t x, int64_t c) {
          const auto at = static_cast<size_t>(c);
          const float product = static_cast<float>(code(in.view, n, y, x, c)) * multiplier[at];
          return static_cast<int>(
              std::clamp(std::nearbyint(product + offset[at]), static_cast<float>(a.lo), static_cast<float>(a.hi)));
        });
  }
}

TEST(Int8Ops, ChannelShuffle) {
  std::mt19937 rng(8);
  for (int i = 0; i < 40; ++i) {
    const Shape s = random_shape(rng);
    const int64_t groups = i % 2 ? 2 : pick(rng, 1, 5), each = pick(rng, 1, 80), channels = groups * each;
    const OwnedTensor in = random_source(rng, s.n, s.h, s.w, channels);
    OwnedTensor out = random_like(rng, s.n, s.h, s.w, channels);
    const ChannelShuffleArgs a{in.view, out.view, groups};
    check_on_every_isa(
        rng, out, s.n * s.h, [&](const KernelTable& k, Range r) { k.channel_shuffle(a, r); },
        [&](int64_t n, int64_t y, int64_t x, int64_t c) {
          return code(in.view, n, y, x, c % groups * each + c / groups);
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
