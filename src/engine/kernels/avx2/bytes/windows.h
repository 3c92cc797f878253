// Exact convolution on bytes for kernels larger than 1x1 (1x1: pointwise.h): the copies are rows of the image, which
// the windows of several output pixels share. What the copy of four codes lacks is therefore added to the sums of every
// pixel whose window covers them. Only for codes that start at a small zero point; the others would need the sum of
// each window besides.
#pragma once
#include "engine/kernels/avx2/bytes/products.h"
#include "engine/kernels/avx2/words/conv_words.h"

namespace octet::kernels {
namespace {

// In the scratch of a thread: [copied rows][places][repairs][the sums that pixels start with, as in BytePlan].
struct ByteWindowPlan {
  ConvLayout layout;
  int64_t steps = 0;        // dwords of a segment that have weights
  int64_t row_bytes = 0;    // of a copied row
  int64_t kernel_rows = 0;  // copied rows that an output row needs, first to last
  int64_t chunk_rows = 0;   // output rows whose input is copied at once
  int64_t rows_bytes = 0, places_bytes = 0, repairs = 0, repairs_bytes = 0, scratch_bytes = 0;
};

inline ByteWindowPlan byte_window_plan(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  ByteWindowPlan p;
  p.layout = conv_layout(g, a.in.c_pitch);
  p.steps = p.layout.segments_per_row > 1 || g.kernel_w == 1 ? (g.in_channels + 3) / 4 : p.layout.dwords;
  p.row_bytes = ((out.w - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1) * pixel_bytes(g);
  p.kernel_rows = (g.kernel_h - 1) * g.dilation_h + 1;
  p.chunk_rows = rows_of_chunk(out, {.row_bytes = p.row_bytes, .row_step = g.stride_h, .kernel_rows = p.kernel_rows});
  const auto round_up = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  const int64_t pixels = p.chunk_rows * out.w;
  // Copying writes whole vectors.
  p.rows_bytes = round_up(((p.chunk_rows - 1) * g.stride_h + p.kernel_rows) * p.row_bytes + 32);
  p.places_bytes = round_up(pixels * static_cast<int64_t>(sizeof(PixelPlace)));
  p.repairs = pixels * p.layout.segments * p.steps / kRepairShare + 1;
  p.repairs_bytes = round_up(p.repairs * static_cast<int64_t>(sizeof(Repair)));
  p.scratch_bytes = p.rows_bytes + p.places_bytes + p.repairs_bytes + (smaller(pixels, p.repairs) + 1) * 64;
  return p;
}

// The repairs of a chunk of output rows, and the sums of their own that pixels get with the first of them.
class WindowRepairs {
 public:
  WindowRepairs(const ConvArgs& a, const ByteWindowPlan& plan, PixelPlace* places, Repair* repairs)
      : g_(a.geometry),
        p_(plan),
        places_(places),
        repairs_(repairs),
        pitch_(pixel_bytes(g_)),
        width_(a.epilogue.out.w) {}

  void start_chunk(int64_t rows) {
    rows_ = rows, count_ = 0, own_ = 16;
    for (int64_t i = 0; i < rows * width_; ++i) places_[i].start = 0;
  }
  bool full() const { return count_ == p_.repairs; }
  const Repair* end() const { return repairs_ + count_; }
  int32_t starts_end() const { return own_; }

  // The copy of the dword at byte `at` of row `row` of the chunk's rows lacks `codes`: for every tap that reads it.
  void add(int64_t row, int64_t at, int32_t codes) {
    const int64_t column = at / pitch_, dword = at % pitch_ / 4;
    for (int64_t ky = 0, y = row; ky < g_.kernel_h && y >= 0; ++ky, y -= g_.dilation_h) {
      if (y % g_.stride_h != 0 || y / g_.stride_h >= rows_) continue;
      for (int64_t kx = 0, x = column; kx < g_.kernel_w && x >= 0; ++kx, x -= g_.dilation_w) {
        if (x % g_.stride_w != 0 || x / g_.stride_w >= width_) continue;
        if (full()) return;
        PixelPlace& place = places_[y / g_.stride_h * width_ + x / g_.stride_w];
        if (place.start == 0) place.start = own_, own_ += 16;
        const int64_t in_row = p_.layout.segments_per_row > 1 ? kx * p_.layout.dwords : kx * (pitch_ / 4);
        const int64_t weights = ky * p_.layout.segments_per_row * p_.layout.dwords + in_row + dword;
        repairs_[count_++] = {place.start, static_cast<int32_t>(weights * 64), codes};
      }
    }
  }

 private:
  const ConvGeometry& g_;
  const ByteWindowPlan& p_;
  PixelPlace* places_;
  Repair* repairs_;
  int64_t pitch_, width_;
  int64_t rows_ = 0, count_ = 0;
  int32_t own_ = 16;
};

// Copies `bytes` from byte `start` of row `row` of the chunk's rows on with pairs that cannot saturate.
inline void copy_run(const uint8_t* in, int64_t row, int64_t start, int64_t bytes, uint8_t* to,
                     WindowRepairs& repairs) {
  const Y low = _mm256_set1_epi16(0xff), ones = _mm256_set1_epi8(1);
  for (int64_t at = 0; at < bytes; at += 32) {
    const Y codes = load32(in + at);
    const Y excess = _mm256_subs_epu16(_mm256_maddubs_epi16(codes, ones), _mm256_set1_epi16(256));
    store32(to + at, _mm256_sub_epi8(codes, _mm256_and_si256(excess, low)));
    if (_mm256_testz_si256(excess, excess)) [[likely]]
      continue;
    alignas(32) int32_t lacks[8];  // at most 254 in each first code of a pair
    store32(lacks, excess);
    for (int64_t i = 0; i < 8 && at + 4 * i < bytes; ++i)
      if (lacks[i] != 0) repairs.add(row, start + at + 4 * i, lacks[i]);
  }
}

inline void copy_row(const ConvArgs& a, const uint8_t* in, int64_t row, int64_t bytes, uint8_t* to,
                     WindowRepairs& repairs) {
  const int64_t pixel = pixel_bytes(a.geometry);
  if (pixel == a.in.c_pitch) return copy_run(in, row, 0, bytes, to, repairs);
  for (int64_t at = 0; at < bytes; at += pixel, in += a.in.c_pitch) copy_run(in, row, at, pixel, to + at, repairs);
}

// `scratch`: as large as word_plan(a) and byte_window_plan(a) say, 64-byte aligned.
inline void conv_byte_windows(const ConvArgs& a, Range rows, Range blocks, std::byte* scratch) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const ByteWindowPlan p = byte_window_plan(a);
  const Finish finish(e);
  const bool relu = finish.straight() && relu_shortcut(a, g.kernel_h * g.kernel_w * g.in_channels);
  TileFunction* const* const whole = pixel_tiles<ByteDot, 2>(finish, relu);
  TileFunction* const* const half = pixel_tiles<ByteDot, 1>(finish, relu);
  auto* copies = reinterpret_cast<uint8_t*>(scratch);
  auto* places = reinterpret_cast<PixelPlace*>(scratch + p.rows_bytes);
  auto* repair_list = reinterpret_cast<Repair*>(scratch + p.rows_bytes + p.places_bytes);
  auto* starts = reinterpret_cast<int32_t*>(scratch + p.rows_bytes + p.places_bytes + p.repairs_bytes);
  WindowRepairs repairs(a, p, places, repair_list);
  PixelTile tile{.kernel_h = g.kernel_h,
                 .segments_per_row = p.layout.segments_per_row,
                 .steps = p.steps,
                 .tap_row_step = g.dilation_h * p.row_bytes,
                 .tap_step = g.dilation_w * pixel_bytes(g),
                 .panel_skip = (p.layout.dwords - p.steps) * 64,
                 .in = copies,
                 .acc_init = starts,
                 .finish = &finish};
  const int64_t block_bytes = p.layout.segments * p.layout.dwords * 64;
  int64_t placed = 0;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t n = row / e.out.h, y0 = row % e.out.h;
    const int64_t height = smaller(smaller(p.chunk_rows, e.out.h - y0), rows.end - row);
    const uint8_t* image = a.in.data + n * a.in.image_stride - g.pad_left * a.in.c_pitch;
    for (; placed < height; ++placed)
      for (int64_t x = 0; x < e.out.w; ++x)
        places[placed * e.out.w + x] = {
            static_cast<int32_t>(placed * g.stride_h * p.row_bytes + x * g.stride_w * pixel_bytes(g)),
            static_cast<int32_t>(placed * e.out.row_stride + x * e.out.c_pitch),
            static_cast<int32_t>(placed * e.residual.row_stride + x * e.residual.c_pitch)};
    repairs.start_chunk(height);
    for (int64_t i = 0; i < (height - 1) * g.stride_h + p.kernel_rows && !repairs.full(); ++i)
      copy_row(a, image + (y0 * g.stride_h + i - g.pad_top) * a.in.row_stride, i, p.row_bytes, copies + i * p.row_bytes,
               repairs);
    if (repairs.full()) {  // too many
      conv_words(a, {row, row + height}, blocks, scratch);
      placed = 0;
      row += height;
      continue;
    }
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      tile.panel = a.weights + b * block_bytes;
      start_sums(a, b, relu, starts);
      for (int64_t i = 16; i < repairs.starts_end(); i += 16) std::memcpy(starts + i, starts, 64);
      add_repairs<false>(repair_list, repairs.end(), tile.panel, starts);
      tile.aim(e, n, y0, b * 16);
      for_each_tile(tile, g.out_channels - b * 16 <= 8 ? half : whole, places, height * e.out.w, row * e.out.w,
                    kByteTilePixels);
    }
    row += height;
  }
}

}  // namespace
}  // namespace octet::kernels
