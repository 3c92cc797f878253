// The Winograd convolution of every instruction set against the direct 64-bit formula, bit for bit.
#include "engine/kernels/winograd/winograd.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/conv_cases.h"

namespace octet::kernels {
namespace {

using testing::ConvCase;
using testing::ConvShape;
using testing::ConvTail;

struct Named {
  Isa isa;
  const WinogradKernel* kernel;
};
std::vector<Named> supported_kernels() {
  std::vector<Named> all;
#if defined(__x86_64__)
  for (const Named& k :
       {Named{Isa::kAvx2, &winograd_avx2}, Named{Isa::kAvxVnni, &winograd_avx_vnni},
        Named{Isa::kAvx512Vnni, &winograd_avx512_vnni}, Named{Isa::kAvx512Vnni, &row_winograd_avx512_vnni}})
    if (isa_supported(k.isa)) all.push_back(k);
#endif
  return all;
}

// Memory that ends where nobody may write; 64-byte aligned where `bytes` is a multiple of 64.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(bytes) {
    const int64_t page = ::sysconf(_SC_PAGESIZE);
    room_ = (bytes + page - 1) / page * page;
    map_ = static_cast<std::byte*>(
        ::mmap(nullptr, static_cast<size_t>(room_ + page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(map_ + room_, static_cast<size_t>(page), PROT_NONE);
    page_ = page;
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { ::munmap(map_, static_cast<size_t>(room_ + page_)); }
  std::byte* get() const { return map_ + room_ - bytes_; }

 private:
  int64_t bytes_ = 0, room_ = 0, page_ = 0;
  std::byte* map_ = nullptr;
};

int64_t pick(std::mt19937& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}

ConvShape shape_of(int64_t n, int64_t h, int64_t w, int64_t ic, int64_t oc, int64_t pad_top = 1, int64_t pad_left = 1) {
  return {
      n,
      h,
      w,
      {.in_channels = ic, .out_channels = oc, .kernel_h = 3, .kernel_w = 3, .pad_top = pad_top, .pad_left = pad_left}};
}

// Runs all work in shares cut at random, with several blockings, from an input that ends at a page nobody may read.
void check(ConvCase& c, std::mt19937& rng) {
  ASSERT_TRUE(winograd_applies(c.args)) << c.name;
  const std::vector<uint8_t> want = testing::expected_output(c);
  Guarded in(static_cast<int64_t>(c.in.bytes.size()));
  std::memcpy(in.get(), c.in.bytes.data(), c.in.bytes.size());
  ConvArgs args = c.args;
  args.in.data = reinterpret_cast<uint8_t*>(in.get()) + (c.in.view.data - c.in.bytes.data());
  const int64_t rows = c.out.view.n * c.out.view.h, blocks = conv_layout(args.geometry, args.in.c_pitch).blocks;
  for (const Named& k : supported_kernels())
    for (const int64_t block_tiles : {k.kernel->blocking.block_tiles, pick(rng, 1, 20)}) {
      WinogradBlocking blocking = k.kernel->blocking;
      blocking.block_tiles = block_tiles;
      const WinogradPlan plan = winograd_plan(args, blocking);
      ASSERT_EQ(plan.prepared_bytes % 64, 0);
      ASSERT_EQ(plan.scratch_bytes % 64, 0);
      Guarded prepared(plan.prepared_bytes), scratch(plan.scratch_bytes);
      k.kernel->prepare(args, plan, prepared.get());
      std::memset(scratch.get(), 0xa5, static_cast<size_t>(plan.scratch_bytes));
      testing::take_output(c);
      const int64_t row_cut = pick(rng, 0, rows), block_cut = pick(rng, 0, blocks);
      for (const Range r : {Range{0, row_cut}, Range{row_cut, rows}})
        for (const Range b : {Range{0, block_cut}, Range{block_cut, blocks}})
          k.kernel->run(args, plan, prepared.get(), scratch.get(), r, b);
      const std::vector<uint8_t> got = testing::take_output(c);
      ASSERT_EQ(got.size(), want.size());
      const auto at = std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin();
      ASSERT_EQ(at, static_cast<int64_t>(want.size()))
          << c.name << " on " << isa_name(k.isa) << ", blocks of " << block_tiles << " tiles: first wrong byte";
    }
}

TEST(Winograd, RandomShapesEqualTheDirectFormula) {
  std::mt19937 rng(1);
  for (int i = 0; i < 80; ++i) {
    const ConvShape shape = shape_of(pick(rng, 1, 3), pick(rng, 3, 14), pick(rng, 3, 30), pick(rng, 5, 70),
                                     pick(rng, 1, 100), pick(rng, 0, 2), pick(rng, 0, 2));
    ConvTail tail;
    tail.to_float = i % 7 == 0;
    tail.residual = i % 3 == 0;
    tail.rounds_twice = tail.residual && !tail.to_float && i % 2 == 0;
    tail.table = !tail.to_float && i % 5 == 0;
    tail.function = !tail.to_float && !tail.table && i % 4 == 1;
    tail.narrow = !tail.function && i % 2 == 1;
    auto c = testing::make_conv_case(rng, shape, tail);
    check(*c, rng);
    if (HasFatalFailure()) return;
  }
}

TEST(Winograd, LayersOfNetworksEqualTheDirectFormula) {
  std::mt19937 rng(2);
  for (const ConvShape& shape : {shape_of(1, 56, 56, 64, 64), shape_of(1, 14, 14, 256, 64), shape_of(2, 7, 7, 512, 48),
                                 shape_of(1, 9, 15, 272, 33)}) {
    auto c = testing::make_conv_case(rng, shape, {.residual = true});
    check(*c, rng);
    if (HasFatalFailure()) return;
  }
}

// Weights and codes at their limits, all of one sign or in the signs of a transform's row: every intermediate value is
// at the end of its range, and the sum does not fit one part.
TEST(Winograd, ExtremeWeightsAndCodesStayExact) {
  std::mt19937 rng(3);
  for (int kind = 0; kind < 4; ++kind) {
    auto c = testing::make_conv_case(rng, shape_of(1, 8, 8, 480, 16), {});
    for (size_t i = 0; i < c->weights.size(); ++i)
      c->weights[i] = kind == 0 ? -128 : kind == 1 ? 127 : kind == 2 ? (i % 2 ? 127 : -128) : rng() % 2 ? 127 : -128;
    for (auto& b : c->in.bytes) b = kind < 2 || rng() % 2 ? 255 : 0;
    // The input may be a range of the channels of a wider tensor, whose halo it is.
    fill_halo(make_qtensor(c->in.bytes.data(), 1, 8, 8, c->in.view.c_pitch, c->in.halo, c->in.view.zero_point),
              c->in.halo, {0, 8});
    make_acc_init(c->weights, 16, c->bias, c->in.view.zero_point, c->acc_init);
    const int64_t bytes = conv_layout(c->args.geometry, c->in.view.c_pitch).weight_bytes;
    pack_conv_weights(c->args.geometry, c->in.view.c_pitch, c->weights, {c->packed.get(), static_cast<size_t>(bytes)});
    check(*c, rng);
    if (HasFatalFailure()) return;
  }
}

// As the engine runs it: the tactic's own preparation and shares, for several numbers of threads.
TEST(Winograd, TacticSharesCoverAllWorkOnce) {
  std::mt19937 rng(5);
  for (const ConvShape& shape :
       {shape_of(1, 34, 20, 32, 48), shape_of(3, 7, 7, 48, 80), shape_of(2, 30, 13, 20, 17), shape_of(1, 4, 5, 16, 16)})
    for (Isa isa : supported_isas())
      for (const ConvTactic& tactic : kernels(isa).conv_tactics) {
        const bool of_rows = std::string(tactic.name) == "row_winograd";
        if (tactic.isa != isa || (!of_rows && std::string(tactic.name) != "winograd4x4")) continue;
        for (const ConvSplit split : {ConvSplit::kAuto, ConvSplit::kRows, ConvSplit::kChannels})
          for (const int threads : {1, 2, 5}) {
            auto c = testing::make_conv_case(rng, shape, {.residual = !of_rows});
            c->args.split = split;
            Guarded prepared(tactic.prepared_bytes(c->args)), scratch(tactic.scratch_bytes(c->args));
            tactic.prepare(c->args, prepared.get());
            c->args.prepared = prepared.get();
            c->args.scratch = scratch.get();
            const std::vector<uint8_t> want = testing::expected_output(*c);
            testing::take_output(*c);
            const int64_t tiles = winograd_tiles(c->args),
                          blocks = conv_layout(c->args.geometry, c->args.in.c_pitch).blocks;
            int64_t work = 0;
            for (int part = 0; part < threads; ++part) {
              const ConvShare s = tactic_share(tactic, c->args, part, threads);
              const bool some = s.tiles.begin < s.tiles.end, none = s.rows.begin == s.rows.end;
              work += (some ? s.tiles.end - s.tiles.begin : none ? 0 : tiles) * (s.blocks.end - s.blocks.begin);
              c->args.tiles = s.tiles;
              tactic.run(c->args, s.rows, s.blocks);
            }
            EXPECT_EQ(work, tiles * blocks) << c->name;
            EXPECT_EQ(testing::take_output(*c), want) << c->name;
            EXPECT_GT(tactic.cost(c->args, threads), 0);
          }
      }
}

TEST(Winograd, PartsAreTheFewestThatProveTheSum) {
  // Two blocks, four chunks; the largest sum a part may have is 2^25 / 255 = 131586.01.
  std::vector<int32_t> sums(2 * 4 * 32, 0);
  EXPECT_EQ(winograd_parts(sums.data(), 2, 4), 1);
  for (int c = 0; c < 4; ++c) sums[(4 + c) * 32 + 20] = 131586 / 4;
  EXPECT_EQ(winograd_parts(sums.data(), 2, 4), 1);
  sums[4 * 32 + 20] += 3;
  EXPECT_EQ(winograd_parts(sums.data(), 2, 4), 2);
  sums[4 * 32 + 20] = 131586;
  EXPECT_EQ(winograd_parts(sums.data(), 2, 4), 3);  // the parts of 3 are chunks 0, 1 and 2..3
}

TEST(Winograd, OtherConvolutionsAreDeclined) {
  std::mt19937 rng(4);
  auto c = testing::make_conv_case(rng, shape_of(1, 8, 8, 16, 16), {});
  EXPECT_TRUE(winograd_applies(c->args));
  const auto declined = [&](auto change) {
    ConvArgs args = c->args;
    change(args);
    return !winograd_applies(args);
  };
  EXPECT_TRUE(declined([](ConvArgs& a) { a.geometry.stride_w = 2; }));
  EXPECT_TRUE(declined([](ConvArgs& a) { a.geometry.dilation_h = 2; }));
  EXPECT_TRUE(declined([](ConvArgs& a) { a.geometry.kernel_h = 1; }));
  EXPECT_TRUE(declined([](ConvArgs& a) { a.geometry.groups = 2; }));
  EXPECT_TRUE(declined([](ConvArgs& a) { a.geometry.in_channels = 3, a.in.c_pitch = 4; }));
}

}  // namespace
}  // namespace octet::kernels
