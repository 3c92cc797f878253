// Convolutions: the scalar reference against a direct 64-bit formula, every instruction set against the same bytes.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "kernels/conv_cases.h"
#include "support/sanitized.h"

namespace octet::kernels {
namespace {

using testing::ConvCase;
using testing::ConvShape;
using testing::ConvTail;
using testing::square_conv;

// Reports the first differing byte instead of two long lists.
void expect_same(const std::vector<uint8_t>& got, const std::vector<uint8_t>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(int{got[i]}, int{want[i]}) << what << ": byte " << i << " of " << got.size();
}

void check_on_every_isa(ConvCase& c, std::mt19937& rng) {
  const std::vector<uint8_t> want = testing::expected_output(c);
  testing::take_output(c);
  for (Isa isa : supported_isas()) {
    testing::run_conv(kernels(isa), c, rng);
    expect_same(testing::take_output(c), want, c.name + " on " + isa_name(isa));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Int8Conv, RandomShapesEqualTheDirectFormulaOnEveryIsa) {
  std::mt19937 rng(1);
  for (int i = 0; i < (octet::testing::kSanitized ? 60 : 200); ++i) {
    auto c = testing::random_conv_case(rng, false);
    check_on_every_isa(*c, rng);
    if (HasFatalFailure()) return;
  }
}

TEST(Int8Conv, RandomDepthwiseShapesEqualTheDirectFormulaOnEveryIsa) {
  std::mt19937 rng(2);
  for (int i = 0; i < 200; ++i) {
    auto c = testing::random_conv_case(rng, true);
    check_on_every_isa(*c, rng);
    if (HasFatalFailure()) return;
  }
}

// Shapes of real networks (smaller images), which meet the wide register blockings.
TEST(Int8Conv, LayersOfNetworksEqualTheDirectFormulaOnEveryIsa) {
  std::mt19937 rng(3);
  const ConvShape shapes[] = {
      square_conv(28, 3, 64, 7, 2),   square_conv(14, 64, 64, 3, 1),    square_conv(14, 64, 128, 3, 2),
      square_conv(7, 128, 96, 3, 1),  square_conv(14, 128, 256, 1, 1),  square_conv(14, 128, 128, 1, 2),
      square_conv(1, 512, 100, 1, 1), square_conv(1, 130, 17, 1, 1, 5), square_conv(33, 16, 48, 3, 1)};
  for (const ConvShape& shape : shapes)
    for (const ConvTail& tail :
         {ConvTail{}, ConvTail{.residual = true}, ConvTail{.residual = true, .rounds_twice = true},
          ConvTail{.table = true, .narrow = true}, ConvTail{.to_float = true}, ConvTail{.function = true},
          ConvTail{.residual = true, .function = true}}) {
      auto c = testing::make_conv_case(rng, shape, tail);
      check_on_every_isa(*c, rng);
      if (HasFatalFailure()) return;
    }
}

TEST(Int8Conv, OnePixelLayersEqualTheDirectFormulaOnEveryIsa) {
  std::mt19937 rng(4);
  for (const int64_t in : {3, 4, 5, 16, 28, 48, 130, 512})
    for (const int64_t out : {2, 4, 10, 16, 17, 33, 48, 64, 100, 240})
      for (const ConvTail& tail :
           {ConvTail{}, ConvTail{.narrow = true}, ConvTail{.table = true}, ConvTail{.function = true}}) {
        auto c = testing::make_conv_case(rng, {1, 1, 1, {.in_channels = in, .out_channels = out}}, tail);
        const std::vector<uint8_t> want = testing::expected_output(*c);
        testing::take_output(*c);
        for (Isa isa : supported_isas()) {
          kernels(isa).pixel_conv(c->args);
          expect_same(testing::take_output(*c), want, c->name + " on " + isa_name(isa));
          if (HasFatalFailure()) return;
        }
      }
}

// Loads may run over the last row by kReadSlack bytes, and not by one more: the buffer ends at a page nobody may read.
TEST(Int8Conv, NothingIsReadBeyondTheSlack) {
  std::mt19937 rng(5);
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  for (int i = 0; i < 300; ++i) {
    auto c = testing::random_conv_case(rng, i % 3 == 0);
    const int64_t bytes = static_cast<int64_t>(c->in.bytes.size()), room = (bytes + page - 1) / page * page;
    void* map =
        ::mmap(nullptr, static_cast<size_t>(room + page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(map, MAP_FAILED);
    ASSERT_EQ(::mprotect(static_cast<uint8_t*>(map) + room, static_cast<size_t>(page), PROT_NONE), 0);
    uint8_t* copy = static_cast<uint8_t*>(map) + room - bytes;
    std::memcpy(copy, c->in.bytes.data(), c->in.bytes.size());
    c->args.in.data = copy + (c->in.view.data - c->in.bytes.data());
    const std::vector<uint8_t> want = testing::expected_output(*c);
    testing::take_output(*c);
    for (Isa isa : supported_isas()) {
      testing::run_conv(kernels(isa), *c, rng);
      expect_same(testing::take_output(*c), want, c->name + " on " + isa_name(isa));
    }
    ASSERT_EQ(::munmap(map, static_cast<size_t>(room + page)), 0);
    if (HasFatalFailure()) return;
  }
}

TEST(Int8Conv, SharesCoverAllWorkOnce) {
  std::mt19937 rng(4);
  for (int i = 0; i < 200; ++i) {
    auto c = testing::random_conv_case(rng, false);
    const int parts = 1 + i % 5;
    int64_t work = 0;
    const int64_t rows = c->out.view.n * c->out.view.h,
                  blocks = conv_layout(c->args.geometry, c->args.in.c_pitch).blocks;
    Range last_rows, last_blocks;
    for (int p = 0; p < parts; ++p) {
      const ConvShare s = conv_share(c->args, p, parts);
      if (s.rows.end - s.rows.begin != rows) {
        EXPECT_EQ(s.rows.begin, last_rows.end);
      }
      if (s.blocks.end - s.blocks.begin != blocks) {
        EXPECT_EQ(s.blocks.begin, last_blocks.end);
      }
      last_rows = s.rows;
      last_blocks = s.blocks;
      work += (s.rows.end - s.rows.begin) * (s.blocks.end - s.blocks.begin);
    }
    EXPECT_EQ(work, rows * blocks) << c->name;
  }
}

TEST(Int8Conv, AccumulatorStartThatLeavesInt32IsRefused) {
  const std::vector<int8_t> weights(4, -127);
  const std::vector<int32_t> bias{2147483647};
  std::vector<int32_t> acc(16);
  EXPECT_THROW(make_acc_init(weights, 1, bias, 200, acc), UserError);
}

}  // namespace
}  // namespace octet::kernels
