// Depthwise convolution with vpdpbusd: walks along strips of pixels for the common kernels (walks.h), quads
// of every pixel for other shapes, one tap per dword for the rest.
#include "engine/kernels/avx512_vnni/depthwise/walks.h"
#include "engine/kernels/avx512_vnni/functions.h"

namespace octet::kernels {
namespace {

// Any kernel and stride: builds all quads for every output pixel.
OCTET_INLINE Z gather(const Block& block, const uint8_t* in, int64_t kernel_h, int64_t row_step, int64_t quads,
                      const int64_t (*taps)[4], const Constants& k) {
  Z acc[4] = {block.start[0], block.start[1], block.start[2], block.start[3]};
  const Z(*w)[4] = block.weights;
  for (int64_t ky = 0; ky < kernel_h; ++ky, in += row_step)
    for (int64_t q = 0; q < quads; ++q, ++w) {
      const int64_t* t = taps[q];
      const Quad x = interleave(_mm512_loadu_si512(in + t[0]), _mm512_loadu_si512(in + t[1]),
                                _mm512_loadu_si512(in + t[2]), _mm512_loadu_si512(in + t[3]));
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) acc[g] = _mm512_dpbusd_epi32(acc[g], x.v[g], (*w)[g]);
    }
  return codes<Finish::kClamped>(acc, block, k, nullptr);
}

// Residuals, float outputs, very large kernels, and functions of steps behind uncommon ones: 16 channels a vector, one
// tap per dword, the common epilogue.
void general(const ConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const Constants constants = make_constants(e);
  const int64_t padded = (g.out_channels + 15) / 16 * 16;
  constexpr int64_t kPixels = 8;
  alignas(64) int32_t acc[kPixels * 16];
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t c = 0; c < padded; c += 16)
      for (int64_t x = 0; x < e.out.w; x += kPixels) {
        const int64_t n = r / e.out.h, y = r % e.out.h, pixels = smaller(kPixels, e.out.w - x);
        for (int64_t p = 0; p < pixels; ++p) {
          const uint8_t* in = a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride +
                              ((x + p) * g.stride_w - g.pad_left) * a.in.c_pitch + c;
          Z sum = _mm512_loadu_si512(a.acc_init + c);
          const int8_t* w = a.weights + c;
          for (int64_t ky = 0; ky < g.kernel_h; ++ky)
            for (int64_t kx = 0; kx < g.kernel_w; ++kx, w += padded)
              sum = _mm512_dpbusd_epi32(sum,
                                        _mm512_cvtepu8_epi32(load16(in + ky * g.dilation_h * a.in.row_stride +
                                                                    kx * g.dilation_w * a.in.c_pitch)),
                                        _mm512_cvtepi8_epi32(load16(w)));
          _mm512_store_si512(acc + p * 16, sum);
        }
        finish<1>({acc, pixels, c, n, y, x}, e, constants);
      }
}

// The shortest way that is right for these numbers.
Finish choose_finish(const ConvArgs& a, const Constants& constants) {
  if (relu_shortcut(a, a.geometry.kernel_h * a.geometry.kernel_w)) return Finish::kRelu;
  if (!sums_are_bounded(a.epilogue)) return Finish::kClamped;
  if (constants.lines.rows && lines_shortcut(a.epilogue)) return Finish::kShortLines;
  if (constants.function) return constants.lines.rows && !constants.tails ? Finish::kLines : Finish::kFunction;
  return constants.table ? Finish::kTable : Finish::kScale;
}

Walks walks_for(Finish finish, const ConvGeometry& g, int64_t parts) {
  switch (finish) {
    case Finish::kRelu:
      return choose_walks<Finish::kRelu>(g, parts);
    case Finish::kTable:
      return choose_walks<Finish::kTable>(g, parts);
    case Finish::kShortLines:
      return choose_walks<Finish::kShortLines>(g, parts);
    case Finish::kLines:
      return choose_walks<Finish::kLines>(g, parts);
    case Finish::kFunction:
      return choose_walks<Finish::kFunction>(g, parts);
    default:
      return choose_walks<Finish::kScale>(g, parts);
  }
}

struct Job {
  const ConvArgs& args;
  const Constants constants;
  const int64_t padded;  // channels, a multiple of 16
  const Finish finish;

  const uint8_t* in(int64_t n, int64_t y, int64_t c) const {
    const ConvGeometry& g = args.geometry;
    return args.in.data + n * args.in.image_stride + (y * g.stride_h - g.pad_top) * args.in.row_stride -
           g.pad_left * args.in.c_pitch + c;
  }
  uint8_t* out(int64_t n, int64_t y, int64_t c) const {
    const QTensor& t = args.epilogue.out;
    return t.data + n * t.image_stride + y * t.row_stride + c;
  }
};

// 3x3 and 5x5. A block with 32 or 16 channels takes the pixels of two or four pieces of the row side by side; pieces
// overlap where the row cannot be cut evenly.
void walk(const Job& j, Range rows) {
  const ConvArgs& a = j.args;
  const ConvGeometry& g = a.geometry;
  const QTensor& to = a.epilogue.out;
  Block block;
  for (int64_t c = 0; c < j.padded;) {
    const int64_t left = j.padded - c, part = left >= 48 ? 64 : left, parts = 64 / part;
    const BlockMaker maker{a, j.padded, c, part};
    if (g.kernel_w == 3) {
      make_block3(maker, block);
    } else {
      make_block5(maker, block);
    }
    maker.set_epilogue(block, j.finish);
    Strip s{.in_row = a.in.row_stride,
            .in_pixel = a.in.c_pitch,
            .out_row = to.row_stride,
            .out_pixel = to.c_pitch,
            .length = (to.w + parts - 1) / parts};
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t x = smaller(i * s.length, to.w - s.length);
      block.in_part[i] = x * g.stride_w * a.in.c_pitch, block.out_part[i] = x * to.c_pitch;
    }
    const Walks walks = walks_for(j.finish, g, parts);
    for (int64_t r = rows.begin; r < rows.end;) {
      const int64_t n = r / to.h, y = r % to.h;
      s.in = j.in(n, y, c), s.out = j.out(n, y, c);
      const bool two = walks.two_rows && r + 1 < rows.end && y + 1 < to.h;
      (two ? walks.two_rows : walks.one_row)(block, s, j.constants, a.epilogue.table);
      r += two ? 2 : 1;
    }
    c += part;
  }
}

// Other kernels, strides and dilations.
void gather(const Job& j, Range rows, int64_t quads) {
  const ConvArgs& a = j.args;
  const ConvGeometry& g = a.geometry;
  const QTensor& to = a.epilogue.out;
  // With 16 or 32 channels and stride 1 a vector holds 4 or 2 neighboring pixels.
  const bool neighbors =
      g.stride_w == 1 && (j.padded == 16 || j.padded == 32) && a.in.c_pitch == j.padded && to.c_pitch == j.padded;
  const int64_t pixels = neighbors ? 64 / j.padded : 1;
  const int64_t tap_step = g.dilation_w * a.in.c_pitch, row_step = g.dilation_h * a.in.row_stride;
  int64_t taps[kMaxQuads][4];
  for (int64_t q = 0; q < quads; ++q)
    for (int64_t i = 0; i < 4; ++i) taps[q][i] = smaller(q * 4 + i, g.kernel_w - 1) * tap_step;
  Block block;
  for (int64_t c = 0; c < j.padded; c += 64) {
    const BlockMaker maker{a, j.padded, c, neighbors ? j.padded : 64};
    for (int64_t ky = 0; ky < g.kernel_h; ++ky)
      for (int64_t q = 0; q < quads; ++q)
        maker.set_weights(block.weights[ky * quads + q], maker.tap(ky, q * 4), maker.tap(ky, q * 4 + 1),
                          maker.tap(ky, q * 4 + 2), maker.tap(ky, q * 4 + 3));
    maker.set_epilogue(block, Finish::kClamped);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const uint8_t* in = j.in(r / to.h, r % to.h, c);
      uint8_t* out = j.out(r / to.h, r % to.h, c);
      for (int64_t x = 0; x < to.w; x += pixels) {
        const int64_t left = (to.w - x) * j.padded;
        _mm512_mask_storeu_epi8(
            out + x * to.c_pitch, !neighbors || left >= 64 ? block.mask : (1ull << left) - 1,
            gather(block, in + x * g.stride_w * a.in.c_pitch, g.kernel_h, row_step, quads, taps, j.constants));
      }
    }
  }
}

}  // namespace

void depthwise_avx512_vnni(const ConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const int64_t quads = (g.kernel_w + 3) / 4, padded = (g.out_channels + 15) / 16 * 16;
  if (e.out.data == nullptr || e.residual.data || e.out.c_pitch < 16 || a.in.c_pitch < 16 ||
      quads * g.kernel_h > kMaxQuads)
    return general(a, rows);
  const Constants constants = make_constants(e);
  const Job job{a, constants, padded, choose_finish(a, constants)};
  const bool walks = has_walks(g) && job.finish != Finish::kClamped;
  if (e.function && !walks) return general(a, rows);
  if (walks) {
    walk(job, rows);
    if (job.finish == Finish::kTable || e.function) return;
  } else {
    gather(job, rows, quads);
  }
  if (e.table == nullptr) return;
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t x = 0; x < e.out.w; ++x) {
      uint8_t* p = job.out(r / e.out.h, r % e.out.h, 0) + x * e.out.c_pitch;
      look_up(e.table, p, p, padded);
    }
}

}  // namespace octet::kernels
