// Steps of a convolution that run in bands of rows (engine/row_bands.h): only the rows that a band's outputs need are
// in memory then, with kReadSlack bytes behind the last one.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "kernels/conv_cases.h"

namespace octet::kernels {
namespace {

using testing::ConvCase;
using testing::ConvShape;
using testing::ConvTail;
using testing::square_conv;

// Bytes between two pages that nobody may touch, next to the first or to the last of them.
class Fenced {
 public:
  enum class Next { kToFirst, kToLast };
  Fenced(std::span<const uint8_t> bytes, Next next) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE)), room = (bytes.size() + page - 1) / page * page;
    size_ = room + 2 * page;
    map_ = static_cast<uint8_t*>(::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (map_ == MAP_FAILED || ::mprotect(map_, page, PROT_NONE) || ::mprotect(map_ + page + room, page, PROT_NONE))
      throw std::runtime_error("no memory between fences");
    data_ = map_ + page + (next == Next::kToFirst ? 0 : room - bytes.size());
    std::copy(bytes.begin(), bytes.end(), data_);
  }
  ~Fenced() { ::munmap(map_, size_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  uint8_t* data() const { return data_; }

 private:
  uint8_t *map_, *data_;
  size_t size_;
};

// Runs some rows of the output by every tactic, with only the rows of the input that they need between the fences.
void check_rows(const ConvCase& c, Range rows, const std::vector<uint8_t>& want, std::set<std::string>& names) {
  const ConvGeometry& g = c.args.geometry;
  const QTensor &in = c.in.view, &out = c.out.view;
  const int64_t first = std::max(rows.begin * g.stride_h - g.pad_top, -c.in.halo.top);
  const int64_t last =
      std::min((rows.end - 1) * g.stride_h - g.pad_top + (g.kernel_h - 1) * g.dilation_h, in.h + c.in.halo.bottom - 1);
  const int64_t skipped = (first + c.in.halo.top) * in.row_stride;
  const std::span<const uint8_t> needed(c.in.bytes.data() + skipped,
                                        static_cast<size_t>((last - first + 1) * in.row_stride + kReadSlack));
  const Range blocks{0, conv_layout(g, in.c_pitch).blocks};
  const int64_t line = out.w * out.c;
  for (const auto next : {Fenced::Next::kToFirst, Fenced::Next::kToLast}) {
    const Fenced fenced(needed, next);
    for (Isa isa : supported_isas())
      for (const ConvTactic& tactic : kernels(isa).conv_tactics) {
        if (tactic.applies && !tactic.applies(c.args)) continue;
        ConvArgs args = c.args;
        args.in.data = fenced.data() + (in.data - c.in.bytes.data()) - skipped;
        testing::run_tactic(tactic, args, {&rows, 1}, {&blocks, 1}, c.name);
        const std::string name = std::string(isa_name(isa)) + " " + tactic.name;
        for (int64_t y = rows.begin; y < rows.end; ++y)
          for (int64_t x = 0; x < out.w; ++x)
            ASSERT_EQ(std::memcmp(out.data + y * out.row_stride + x * out.c_pitch, want.data() + y * line + x * out.c,
                                  static_cast<size_t>(out.c)),
                      0)
                << c.name << " by " << name << ": row " << y << " of [" << rows.begin << ", " << rows.end << ")";
        std::memset(out.data + rows.begin * out.row_stride, 0, static_cast<size_t>(line));
        names.insert(name);
      }
  }
}

void check_bands(const ConvCase& c, std::mt19937& rng, std::set<std::string>& names) {
  if (c.out.view.n != 1 || c.tail.to_float) return;  // which are not computed in bands
  const std::vector<uint8_t> want = testing::expected_output(c);
  for (int i = 0; i < 3 && !::testing::Test::HasFatalFailure(); ++i) {
    const auto begin = static_cast<int64_t>(rng() % static_cast<uint64_t>(c.out.view.h));
    const auto rows = static_cast<int64_t>(1 + rng() % static_cast<uint64_t>(c.out.view.h - begin));
    check_rows(c, {begin, begin + std::min<int64_t>(rows, 8)}, want, names);
  }
}

TEST(ConvBands, RandomShapesReadOnlyTheRowsTheyNeed) {
  std::mt19937 rng(21);
  std::set<std::string> names;
  for (int i = 0; i < 300 && !HasFatalFailure(); ++i) check_bands(*testing::random_conv_case(rng, false), rng, names);
}

TEST(ConvBands, LayersOfNetworksReadOnlyTheRowsTheyNeed) {
  std::mt19937 rng(22);
  std::set<std::string> names;
  const ConvShape shapes[] = {
      square_conv(28, 3, 64, 7, 2),  square_conv(33, 3, 32, 8, 2),   square_conv(14, 64, 64, 3, 1),
      square_conv(28, 32, 32, 3, 1), square_conv(14, 64, 128, 3, 2), square_conv(7, 128, 96, 3, 1),
      square_conv(9, 64, 32, 5, 1),  square_conv(14, 64, 256, 1, 1), square_conv(14, 128, 128, 1, 2)};
  for (const ConvShape& shape : shapes)
    for (const ConvTail& tail : {ConvTail{}, ConvTail{.residual = true}, ConvTail{.narrow = true, .dense = true}})
      for (int i = 0; i < 3 && !HasFatalFailure(); ++i)
        check_bands(*testing::make_conv_case(rng, shape, tail), rng, names);
  if (isa_supported(Isa::kAvx512Vnni)) {
    for (const char* tactic : {"image_winograd", "row_winograd", "register_winograd", "winograd4x4"})
      EXPECT_TRUE(names.contains(std::string("avx512_vnni ") + tactic)) << tactic;
  }
}

}  // namespace
}  // namespace octet::kernels
