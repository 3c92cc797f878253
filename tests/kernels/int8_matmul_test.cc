// Products of two matrices of codes: every instruction set against the sum written out.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/kernels/kernel_table.h"

namespace octet::kernels {
namespace {

struct Case {
  int64_t batches, m, n, k;
  int32_t a_zero_point, b_zero_point;
};

std::vector<uint8_t> random_codes(int64_t rows, int64_t pitch, std::mt19937& rng) {
  std::vector<uint8_t> codes(static_cast<size_t>(rows * pitch + kReadSlack));
  for (uint8_t& code : codes) code = static_cast<uint8_t>(rng());  // also between the rows, where kernels may read
  return codes;
}

void check(const Case& c, bool transposed) {
  std::mt19937 rng(static_cast<uint32_t>(c.m * 1000 + c.n * 100 + c.k));
  const int64_t a_pitch = channel_pitch(c.k), b_pitch = channel_pitch(transposed ? c.k : c.n);
  const auto a = random_codes(c.batches * c.m, a_pitch, rng);
  const auto b = random_codes(c.batches * (transposed ? c.n : c.k), b_pitch, rng);
  std::vector<float> expected(static_cast<size_t>(c.batches * c.m * c.n));
  constexpr float kScale = 0.0123f;
  for (int64_t row = 0; row < c.batches * c.m; ++row)
    for (int64_t j = 0; j < c.n; ++j) {
      int64_t sum = 0;
      for (int64_t i = 0; i < c.k; ++i) {
        const int64_t of_batch = row / c.m,
                      at = transposed ? (of_batch * c.n + j) * b_pitch + i : (of_batch * c.k + i) * b_pitch + j;
        sum += (a[static_cast<size_t>(row * a_pitch + i)] - c.a_zero_point) *
               (b[static_cast<size_t>(at)] - c.b_zero_point);
      }
      expected[static_cast<size_t>(row * c.n + j)] = static_cast<float>(sum) * kScale;
    }
  for (Isa isa : supported_isas()) {
    const int64_t rows = c.batches * c.m;
    // One share, and several that end within matrices.
    for (int64_t parts : {int64_t{1}, int64_t{3}}) {
      std::vector<float> out(expected.size(), -1.0f);
      std::vector<std::byte> scratch(static_cast<size_t>(int8_matmul_scratch(c.n, c.k)) + 64);
      auto* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
      const Int8MatMulArgs args{.a = {a.data(), a_pitch, c.a_zero_point},
                                .b = {b.data(), b_pitch, c.b_zero_point},
                                .b_transposed = transposed,
                                .scale = kScale,
                                .out = out.data(),
                                .m = c.m,
                                .n = c.n,
                                .k = c.k,
                                .scratch = aligned};
      for (int64_t part = 0; part < parts; ++part)
        kernels(isa).int8_matmul(args, Range{rows * part / parts, rows * (part + 1) / parts});
      ASSERT_EQ(out, expected) << isa_name(isa) << ": " << c.batches << " x " << c.m << " x " << c.n << " x " << c.k
                               << (transposed ? ", transposed" : "") << ", " << parts << " parts";
    }
  }
}

TEST(Int8MatMul, EveryShapeOnEveryIsa) {
  for (const bool transposed : {false, true}) {
    for (const Case& c : {Case{1, 1, 1, 1, 0, 255}, Case{2, 3, 4, 2, 128, 128}, Case{3, 6, 16, 64, 128, 7},
                          Case{2, 197, 64, 197, 0, 128}, Case{3, 50, 197, 64, 128, 128}, Case{1, 13, 33, 17, 255, 0},
                          Case{2, 7, 15, 3, 1, 2}, Case{1, 5, 100, 31, 128, 200}})
      check(c, transposed);
    for (int64_t n = 1; n <= 34; n += 3)
      for (int64_t k = 1; k <= 35; ++k) check({2, 7, n, k, 128, 100}, transposed);
  }
}

TEST(Int8MatMul, TheDeepestSumFits) {
  constexpr int64_t kDepth = kMaxMatMulDepth;
  const std::vector<uint8_t> a(static_cast<size_t>(kDepth + kReadSlack), 255),
      b(static_cast<size_t>(kDepth + kReadSlack), 255);
  for (Isa isa : supported_isas()) {
    float out = 0;
    std::vector<std::byte> scratch(static_cast<size_t>(int8_matmul_scratch(1, kDepth)) + 64);
    auto* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    kernels(isa).int8_matmul(Int8MatMulArgs{.a = {a.data(), kDepth, 0},
                                            .b = {b.data(), kDepth, 0},
                                            .b_transposed = true,
                                            .scale = 1,
                                            .out = &out,
                                            .m = 1,
                                            .n = 1,
                                            .k = kDepth,
                                            .scratch = aligned},
                             Range{0, 1});
    EXPECT_EQ(out, static_cast<float>(int64_t{255} * 255 * kDepth)) << isa_name(isa);
  }
}

}  // namespace
}  // namespace octet::kernels
