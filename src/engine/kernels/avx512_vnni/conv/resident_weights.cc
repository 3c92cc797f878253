// Convolutions with few products: all weights of a group of channels stay in registers while the pixels pass.
//
// Sums of 16 to 40 products are so short that in `direct` the way into and out of a tile takes half of the time. Here
// the number of products is known to the compiler, tiles are small, and one follows the other without a call, so that
// the finish of one runs beside the products of the next.
#include "engine/kernels/avx512_vnni/codes_finish.h"
#include "engine/kernels/avx512_vnni/conv/row_runs.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/cpu_model.h"

namespace octet::kernels {
namespace {

// A line of output pixels, of which a call takes one group of channels. Distances in bytes.
struct Line {
  const uint8_t* in = nullptr;
  uint8_t* out = nullptr;
  int64_t pixels = 0;  // at least as many as a tile has
  int64_t in_pixel = 0, in_row = 0;
};

// The weights of V blocks of channels: R rows of the kernel, D dwords in each. Tiles have P pixels.
template <Finish F, int R, int D, int V, int P>
struct Group {
  Z weights[R * D][V];
  Z acc[P][V];
  int64_t s1, s3, s5;

  template <int Row, int Dword>
  OCTET_INLINE void products(const uint8_t* low, int64_t in_row) {
    add_dword<Dword>(acc, low, low + 7 * s1, weights[Row * D + Dword], s1, s3, s5);
    if constexpr (Dword + 1 < D) {
      products<Row, Dword + 1>(low, in_row);
    } else if constexpr (Row + 1 < R) {
      products<Row + 1, 0>(low + in_row, in_row);
    }
  }

  OCTET_INLINE void run(const Line& line, const int8_t* w, int64_t block_bytes, const CodesFinish& f) {
    // By hand, so that the compiler does not load them again for every tile.
#pragma GCC unroll 32
    for (int i = 0; i < R * D; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
        asm volatile("vmovdqa64 %1, %0"
                     : "=v"(weights[i][v])
                     : "m"(*reinterpret_cast<const Z*>(w + v * block_bytes + i * 64)));
    s1 = line.in_pixel, s3 = 3 * s1, s5 = 5 * s1;
    const uint8_t* in = line.in;
    uint8_t* out = line.out;
    for (int64_t left = line.pixels; left > 0; left -= P, in += P * s1, out += P * f.out_pixel) {
      if (left < P) in -= (P - left) * s1, out -= (P - left) * f.out_pixel;  // some pixels once more
        // Copies where loads are scarce: with one row of weights a pixel's broadcasts and finish take nearly all of
        // them.
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v)
          if (R > 1 || p == 0) {
            asm volatile("vmovdqa64 %1, %0" : "=v"(acc[p][v]) : "m"(*reinterpret_cast<const Z*>(f.start + v * 16)));
          } else {
            asm volatile("vmovdqa64 %1, %0" : "=v"(acc[p][v]) : "v"(acc[0][v]));
          }
      products<0, 0>(in, line.in_row);
      finish_in_registers<F>(acc, f, out);
    }
  }
};

template <Finish F, int R, int D, int V, int P>
void run_group(const Line& line, const int8_t* w, int64_t block_bytes, const CodesFinish& f) {
  Group<F, R, D, V, P> group;
  group.run(line, w, block_bytes, f);
}

using RunGroup = void(const Line&, const int8_t*, int64_t, const CodesFinish&);
constexpr int kMaxVectors = 4;
constexpr int64_t kMaxPixels = 8;       // of a tile
constexpr int64_t kPieceBytes = 16384;  // of output, until all of its channels are written

// The kernels for one shape of the kernel's rows: by the vectors of a group, as many as leave registers for the sums of
// at least two pixels.
struct Shape {
  int64_t rows = 0, dwords = 0;
  int most_vectors = 0;
  RunGroup* run[kFinishes][kMaxVectors + 1] = {};  // by Finish
};

template <int R, int D, int P1, int P2, int P3, int P4>
constexpr Shape make_shape() {
  Shape s{.rows = R, .dwords = D, .most_vectors = P4 ? 4 : P3 ? 3 : 2};
  const auto set = [&]<Finish F>() {
    RunGroup** run = s.run[static_cast<int>(F)];
    run[1] = run_group<F, R, D, 1, P1>;
    run[2] = run_group<F, R, D, 2, P2>;
    if constexpr (P3 > 0) run[3] = run_group<F, R, D, 3, P3>;
    if constexpr (P4 > 0) run[4] = run_group<F, R, D, 4, P4>;
  };
  set.template operator()<Finish::kRelu>();
  set.template operator()<Finish::kPlain>();
  set.template operator()<Finish::kAllCodes>();
  set.template operator()<Finish::kAny>();
  set.template operator()<Finish::kTable>();
  set.template operator()<Finish::kShortLines>();
  set.template operator()<Finish::kLines>();
  set.template operator()<Finish::kFunction>();
  return s;
}

// 16, 24, 32 and 40 channels, and 3x3 over pixels of four bytes.
constexpr Shape kShapes[] = {make_shape<1, 4, 8, 6, 3, 3>(), make_shape<1, 6, 8, 6, 3, 0>(),
                             make_shape<1, 8, 8, 6, 0, 0>(), make_shape<1, 10, 8, 4, 0, 0>(),
                             make_shape<3, 3, 8, 4, 0, 0>()};

const Shape* find_shape(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  if (g.groups > 1 || l.segments_per_row != 1) return nullptr;
  for (const Shape& s : kShapes)
    if (s.rows == g.kernel_h && s.dwords == run_dwords(g, l)) return &s;
  return nullptr;
}

bool applies(const ConvArgs& a) {
  const Epilogue& e = a.epilogue;
  return has_codes_finish(e) && e.out.c_pitch >= 16 && e.out.w >= kMaxPixels && find_shape(a);
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const Shape& shape = *find_shape(a);
  const int64_t block_bytes =
      conv_layout(g, a.in.c_pitch).weight_bytes / (padded_channels(g.out_channels) / kChannelBlock);
  const bool relu = relu_shortcut(a, block_bytes / 16);
  CodesFinish f;
  f.constants = make_constants(e);
  f.out_pixel = e.out.c_pitch;
  const Finish finish = choose_finish(relu, e, f.constants);
  RunGroup* const* const run_group = shape.run[static_cast<int>(finish)];

  const bool flat = is_one_line(a);
  const int64_t width = flat ? (rows.end - rows.begin) * e.out.w : e.out.w;
  const int64_t lines = flat ? 1 : rows.end - rows.begin;
  Line line{.in_pixel = g.stride_w * a.in.c_pitch, .in_row = g.dilation_h * a.in.row_stride};
  for (int64_t l = 0; l < lines; ++l) {
    const int64_t n = (rows.begin + l) / e.out.h, y = (rows.begin + l) % e.out.h;
    const uint8_t* const in =
        a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride - g.pad_left * a.in.c_pitch;
    uint8_t* const out = e.out.data + n * e.out.image_stride + y * e.out.row_stride;
    // Pieces whose output stays in the L1 cache until all channels have written to it.
    const int64_t piece = e.out.c_pitch > kPieceBytes / 24 ? 24 : kPieceBytes / e.out.c_pitch / 24 * 24;
    for (int64_t x = 0; x < width; x += piece) {
      line.pixels = smaller(piece, width - x);
      const int64_t first = line.pixels < kMaxPixels ? width - kMaxPixels : x;
      if (first != x) line.pixels = kMaxPixels;
      for (int64_t b = blocks.begin; b < blocks.end;) {
        const int vectors = static_cast<int>(smaller(shape.most_vectors, blocks.end - b));
        set_channels(f, a, b, vectors, finish);
        line.in = in + first * line.in_pixel, line.out = out + first * e.out.c_pitch + b * 16;
        run_group[vectors](line, a.weights + b * block_bytes, block_bytes, f);
        b += vectors;
      }
    }
  }
}

// The dot products, two a cycle, and a finish that mostly runs beside them.
double cost(const ConvArgs& a, int threads) {
  const Shape& shape = *find_shape(a);
  const QTensor& out = a.epilogue.out;
  const double vectors = static_cast<double>(out.n * out.h * out.w) * static_cast<double>(a.geometry.out_channels) / 16;
  return 0.7 +
         vectors * (0.6 * static_cast<double>(shape.rows * shape.dwords) + 1.5) / (cpu_model().cycles_per_us * threads);
}

}  // namespace

ConvTactic resident_weights_tactic() {
  return {.name = "resident_weights", .isa = Isa::kAvx512Vnni, .applies = applies, .run = run, .cost = cost};
}

}  // namespace octet::kernels
