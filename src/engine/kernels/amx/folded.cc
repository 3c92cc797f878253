// First layers: convolutions of stride 2 on images of 4-byte pixels.
//
// A kernel row of 7 such pixels fills 28 of the 64 bytes that a tile row multiplies. With each 2x2 square of pixels
// folded into one of 12 bytes (three channels) it becomes a convolution of stride 1 and half the kernel size: 7x7 is 4
// steps along K of 48 bytes instead of 7 of 28.
#include "engine/kernels/amx/cost.h"
#include "engine/kernels/amx/run_blocks.h"
#include "engine/kernels/amx/tactics.h"

namespace octet::kernels {
namespace {

constexpr int64_t kMaxFolded = 4;  // folded kernel size: a kernel row is one step

int64_t half(int64_t kernel) {
  return (kernel + 1) / 2;
}

struct Folding {
  int64_t kernel_h = 0, kernel_w = 0;  // folded
  int64_t pixel = 0;                   // bytes of a folded pixel: [2 rows][2 columns][channels]
  int64_t pitch = 0;                   // folded pixels of a row
  int64_t band_rows = 0;               // output rows that are folded at a time
  int64_t step_dwords = 0;

  explicit Folding(const ConvArgs& a) {
    kernel_h = half(a.geometry.kernel_h), kernel_w = half(a.geometry.kernel_w);
    pixel = 4 * a.geometry.in_channels;
    pitch = a.epilogue.out.w + kernel_w - 1;
    const int64_t rows = 4096 / a.epilogue.out.w;
    band_rows = rows < 8 ? 8 : rows;
    step_dwords = kernel_w * pixel / 4;
  }
  // Whole pixels, and room for the vector that the last of them is written with.
  int64_t row_bytes() const { return (pitch * pixel + 64 + 16 * pixel - 1) / (16 * pixel) * (16 * pixel); }
  int64_t block_bytes() const { return kernel_h * step_dwords * 64; }
};

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  return a.in.c_pitch == 4 && g.groups == 1 && g.dilation_h == 1 && g.dilation_w == 1 && g.stride_h == 2 &&
         g.stride_w == 2 && g.kernel_h > 1 && g.kernel_w > 1 && half(g.kernel_h) <= kMaxFolded &&
         half(g.kernel_w) <= kMaxFolded && out.w >= kTileRows / 4 && out.w <= kMaxBandPixels &&
         (out.data == nullptr || out.c_pitch >= 16) && has_vbmi() && rows_fit(a);
}

int64_t prepared_bytes(const ConvArgs& a) {
  return padded_channels(a.geometry.out_channels) / 16 * Folding(a).block_bytes();
}

// [block of 16 channels][folded kernel row][bytes along K / 4][16 channels][4 bytes], K as the folded pixels are
void prepare(const ConvArgs& a, std::byte* prepared) {
  const ConvGeometry& g = a.geometry;
  const Folding f(a);
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  __builtin_memset(prepared, 0, static_cast<size_t>(prepared_bytes(a)));
  for (int64_t b = 0; b < l.blocks; ++b)
    for (int64_t y = 0; y < g.kernel_h; ++y)
      for (int64_t x = 0; x < g.kernel_w; ++x) {
        const int8_t* from = a.weights + ((b * l.segments + y) * l.dwords + x) * 64;
        std::byte* step = prepared + b * f.block_bytes() + y / 2 * f.step_dwords * 64;
        const int64_t first = x / 2 * f.pixel + (y % 2 * 2 + x % 2) * g.in_channels;
        for (int64_t c = 0; c < g.in_channels; ++c)
          for (int64_t oc = 0; oc < 16; ++oc)
            step[(first + c) / 4 * 64 + oc * 4 + (first + c) % 4] = static_cast<std::byte>(from[oc * 4 + c]);
      }
}

int64_t scratch_bytes(const ConvArgs& a) {
  const Folding f(a);
  return (f.band_rows + f.kernel_h - 1) * f.row_bytes();
}

// Which bytes of 8 pixels of an even row and, 32 bytes further, of the odd row below make 4 folded pixels, in order.
Z folded_places(int64_t channels) {
  alignas(64) uint8_t places[64] = {};
  for (int64_t i = 0; i < 16 * channels; ++i) {
    const int64_t pixel = i / (4 * channels), row = i / (2 * channels) % 2, column = i / channels % 2;
    places[i] = static_cast<uint8_t>(row * 32 + (pixel * 2 + column) * 4 + i % channels);
  }
  return _mm512_load_si512(places);
}

// `bytes` of each of two rows of pixels; writes up to 64 bytes behind the last folded pixel.
void fold_row(const uint8_t* even, const uint8_t* odd, int64_t bytes, Z places, int64_t four_pixels, uint8_t* to) {
  for (int64_t i = 0; i < bytes; i += 32, to += four_pixels) {
    const __mmask32 mask = bytes - i >= 32 ? ~0u : (1u << (bytes - i)) - 1;
    const __m256i e = _mm256_maskz_loadu_epi8(mask, even + i), o = _mm256_maskz_loadu_epi8(mask, odd + i);
    const Z both = _mm512_inserti64x4(_mm512_castsi256_si512(e), o, 1);
    _mm512_storeu_si512(to, permute128(places, both, both));
  }
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  const Folding f(a);
  auto* scratch = reinterpret_cast<uint8_t*>(a.scratch);
  const Z places = folded_places(g.in_channels);
  KStep steps[kMaxFolded];
  TileWork work;
  work.source = {nullptr, f.pixel, f.row_bytes(), 0};
  work.pitch = f.row_bytes() / f.pixel;
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
               in + smaller(2 * i + 1, read_rows - 1) * a.in.row_stride, read_bytes, places, 4 * f.pixel,
               scratch + i * f.row_bytes());
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
