// Pooling: the scalar reference against plain formulas over integers and doubles, every instruction set against the
// reference bit for bit.
#include <cmath>
#include <cstring>
#include <limits>

#include "base/window.h"
#include "kernels/int8_op_cases.h"
#include "numerics/quantize.h"

namespace octet::kernels {
namespace {

// The image has `s`; half of the windows are about as large, with pads that reach as far as the taps.
PoolWindow random_window(std::mt19937& rng, Shape& s, int64_t* out_h, int64_t* out_w) {
  for (;;) {
    PoolWindow p;
    p.kernel_h = pick(rng, 1, 5);
    p.kernel_w = pick(rng, 1, 5);
    p.stride_h = pick(rng, 1, 3);
    p.stride_w = pick(rng, 1, 3);
    p.dilation_h = pick(rng, 1, 3);
    p.dilation_w = pick(rng, 1, 3);
    const int64_t reach_h = (p.kernel_h - 1) * p.dilation_h, reach_w = (p.kernel_w - 1) * p.dilation_w;
    p.pad_top = pick(rng, 0, reach_h);
    p.pad_left = pick(rng, 0, reach_w);
    p.pad_bottom = pick(rng, 0, reach_h);
    p.pad_right = pick(rng, 0, reach_w);
    Shape image = s;
    if (pick(rng, 0, 1)) image.h += reach_h, image.w += reach_w;
    const int64_t room_h = image.h + p.pad_top + p.pad_bottom - reach_h - 1,
                  room_w = image.w + p.pad_left + p.pad_right - reach_w - 1;
    if (room_h < 0 || room_w < 0) continue;
    *out_h = room_h / p.stride_h + 1, *out_w = room_w / p.stride_w + 1;
    if (first_window_outside(*out_h, p.kernel_h, p.stride_h, p.dilation_h, p.pad_top, image.h) >= 0 ||
        first_window_outside(*out_w, p.kernel_w, p.stride_w, p.dilation_w, p.pad_left, image.w) >= 0)
      continue;
    s = image;
    return p;
  }
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

TEST(Pooling, MaxPool) {
  std::mt19937 rng(1);
  for (int i = 0; i < 80; ++i) {
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

TEST(Pooling, AveragePool) {
  std::mt19937 rng(2);
  for (int i = 0; i < 80; ++i) {
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

TEST(Pooling, GlobalAverageToCodesAndToFloats) {
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

TEST(Pooling, GlobalAverageFromRowSums) {
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

}  // namespace
}  // namespace octet::kernels
