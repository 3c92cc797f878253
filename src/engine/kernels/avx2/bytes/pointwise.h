// Exact 1x1 convolution on bytes, for processors without byte dot products (larger kernels: windows.h).
// The tiles multiply copies of the pixels (centered_codes.h): with the centers c of the channels and d = x - c,
//   sum x w = sum (w + 128) d - 128 sum d + sum c w.
// The second sum is in front of each copy, the third is added to what all pixels start with. Two dwords of products are
// added before they become dwords: five instructions for 8 input channels x 8 output channels, where words need eight
// (conv_words.h). Where too many groups of codes are too large for that, pairs of codes are multiplied as ever with
// vpmaddubsw, vpmaddwd by ones and vpaddd; with too many large pairs the rows are left to conv_words().
#pragma once
#include "engine/kernels/avx2/bytes/learned_centers.h"
#include "engine/kernels/avx2/words/conv_words.h"

namespace octet::kernels {
namespace {

struct CenteredDot {
  // The dword in front of a pixel is added to its sums.
  static constexpr bool kPixelTerm = true;
  static OCTET_INLINE Y add(Y sum, Y input, Y weights, Y ones) {
    return add_pairs(sum, _mm256_maddubs_epi16(weights, input), ones);
  }
};
struct CenteredGroupDot {
  static constexpr bool kPixelTerm = true, kTwoDwords = true;
  static OCTET_INLINE Y add(Y sum, const Y (&input)[2], Y first_weights, Y second_weights, Y ones) {
    return add_pairs(
        sum,
        _mm256_add_epi16(_mm256_maddubs_epi16(first_weights, input[0]), _mm256_maddubs_epi16(second_weights, input[1])),
        ones);
  }
};
// 8 sums, four vectors of weights, two of input, two products; for 8 output channels 6 and two.
constexpr int64_t kGroupTilePixels = 4, kHalfGroupTilePixels = 6;

// Prepared: [128 times the sum of the weights of each output channel][the weights plus 128 of each block of 16]. In the
// scratch of a thread: [copied pixels][places][suspects of a row][repairs][the sums that pixels start with:
// the common ones, then those of pixels with repairs].
struct BytePlan {
  ConvLayout layout;
  int64_t dwords = 0, even_dwords = 0;  // of a pixel; of a block of prepared weights
  int64_t pixel_bytes = 0;              // of a copied pixel and the dword in front of it
  int64_t chunk_rows = 0;               // output rows that are copied at once
  int64_t prepared_bytes = 0;
  int64_t pixels_bytes = 0, places_bytes = 0, suspects_bytes = 0, repairs = 0, repairs_bytes = 0, scratch_bytes = 0;
  int64_t kept_bytes = 0;  // of LearnedCenters
};

inline BytePlan byte_plan(const ConvArgs& a) {
  const QTensor& out = a.epilogue.out;
  BytePlan p;
  p.dwords = (a.geometry.in_channels + 3) / 4;
  p.even_dwords = (p.dwords + 1) / 2 * 2;
  p.layout = conv_layout(a.geometry, a.in.c_pitch);
  p.prepared_bytes = p.layout.blocks * (1 + p.even_dwords) * 64;
  p.pixel_bytes = (p.even_dwords + 1) * 4;
  p.chunk_rows = rows_of_chunk(out, {.row_bytes = out.w * p.pixel_bytes});
  const auto round_up = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  const int64_t pixels = p.chunk_rows * out.w;
  p.pixels_bytes = round_up(pixels * p.pixel_bytes + 36);
  p.places_bytes = round_up(pixels * static_cast<int64_t>(sizeof(PixelPlace)));
  p.suspects_bytes = round_up((out.w * ((p.dwords + 7) / 8) + 1) * static_cast<int64_t>(sizeof(Suspect)));
  p.repairs = pixels * p.dwords / kRepairShare + kRepairsOfSum;
  p.repairs_bytes = round_up(p.repairs * static_cast<int64_t>(sizeof(Repair)));
  p.scratch_bytes =
      p.pixels_bytes + p.places_bytes + p.suspects_bytes + p.repairs_bytes + (smaller(pixels, p.repairs) + 1) * 64;
  p.kept_bytes = LearnedCenters::bytes(p.dwords, p.layout.blocks);
  return p;
}

// `prepared`: byte_plan(a).prepared_bytes.
inline void prepare_bytes(const ConvArgs& a, std::byte* prepared) {
  const BytePlan p = byte_plan(a);
  auto* sums = reinterpret_cast<int32_t*>(prepared);
  auto* panel = reinterpret_cast<int8_t*>(prepared + p.layout.blocks * 64);
  for (int64_t b = 0; b < p.layout.blocks; ++b, sums += 16, panel += p.even_dwords * 64) {
    const int8_t* w = a.weights + b * p.layout.dwords * 64;
    Y sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int64_t d = 0; d < p.even_dwords; ++d)
      for (int half = 0; half < 2; ++half) {
        Y weights = _mm256_setzero_si256();
        if (d < p.dwords) weights = load32(w + d * 64 + half * 32);
        store32(panel + d * 64 + half * 32, _mm256_xor_si256(weights, _mm256_set1_epi8(-128)));
        sum[half] = ByteDot::add(sum[half], _mm256_set1_epi8(1), weights, _mm256_set1_epi16(1));
      }
    for (int half = 0; half < 2; ++half) store32(sums + half * 8, _mm256_slli_epi32(sum[half], 7));
  }
}

// `scratch`: as large as word_plan(a) and byte_plan(a) say, 64-byte aligned. a.kept: byte_plan(a).kept_bytes.
inline void conv_bytes(const ConvArgs& a, Range rows, Range blocks, std::byte* scratch) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const BytePlan p = byte_plan(a);
  if (rows.begin >= rows.end) return;
  const Finish finish(e);
  const bool relu = finish.straight() && relu_shortcut(a, g.in_channels);
  const auto* weight_sums = reinterpret_cast<const int32_t*>(a.prepared);
  const auto* panels = reinterpret_cast<const int8_t*>(a.prepared + p.layout.blocks * 64);
  LearnedCenters centers(a.kept, p.dwords);
  auto* pixels = reinterpret_cast<int8_t*>(scratch) + 4;
  auto* places = reinterpret_cast<PixelPlace*>(scratch + p.pixels_bytes);
  auto* suspects = reinterpret_cast<Suspect*>(scratch + p.pixels_bytes + p.places_bytes);
  auto* repair_list = reinterpret_cast<Repair*>(scratch + p.pixels_bytes + p.places_bytes + p.suspects_bytes);
  auto* starts =
      reinterpret_cast<int32_t*>(scratch + p.pixels_bytes + p.places_bytes + p.suspects_bytes + p.repairs_bytes);
  const auto row_at = [&](int64_t row) {
    return a.in.data + row / e.out.h * a.in.image_stride + (row % e.out.h * g.stride_h - g.pad_top) * a.in.row_stride -
           g.pad_left * a.in.c_pitch;
  };
  const int64_t step = g.stride_w * a.in.c_pitch;
  const auto sample = [&](int64_t i, int64_t of) {
    const int64_t pixel = rows.begin * e.out.w + (2 * i + 1) * (rows.end - rows.begin) * e.out.w / (2 * of);
    return row_at(pixel / e.out.w) + pixel % e.out.w * step;
  };
  if (!centers.known()) centers.learn(sample);
  bool groups = true;
  int64_t all_repairs = 0;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t n = row / e.out.h, y0 = row % e.out.h;
    const int64_t height = smaller(smaller(p.chunk_rows, e.out.h - y0), rows.end - row);
    Repairs repairs{repair_list, repair_list + p.repairs};
    const auto copy = [&]<bool kGroups>() {
      repairs = {repair_list, repair_list + p.repairs};
      PixelRow pixel_row{.in = nullptr,
                         .step = step,
                         .pixels = e.out.w,
                         .dwords = p.dwords,
                         .centers = centers.codes(),
                         .copies = pixels,
                         .places = places,
                         .next = {static_cast<int32_t>(p.pixel_bytes), static_cast<int32_t>(e.out.c_pitch),
                                  static_cast<int32_t>(e.residual.c_pitch)},
                         .suspects = suspects};
      for (int64_t y = 0; y < height && !repairs.full(); ++y) {
        pixel_row.in = row_at(row + y);
        *pixel_row.places = {static_cast<int32_t>(y * e.out.w * p.pixel_bytes),
                             static_cast<int32_t>(y * e.out.row_stride),
                             static_cast<int32_t>(y * e.residual.row_stride)};
        copy_row<kGroups>(pixel_row, repairs);
        pixel_row.places += e.out.w, pixel_row.copies += e.out.w * p.pixel_bytes;
      }
      return !repairs.full();  // else there are too many
    };
    if (groups && !copy.template operator()<true>()) {
      groups = !centers.fresh();
      if (groups) centers.learn(sample), groups = copy.template operator()<true>();
    }
    if (!groups && !copy.template operator()<false>()) {
      conv_words(a, {row, row + height}, blocks, scratch, {panels, p.even_dwords});
      row += height;
      continue;
    }
    centers.prepare(a, blocks, relu, panels, weight_sums, p.even_dwords);
    all_repairs += repairs.next - repair_list;
    PixelTile tile{.kernel_h = 1,
                   .segments_per_row = 1,
                   .steps = groups ? p.even_dwords : p.dwords,
                   .in = reinterpret_cast<const uint8_t*>(pixels),
                   .acc_init = starts,
                   .finish = &finish};
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      tile.panel = panels + b * p.even_dwords * 64;
      for (int64_t i = 0; i < repairs.own; i += 16) std::memcpy(starts + i, centers.starts(b), 64);
      add_repairs<true>(repair_list, repairs.next, tile.panel, starts);
      tile.aim(e, n, y0, b * 16);
      const bool few = g.out_channels - b * 16 <= 8;
      if (groups)
        for_each_tile(
            tile, few ? pixel_tiles<CenteredGroupDot, 1>(finish, relu) : pixel_tiles<CenteredGroupDot, 2>(finish, relu),
            places, height * e.out.w, row * e.out.w, few ? kHalfGroupTilePixels : kGroupTilePixels);
      else
        for_each_tile(tile, few ? pixel_tiles<CenteredDot, 1>(finish, relu) : pixel_tiles<CenteredDot, 2>(finish, relu),
                      places, height * e.out.w, row * e.out.w, kByteTilePixels);
    }
    row += height;
  }
  if (groups)
    centers.judge(all_repairs, (rows.end - rows.begin) * e.out.w * p.dwords);
  else
    centers.forget();
}

}  // namespace
}  // namespace octet::kernels
