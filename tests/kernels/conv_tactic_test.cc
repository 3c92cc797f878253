// Every tactic of every instruction set against the direct formula, with exactly the memory it asked for.
#include "engine/kernels/conv_tactic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "kernels/conv_cases.h"

namespace octet::kernels {
namespace {

using testing::ConvCase;

constexpr std::byte kGuard{0x5a};
constexpr int64_t kGuardBytes = 64;

// 64-byte aligned memory that ends in bytes nobody may touch.
class Guarded {
 public:
  explicit Guarded(int64_t size)
      : size_(size),
        bytes_(
            static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>((size + kGuardBytes + 63) / 64 * 64)))) {
    std::fill(bytes_.get(), bytes_.get() + size_ + kGuardBytes, kGuard);
  }
  std::byte* data() const { return bytes_.get(); }
  bool intact() const {
    for (int64_t i = 0; i < kGuardBytes; ++i)
      if (bytes_.get()[size_ + i] != kGuard) return false;
    return true;
  }

 private:
  int64_t size_;
  std::unique_ptr<std::byte, ConvCase::Free> bytes_;
};

// As it is before the first run.
Guarded kept_memory(const ConvTactic& tactic, const ConvArgs& args) {
  const int64_t bytes = tactic.kept_bytes ? tactic.kept_bytes(args) : 0;
  Guarded kept(bytes);
  std::fill(kept.data(), kept.data() + bytes, std::byte{0});
  return kept;
}

// Sets the codes of a case to `center` of their channel and up to `spread` more or less.
template <typename Center, typename Spread>
void fill_codes(ConvCase& c, const Center& center, const Spread& spread) {
  const QTensor& in = c.in.view;
  for (int64_t y = 0; y < in.n * in.h; ++y)
    for (int64_t x = 0; x < in.w; ++x)
      for (int64_t i = 0; i < in.c; ++i)
        in.data[y / in.h * in.image_stride + y % in.h * in.row_stride + x * in.c_pitch + i] =
            static_cast<uint8_t>(std::clamp(center(i) + spread(), 0, 255));
}

// Runs all tactics of the tables in randomly many shares; returns the names of those that took part.
std::set<std::string> check_tactics(ConvCase& c, std::mt19937& rng) {
  std::set<std::string> names;
  const std::vector<uint8_t> want = testing::expected_output(c);
  testing::take_output(c);
  for (Isa isa : supported_isas())
    for (const ConvTactic& tactic : kernels(isa).conv_tactics) {
      if (tactic.applies && !tactic.applies(c.args)) continue;
      const std::string name = std::string(isa_name(isa)) + " " + tactic.name;
      const Guarded prepared(tactic.prepared_bytes ? tactic.prepared_bytes(c.args) : 0);
      const Guarded scratch(tactic.scratch_bytes ? tactic.scratch_bytes(c.args) : 0);
      const Guarded kept = kept_memory(tactic, c.args);
      if (tactic.prepare) tactic.prepare(c.args, prepared.data());
      ConvArgs args = c.args;
      args.prepared = prepared.data();
      args.scratch = scratch.data();
      args.kept = kept.data();
      const int64_t rows = c.out.view.n * c.out.view.h, blocks = padded_channels(args.geometry.out_channels) / 16;
      const int64_t row = static_cast<int64_t>(rng() % static_cast<uint64_t>(rows + 1));
      const int64_t block = static_cast<int64_t>(rng() % static_cast<uint64_t>(blocks + 1));
      for (const Range r : {Range{0, row}, Range{row, rows}})
        for (const Range b : {Range{0, block}, Range{block, blocks}}) tactic.run(args, r, b);
      EXPECT_EQ(testing::take_output(c), want) << c.name << " by " << name;
      EXPECT_TRUE(prepared.intact() && scratch.intact() && kept.intact()) << c.name << " by " << name;
      EXPECT_GT(tactic.cost(c.args, 2), 0) << name;
      names.insert(name);
      if (::testing::Test::HasFailure()) return names;
    }
  return names;
}

TEST(ConvTactics, RandomShapesEqualTheDirectFormula) {
  std::mt19937 rng(11);
  std::set<std::string> names;
  for (int i = 0; i < 200 && !HasFailure(); ++i)
    names.merge(check_tactics(*testing::random_conv_case(rng, false), rng));
  if (isa_supported(Isa::kAvx2)) {
    EXPECT_TRUE(names.contains("avx2 words"));
  }
}

// Codes near the zero point but for some, more of them in the lower rows: tactics that multiply small codes faster have
// to add what is beyond, or to leave the rows to another.
TEST(ConvTactics, SomeLargeCodesEqualTheDirectFormula) {
  std::mt19937 rng(13);
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
  std::set<std::string> names;
  int windows = 0;  // that bytes_avx2() takes too
  for (int i = 0; i < 120 && !HasFailure(); ++i) {
    const int stride = pick(1, 2);
    testing::ConvShape shape{
        pick(1, 2),
        pick(5, 24),
        pick(5, 24),
        {.in_channels = pick(1, 20) * pick(1, 8), .out_channels = pick(1, 70), .stride_h = stride, .stride_w = stride}};
    if (i % 2 == 1) {
      ConvGeometry& g = shape.geometry;
      g.kernel_h = pick(1, 3), g.kernel_w = pick(1, 3), g.dilation_h = pick(1, 2), g.dilation_w = pick(1, 2);
      g.stride_w = pick(1, 3), g.pad_top = pick(0, 1), g.pad_left = pick(0, 1);
    }
    const auto c = testing::make_conv_case(rng, shape, {.residual = pick(0, 3) == 0, .narrow = pick(0, 1) == 0});
    const QTensor& in = c->in.view;
    windows += i % 2 == 1 && in.zero_point < 64;
    const int spread = pick(1, 60), rare = pick(20, 400);
    for (int64_t y = 0; y < in.n * in.h; ++y)
      for (int64_t x = 0; x < in.w * in.c; ++x) {
        uint8_t& code =
            in.data[y / in.h * in.image_stride + y % in.h * in.row_stride + x / in.c * in.c_pitch + x % in.c];
        if (pick(0, rare) < 1 + y % in.h / 8) continue;
        code = static_cast<uint8_t>(std::clamp(in.zero_point + pick(-spread, spread), 0, 255));
      }
    names.merge(check_tactics(*c, rng));
  }
  if (isa_supported(Isa::kAvx2)) {
    EXPECT_TRUE(names.contains("avx2 bytes"));
    EXPECT_GT(windows, 10);
  }
}

// 1x1 layers with every finish that runs between products: few products and many, strides, rows with gaps between them
// and without, the last tile of a line, 64 channels at once and 32, channels beyond the last 32, any zero point.
TEST(ConvTactics, OverlappedFinishesEqualTheDirectFormula) {
  if (!isa_supported(Isa::kAvx512Vnni)) GTEST_SKIP() << "this CPU has none of it";
  std::mt19937 rng(19);
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
  const std::string name = "avx512_vnni overlapped";
  int plain = 0, fused = 0, apart = 0, dense = 0, gaps = 0, narrow = 0, offset = 0, tables = 0;
  int pixels_left[2][3] =
      {};  // of lines without gaps and with them, by how many are left of tiles of three, deep layers
  const auto make_tables = kernels(Isa::kAvx512Vnni).make_residual_tables;
  const auto is_dense = [](const QTensor& t) { return t.data == nullptr || t.row_stride == t.w * t.c_pitch; };
  for (int i = 0; i < 240 && !HasFailure(); ++i) {
    const int stride = i % 5 == 0 ? 2 : 1;
    const bool deep = i % 4 == 1 ? i % 8 == 5 : i % 3 == 2;
    const testing::ConvShape shape{pick(1, 2),
                                   pick(3, 20),
                                   pick(3, 20) * stride,
                                   {.in_channels = 16 * (deep         ? pick(16, 20)
                                                         : i % 4 == 1 ? 4
                                                                      : pick(1, 10)),
                                    .out_channels = i % 8 == 1 ? pick(17, 48) : pick(50, 210),
                                    .stride_h = stride,
                                    .stride_w = stride}};
    const bool residual = i % 3 > 0;
    const auto c =
        testing::make_conv_case(rng, shape, {.residual = residual, .rounds_twice = residual, .dense = i % 4 == 1});
    Epilogue& e = c->args.epilogue;
    for (float& m : c->multiplier) m = std::min(m, 0.2f);
    testing::set_limits(*c);
    if (i % 5 < 3) {
      e.out.zero_point = c->out.view.zero_point = 0;
      e.lo = 0, e.hi = i % 2 == 0 ? 255 : 127;
    }
    // For relu_shortcut(), with weights of small sums.
    if (!residual && i % 2 == 1) {
      for (float& m : c->multiplier) m = std::abs(m);
      testing::set_limits(*c);
    }
    if (residual) {
      if (i % 2 == 0) e.residual.zero_point = c->residual.view.zero_point = 0;
      const auto fuses = isa_supported(Isa::kAvx2) ? kernels(Isa::kAvx2).residual_sum_fuses : nullptr;
      e.sum_fuses = i % 4 < 3 && fuses && fuses(e);
    }
    ResidualTables residual_tables;
    if (residual && i % 7 < 3 && make_tables && make_tables(e, &residual_tables)) e.residual_tables = &residual_tables;
    if (!check_tactics(*c, rng).contains(name)) continue;
    ++(residual ? e.sum_fuses ? fused : apart : plain);
    const bool one_line = stride == 1 && is_dense(c->args.in) && is_dense(e.out) && is_dense(e.residual);
    if (one_line && shape.geometry.in_channels == 64) ++dense;
    if (!one_line) ++gaps;
    if (deep && shape.geometry.out_channels >= 64) ++pixels_left[!one_line][e.out.h * e.out.w % 3];
    narrow += shape.geometry.out_channels <= 48;
    tables += e.residual_tables != nullptr;
    offset += residual && e.out.zero_point != 0;
  }
  EXPECT_GT(plain, 5);
  EXPECT_GT(fused, 5);
  EXPECT_GT(apart, 5);
  EXPECT_GT(dense, 5);
  EXPECT_GT(gaps, 20);
  EXPECT_GT(narrow, 10);
  EXPECT_GT(offset, 20);
  for (const auto& of_lines : pixels_left)
    for (const int cases : of_lines) EXPECT_GT(cases, 0);
  if (ResidualTables easy; make_tables({.residual_multiplier = 0.5f}, &easy)) {
    EXPECT_GT(tables, 20);
  }
}

// Images, whose pixels have fewer than four channels; with 64 output channels and more those of RGB are finished
// between the products of the next ones.
TEST(ConvTactics, PackedPixelsEqualTheDirectFormula) {
  std::mt19937 rng(23);
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
  std::set<int64_t> channels;
  int wide = 0;
  for (int i = 0; i < 120 && !HasFailure(); ++i) {
    ConvGeometry g{
        .in_channels = pick(1, 3), .out_channels = pick(1, 70), .kernel_h = pick(1, 7), .kernel_w = pick(2, 7)};
    g.stride_h = pick(1, 3), g.stride_w = pick(1, 3), g.dilation_h = pick(1, 2);
    g.pad_top = pick(0, 3), g.pad_left = pick(0, 3);
    if (i % 3 == 0) g.in_channels = 3, g.out_channels = pick(49, 150), g.kernel_h = pick(5, 7), g.kernel_w = pick(4, 7);
    const auto c = testing::make_conv_case(rng, {pick(1, 2), pick(13, 40), pick(7, 70), g}, {.residual = i % 4 == 0});
    if (!check_tactics(*c, rng).contains("avx512_vnni packed_pixels")) continue;
    channels.insert(g.in_channels);
    wide += i % 3 == 0;
  }
  if (isa_supported(Isa::kAvx512Vnni)) {
    EXPECT_EQ(channels.size(), 3u);
    EXPECT_GT(wide, 20);
  }
}

// RGB with 7x7 or 8x8 taps and stride 2: outputs that are no whole tiles, several images, weights of all signs and as
// large as they get, codes of every finish.
TEST(ConvTactics, ImageWinogradEqualsTheDirectFormula) {
  if (!isa_supported(Isa::kAvx512Vnni)) GTEST_SKIP() << "this CPU has none of it";
  std::mt19937 rng(31);
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
  int cases = 0, plain = 0, seven = 0;
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    ConvGeometry g{.in_channels = 3, .out_channels = pick(16, 70), .kernel_h = pick(7, 8), .kernel_w = pick(7, 8)};
    g.stride_h = g.stride_w = 2;
    g.pad_top = pick(0, 4), g.pad_left = pick(0, 4);
    const auto c = testing::make_conv_case(rng, {pick(1, 2), pick(9, 60), pick(20, i % 10 == 0 ? 500 : 90), g},
                                           {.narrow = i % 4 == 3});
    if (i % 5 > 1) {
      const int8_t all = i % 2 == 0 ? -128 : 127;
      // Intermediate values at the ends of their ranges, or sums that cannot be proved to fit.
      if (i % 5 < 4) {
        for (int8_t& w : c->weights) w = i % 5 == 2 ? all : rng() % 2 == 0 ? -128 : 127;
      } else {
        c->bias.assign(static_cast<size_t>(g.out_channels), 0);
        c->bias[rng() % c->bias.size()] = rng() % 2 == 0 ? 1 << 25 : -(1 << 25);
      }
      make_acc_init(c->weights, g.out_channels, c->bias, c->in.view.zero_point, c->acc_init);
      const auto bytes = static_cast<size_t>(conv_layout(g, c->in.view.c_pitch).weight_bytes);
      pack_conv_weights(g, c->in.view.c_pitch, c->weights, {c->packed.get(), bytes});
      testing::set_limits(*c);
      fill_codes(
          *c, [](int64_t) { return 0; }, [&] { return pick(0, 1) * 255; });
    }
    if (!check_tactics(*c, rng).contains("avx512_vnni image_winograd")) continue;
    const Epilogue& e = c->args.epilogue;
    ++cases;
    seven += g.kernel_h == 7 && g.kernel_w == 7;
    plain += e.out.zero_point == 0 && e.lo == 0 && e.hi == 255;
  }
  EXPECT_GT(cases, 20);
  EXPECT_GT(seven, 5);
  EXPECT_LT(seven, cases - 5);
  EXPECT_GT(plain, 3);
  EXPECT_LT(plain, cases - 3);
}

// Layers whose weights fit registers: 16 to 40 channels, and 3x3 over images; codes of every finish, lines shorter and
// longer than what is taken at once.
TEST(ConvTactics, ResidentWeightsEqualTheDirectFormula) {
  if (!isa_supported(Isa::kAvx512Vnni)) GTEST_SKIP() << "this CPU has none of it";
  std::mt19937 rng(29);
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
  std::set<int64_t> channels;
  int plain = 0, relu = 0, any = 0, table = 0;
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    ConvGeometry g{.in_channels = pick(3, 10) * 4 - pick(0, 3),
                   .out_channels = i % 8 == 1 ? pick(600, 1100) : pick(1, 180)};
    g.stride_h = pick(1, 2), g.stride_w = pick(1, 2);
    if (i % 4 == 0) {
      g.in_channels = pick(1, 4), g.kernel_h = g.kernel_w = 3, g.dilation_h = pick(1, 2);
      g.pad_top = pick(0, 1), g.pad_left = pick(0, 1);
    }
    const auto c = testing::make_conv_case(rng, {pick(1, 2), pick(5, 14), pick(10, 60), g},
                                           {.table = i % 10 == 4, .function = i % 10 == 9});
    Epilogue& e = c->args.epilogue;
    const int finish = i % 5 == 4 ? 3 : i % 3;
    for (float& m : c->multiplier) m = finish == 1 ? std::abs(m) : m, m = std::clamp(m, -0.2f, 0.2f);
    testing::set_limits(*c);
    if (finish < 2) e.out.zero_point = c->out.view.zero_point = 0, e.lo = 0, e.hi = pick(0, 1) ? 255 : 127;
    if (!check_tactics(*c, rng).contains("avx512_vnni resident_weights")) continue;
    channels.insert(g.in_channels);
    ++(finish == 0 ? plain : finish == 1 ? relu : finish == 2 ? any : table);
  }
  EXPECT_GT(channels.size(), 15u);
  EXPECT_GT(plain, 10);
  EXPECT_GT(relu, 10);
  EXPECT_GT(any, 10);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vbmi")) {
    EXPECT_GT(table, 10);
  }
#endif
}

// What a tactic keeps from run to run is of no account for the result: images like the one before, images with other
// centers, with large codes, and shares that change from run to run.
TEST(ConvTactics, WhatIsKeptChangesNoResult) {
  std::mt19937 rng(17);
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
  int keeping = 0;
  for (Isa isa : supported_isas())
    for (const ConvTactic& tactic : kernels(isa).conv_tactics) {
      if (tactic.isa != isa || tactic.kept_bytes == nullptr) continue;
      ++keeping;
      for (const auto& [channels, outputs] : {std::pair{16, 96}, {144, 24}, {70, 40}, {320, 33}}) {
        const testing::ConvShape shape{1, 14, 14, {.in_channels = channels, .out_channels = outputs}};
        const auto c = testing::make_conv_case(rng, shape, {});
        if (!tactic.applies(c->args)) continue;
        const Guarded prepared(tactic.prepared_bytes(c->args)), scratch(tactic.scratch_bytes(c->args));
        const Guarded kept = kept_memory(tactic, c->args);
        tactic.prepare(c->args, prepared.data());
        ConvArgs args = c->args;
        args.prepared = prepared.data(), args.scratch = scratch.data(), args.kept = kept.data();
        const int64_t rows = c->out.view.h, blocks = padded_channels(outputs) / 16;
        for (int image = 0; image < 12; ++image) {
          const int kind = image / 2 % 4;  // every kind twice in a row, then the first again
          const int wide = kind == 2 ? 250 : 12;
          fill_codes(
              *c, [&](int64_t i) { return kind == 1 ? 200 : static_cast<int>(40 + i * 37 % 120); },
              [&] { return pick(-wide, wide) * (kind < 3 || pick(0, 99) == 0 ? 1 : 20); });
          const std::vector<uint8_t> want = testing::expected_output(*c);
          testing::take_output(*c);
          const int64_t row = pick(0, static_cast<int>(rows)),
                        block = image % 3 == 0 ? pick(0, static_cast<int>(blocks)) : blocks;
          for (const Range r : {Range{0, row}, Range{row, rows}})
            for (const Range b : {Range{0, block}, Range{block, blocks}}) tactic.run(args, r, b);
          ASSERT_EQ(testing::take_output(*c), want) << isa_name(isa) << ' ' << tactic.name << ", image " << image;
          ASSERT_TRUE(prepared.intact() && scratch.intact() && kept.intact());
        }
      }
    }
  if (isa_supported(Isa::kAvx2)) {
    EXPECT_GT(keeping, 0);
  }
}

// Images that are worked on in several chunks of rows, images of one to four channels, many input channels, counts of
// output channels that no register blocking divides.
TEST(ConvTactics, LayersOfNetworksEqualTheDirectFormula) {
  std::mt19937 rng(12);
  std::set<std::string> names;
  struct Layer {
    int64_t size, in, out, kernel, stride;
  };
  for (const Layer& l :
       {Layer{64, 3, 40, 7, 2}, Layer{40, 1, 24, 5, 1}, Layer{33, 4, 16, 3, 2}, Layer{40, 16, 40, 1, 1},
        Layer{28, 24, 8, 1, 2}, Layer{30, 32, 24, 3, 1}, Layer{7, 520, 33, 1, 1}, Layer{50, 64, 112, 1, 1},
        Layer{9, 256, 72, 3, 1}, Layer{50, 128, 48, 3, 1}, Layer{13, 128, 72, 3, 2}}) {
    const testing::ConvShape shape{1,
                                   l.size,
                                   l.size,
                                   {.in_channels = l.in,
                                    .out_channels = l.out,
                                    .kernel_h = l.kernel,
                                    .kernel_w = l.kernel,
                                    .stride_h = l.stride,
                                    .stride_w = l.stride,
                                    .pad_top = l.kernel / 2,
                                    .pad_left = l.kernel / 2}};
    for (const testing::ConvTail& tail :
         {testing::ConvTail{}, testing::ConvTail{.residual = true},
          testing::ConvTail{.residual = true, .rounds_twice = true}, testing::ConvTail{.table = true, .narrow = true},
          testing::ConvTail{.to_float = true}, testing::ConvTail{.function = true},
          testing::ConvTail{.residual = true, .rounds_twice = true, .function = true}}) {
      names.merge(check_tactics(*testing::make_conv_case(rng, shape, tail), rng));
      if (HasFailure()) return;
    }
  }
  if (!isa_supported(Isa::kAmxInt8)) return;
  for (const char* name : {"tiles2x2", "tiles4x1", "tiles1x4", "folded", "sliced", "planes"})
    EXPECT_TRUE(names.contains(std::string("amx_int8 ") + name)) << name;
}

}  // namespace
}  // namespace octet::kernels
