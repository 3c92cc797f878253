// Max pooling, sums, products and quantization with the vectors of the compiler, a block of 16 channels at a time.
#include "engine/kernels/generic/generic_kernels.h"
#include "engine/kernels/generic/vector.h"

namespace octet::kernels {
namespace {

Range taps_inside(int64_t start, int64_t dilation, int64_t kernel, int64_t size) {
  Range t{0, kernel};
  while (t.begin < t.end && start + t.begin * dilation < 0) ++t.begin;
  while (t.end > t.begin && start + (t.end - 1) * dilation >= size) --t.end;
  return t;
}

void max_pool(const MaxPoolArgs& a, Range rows) {
  const PoolWindow& p = a.window;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t y0 = r % a.out.h * p.stride_h - p.pad_top;
    const Range ky = taps_inside(y0, p.dilation_h, p.kernel_h, a.in.h);
    for (int64_t x = 0; x < a.out.w; ++x) {
      const int64_t x0 = x * p.stride_w - p.pad_left;
      const Range kx = taps_inside(x0, p.dilation_w, p.kernel_w, a.in.w);
      for (int64_t c = 0; c < a.out.c; c += kChannelBlock) {
        Codes best = {};
        for (int64_t i = ky.begin; i < ky.end; ++i) {
          const uint8_t* in = a.in.data + r / a.out.h * a.in.image_stride + (y0 + i * p.dilation_h) * a.in.row_stride +
                              x0 * a.in.c_pitch + c;
          for (int64_t j = kx.begin; j < kx.end; ++j) {
            const Codes codes = load<Codes>(in + j * p.dilation_w * a.in.c_pitch);
            best = codes > best ? codes : best;
          }
        }
        store_codes(row_of(a.out, r) + x * a.out.c_pitch + c, best, a.out.c_pitch);
      }
    }
  }
}

// Applies value(left, right), floats of code - zero point, to all channels of all pixels; `right` may be broadcast.
template <typename Value>
OCTET_INLINE void combine(const QTensor& a, const QTensor& b, const QTensor& out, const Limits& limits,
                          const uint8_t* table, Range rows, Value&& value) {
  const Ints a_zero = all(a.zero_point), b_zero = all(b.zero_point);
  const bool one_pixel = b.h == 1 && b.w == 1;
  const int64_t b_step = one_pixel ? 0 : b.c_pitch;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* right =
        b.data + (b.n == 1 ? 0 : r / out.h) * b.image_stride + (one_pixel ? 0 : r % out.h * b.row_stride);
    const uint8_t* left = row_of(a, r);
    uint8_t* to = row_of(out, r);
    for (int64_t x = 0; x < out.w; ++x, left += a.c_pitch, right += b_step, to += out.c_pitch)
      for (int64_t c = 0; c < out.c; c += kChannelBlock) {
        const auto eight = [&](int64_t i, Ints & first, Ints & second) __attribute__((always_inline)) {
          const Words p = words(left + c + i), q = words(right + c + i);
          first = limits(value(floats(low(p) - a_zero), floats(low(q) - b_zero)));
          second = limits(value(floats(high(p) - a_zero), floats(high(q) - b_zero)));
        };
        Ints v[4];
        eight(0, v[0], v[1]);
        eight(8, v[2], v[3]);
        Codes codes = narrow(v[0], v[1], v[2], v[3]);
        look_up(codes, table);
        store_codes(to + c, codes, out.c_pitch);
      }
  }
}

void add(const AddArgs& a, Range rows) {
  const Floats am = all(a.a_multiplier), bm = all(a.b_multiplier);
  combine(
      a.a, a.b, a.out, Limits(a.lo, a.hi, a.out.zero_point), a.table,
      rows, [&](Floats p, Floats q) __attribute__((always_inline)) { return p * am + q * bm; });
}

void mul(const MulArgs& a, Range rows) {
  const Floats m = all(a.multiplier);
  // Products of two 9-bit numbers are exact in float.
  combine(
      a.a, a.b, a.out, Limits(a.lo, a.hi, a.out.zero_point), nullptr,
      rows, [&](Floats p, Floats q) __attribute__((always_inline)) { return p * q * m; });
}

void scale_shift_codes(const ScaleShiftCodesArgs& a, Range rows) {
  const Limits limits(a.lo, a.hi, 0);
  int64_t whole = a.out.c / kChannelBlock * kChannelBlock;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* in = row_of(a.in, r);
    uint8_t* out = row_of(a.out, r);
    for (int64_t x = 0; x < a.out.w; ++x, in += a.in.c_pitch, out += a.out.c_pitch)
      for (int64_t c = 0; c < whole; c += kChannelBlock) {
        const auto four = [&](Ints q, int64_t i) __attribute__((always_inline)) {
          return limits(floats(q) * load<Floats>(a.multiplier + c + i) + load<Floats>(a.offset + c + i));
        };
        const Words left = words(in + c), right = words(in + c + 8);
        store(out + c, narrow(four(low(left), 0), four(high(left), 4), four(low(right), 8), four(high(right), 12)));
      }
  }
  if (whole == a.out.c) return;
  ScaleShiftCodesArgs rest = a;
  rest.in.data += whole, rest.out.data += whole, rest.multiplier += whole, rest.offset += whole;
  rest.in.c -= whole, rest.out.c -= whole;
  kernels(Isa::kScalar).scale_shift_codes(rest, rows);
}

// numerics::quantize of vectors: a true division, round to nearest even, NaN -> zero point.
class Quantizer {
 public:
  explicit Quantizer(const numerics::QuantParams& p) : limits_(p.qmin, p.qmax, p.zero_point), scale_(all(p.scale)) {}
  OCTET_INLINE Ints operator()(const float* in) const {
    const Floats v = load<Floats>(in) / scale_;
    return limits_(v == v ? v : Floats{});
  }

 private:
  const Limits limits_;
  const Floats scale_;
};

// A row of planes -> pixels of 4 bytes.
void quantize_planes(const QuantizeArgs& a, const Quantizer& codes, const float* in, uint8_t* out) {
  const auto one = [&](int64_t x, int64_t c) {
    return static_cast<uint8_t>(c < a.out.c ? numerics::quantize(in[x + c * a.in_strides.c], a.params)
                                            : a.params.zero_point);
  };
  int64_t x = 0;
  for (; x + 4 <= a.out.w; x += 4) {
    Ints pixels = {};
    for (int64_t c = 0; c < 4; ++c)
      pixels |= (c < a.out.c ? codes(in + x + c * a.in_strides.c) : all(a.params.zero_point))
                << static_cast<int>(8 * c);
    store(out + 4 * x, pixels);
  }
  for (; x < a.out.w; ++x)
    for (int64_t c = 0; c < 4; ++c) out[4 * x + c] = one(x, c);
}

// The channels of a pixel, next to each other.
void quantize_pixel(const QuantizeArgs& a, const Quantizer& codes, const float* in, uint8_t* out) {
  int64_t c = 0;
  for (; c + 16 <= a.out.c; c += 16)
    store(out + c, narrow(codes(in + c), codes(in + c + 4), codes(in + c + 8), codes(in + c + 12)));
  for (; c < a.out.c; ++c) out[c] = static_cast<uint8_t>(numerics::quantize(in[c], a.params));
  if (a.out.c_pitch == 4)
    for (; c < 4; ++c) out[c] = static_cast<uint8_t>(a.params.zero_point);
}

void quantize(const QuantizeArgs& a, Range rows) {
  const FloatStrides& s = a.in_strides;
  const bool planes = a.out.c_pitch == 4 && s.w == 1;
  if (!planes && s.c != 1) return kernels(Isa::kScalar).quantize(a, rows);
  const Quantizer codes(a.params);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* in = a.in + r / a.out.h * s.n + r % a.out.h * s.h;
    uint8_t* out = row_of(a.out, r);
    if (planes) {
      quantize_planes(a, codes, in, out);
    } else {
      for (int64_t x = 0; x < a.out.w; ++x) quantize_pixel(a, codes, in + x * s.w, out + x * a.out.c_pitch);
    }
  }
}

}  // namespace

void add_generic_int8_ops(KernelTable& table) {
  table.max_pool = {max_pool, Isa::kGeneric};
  table.add = {add, Isa::kGeneric};
  table.mul = {mul, Isa::kGeneric};
  table.scale_shift_codes = {scale_shift_codes, Isa::kGeneric};
  table.quantize = {quantize, Isa::kGeneric};
}

}  // namespace octet::kernels
