// First layers: convolutions of stride 2 on images of 4-byte pixels.
//
// A kernel row of 7 such pixels fills 28 of the 64 bytes that a tile row multiplies. With each 2x2 square of pixels
// folded into one pixel of 16 bytes it becomes a convolution of stride 1 and half the kernel size: 7x7 is 4 steps along
// K of 64 bytes instead of 7 of 28.
#include "engine/kernels/amx/cost.h"
#include "engine/kernels/amx/run_blocks.h"
#include "engine/kernels/amx/tactics.h"

namespace octet::kernels {
namespace {

constexpr int64_t kPixel = 16;     // bytes of a folded pixel
constexpr int64_t kMaxFolded = 4;  // folded kernel size: a kernel row is one step

int64_t half(int64_t kernel) {
  return (kernel + 1) / 2;
}

struct Folding {
  int64_t kernel_h = 0, kernel_w = 0;  // folded
  int64_t pitch = 0;                   // folded pixels of a row
  int64_t band_rows = 0;               // output rows that are folded at a time
  int64_t step_dwords = 0;

  explicit Folding(const ConvArgs& a) {
    kernel_h = half(a.geometry.kernel_h), kernel_w = half(a.geometry.kernel_w);
    pitch = a.epilogue.out.w + kernel_w - 1;
    const int64_t rows = 4096 / a.epilogue.out.w;
    band_rows = rows < 8 ? 8 : rows;
    step_dwords = kernel_w * kPixel / 4;
  }
  // A row is written in whole vectors.
  int64_t row_bytes() const { return (pitch * kPixel + 127) / 128 * 128; }
  int64_t block_bytes() const { return kernel_h * step_dwords * 64; }
};

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  return a.in.c_pitch == 4 && g.groups == 1 && g.dilation_h == 1 && g.dilation_w == 1 && g.stride_h == 2 &&
         g.stride_w == 2 && g.kernel_h > 1 && g.kernel_w > 1 && half(g.kernel_h) <= kMaxFolded &&
         half(g.kernel_w) <= kMaxFolded && out.w >= kTileRows / 4 && out.w <= kMaxBandPixels &&
         (out.data == nullptr || out.c_pitch >= 16) && rows_fit(a);
}

int64_t prepared_bytes(const ConvArgs& a) {
  return padded_channels(a.geometry.out_channels) / 16 * Folding(a).block_bytes();
}

// [block of 16 channels][folded kernel row][folded pixel][2 rows][2 columns][16 channels][4 bytes]
void prepare(const ConvArgs& a, std::byte* prepared) {
  const ConvGeometry& g = a.geometry;
  const Folding f(a);
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  __builtin_memset(prepared, 0, static_cast<size_t>(prepared_bytes(a)));
  for (int64_t b = 0; b < l.blocks; ++b)
    for (int64_t y = 0; y < g.kernel_h; ++y)
      for (int64_t x = 0; x < g.kernel_w; ++x) {
        const int64_t to = ((y / 2 * f.kernel_w + x / 2) * 2 + y % 2) * 2 + x % 2;
        __builtin_memcpy(prepared + b * f.block_bytes() + to * 64,
                         a.weights + ((b * l.segments + y) * l.dwords + x) * 64, 64);
      }
}

int64_t scratch_bytes(const ConvArgs& a) {
  const Folding f(a);
  return (f.band_rows + f.kernel_h - 1) * f.row_bytes() + 128;
}

// `bytes` of each of two rows of pixels.
void fold_row(const uint8_t* even, const uint8_t* odd, int64_t bytes, uint8_t* to) {
  const Z first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  for (int64_t i = 0; i < bytes; i += 64) {
    const __mmask64 mask = bytes - i >= 64 ? ~0ull : (1ull << (bytes - i)) - 1;
    const Z e = _mm512_maskz_loadu_epi8(mask, even + i), o = _mm512_maskz_loadu_epi8(mask, odd + i);
    _mm512_store_si512(to + 2 * i, _mm512_permutex2var_epi64(e, first, o));
    _mm512_store_si512(to + 2 * i + 64, _mm512_permutex2var_epi64(e, second, o));
  }
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  const Folding f(a);
  auto* scratch = reinterpret_cast<uint8_t*>(a.scratch);
  KStep steps[kMaxFolded];
  TileWork work;
  work.source = {nullptr, kPixel, f.row_bytes(), 0};
  work.pitch = f.row_bytes() / kPixel;
  for (int64_t y = 0; y < f.kernel_h; ++y)
    steps[y] = {static_cast<int32_t>(y * f.row_bytes()), static_cast<int32_t>(y * f.step_dwords * 64)};
  work.steps = steps;
  work.step_count = f.kernel_h;
  work.chunk_dwords = f.step_dwords;
  work.weights = reinterpret_cast<const int8_t*>(a.prepared);
  work.block_bytes = work.next_block = f.block_bytes();
  work.channels_inside = true;
  // What a row of outputs reads; a folded row may hold one column, and a folded kernel one row, beyond it.
  const int64_t read_bytes = ((out.w - 1) * 2 + g.kernel_w) * 4;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t n = row / out.h, y = row % out.h;
    int64_t take = smaller(rows.end - row, out.h - y);
    take = smaller(take, f.band_rows);
    const uint8_t* in = a.in.data + n * a.in.image_stride + (y * 2 - g.pad_top) * a.in.row_stride - g.pad_left * 4;
    const int64_t read_rows = (take - 1) * 2 + g.kernel_h;
    for (int64_t i = 0; i < take + f.kernel_h - 1; ++i)
      fold_row(in + smaller(2 * i, read_rows - 1) * a.in.row_stride,
               in + smaller(2 * i + 1, read_rows - 1) * a.in.row_stride, read_bytes, scratch + i * f.row_bytes());
    fence_writes();
    work.source.first = scratch - y * f.row_bytes();
    const Range band{row, row + take};
    if (blocks.end - blocks.begin >= 4) {
      run_blocks<1, 4, Walk::kWhole>(work, a, band, blocks);
    } else {
      run_blocks<2, 2, Walk::kWhole>(work, a, band, blocks);
    }
    row += take;
  }
}

double cost(const ConvArgs& a, int threads) {
  const QTensor& out = a.epilogue.out;
  const TileCost c{out.n * out.h * tiles_of(out.w), padded_channels(out.c) / 16, half(a.geometry.kernel_h), 24, 0};
  return microseconds(c, a.epilogue, threads);
}

}  // namespace

ConvTactic folded_tactic() {
  return {.name = "folded",
          .isa = Isa::kAmxInt8,
          .applies = applies,
          .prepared_bytes = prepared_bytes,
          .prepare = prepare,
          .scratch_bytes = scratch_bytes,
          .run = run,
          .cost = cost};
}

}  // namespace octet::kernels
