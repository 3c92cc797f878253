#include "engine/kernels/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "engine/kernels/kernel_table.h"

namespace octet::kernels {
namespace {

// Dense tensors of up to five dimensions, the source's in another order: now and then with gaps, backwards, or the same
// element for all of a dimension.
StridedCopyArgs random_copy(std::mt19937& rng, int64_t longest) {
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); };
  StridedCopyArgs a{.rank = static_cast<int>(pick(1, 5))};
  std::vector<int> of_source(static_cast<size_t>(a.rank));
  std::iota(of_source.begin(), of_source.end(), 0);
  std::shuffle(of_source.begin(), of_source.end(), rng);
  for (int d = 0; d < a.rank; ++d) a.dims[d] = pick(1, d == 0 ? longest : 9);
  int64_t in = pick(0, 3) == 0 ? 2 : 1, out = pick(0, 3) == 0 ? 3 : 1;
  for (int i = a.rank - 1; i >= 0; --i) {
    const int d = of_source[static_cast<size_t>(i)];
    a.in_strides[d] = in, in *= a.dims[d];
    a.out_strides[i] = out, out *= a.dims[i];
  }
  if (pick(0, 2) == 0) a.in_strides[pick(0, a.rank - 1)] = 0;
  return a;
}

int64_t reach(const StridedCopyArgs& a, const Dims& strides) {
  int64_t last = 0;
  for (int d = 0; d < a.rank; ++d) last += (a.dims[d] - 1) * strides[d];
  return last + 1;
}

std::vector<float> copied_plainly(const StridedCopyArgs& a, const std::vector<float>& in, std::vector<float> out) {
  for (int64_t e = 0, count = row_count(a) * a.dims[a.rank - 1]; e < count; ++e) {
    int64_t rest = e, from = 0, to = 0;
    for (int d = a.rank - 1; d >= 0; --d) {
      from += rest % a.dims[d] * a.in_strides[d];
      to += rest % a.dims[d] * a.out_strides[d];
      rest /= a.dims[d];
    }
    out[static_cast<size_t>(to)] = in[static_cast<size_t>(from)];
  }
  return out;
}

TEST(StridedCopy, SimplifiedCopiesTheSame) {
  std::mt19937 rng(5);
  for (int i = 0; i < 2000; ++i) {
    StridedCopyArgs a = random_copy(rng, i % 50 == 0 ? 9000 : 40);
    std::vector<float> in(static_cast<size_t>(reach(a, a.in_strides))),
        out(static_cast<size_t>(reach(a, a.out_strides)), -1);
    std::iota(in.begin(), in.end(), 1.0f);
    const std::vector<float> expected = copied_plainly(a, in, out);
    for (StridedCopyArgs copy : {a, simplified(a)}) {
      std::vector<float> result = out;
      copy.in = in.data(), copy.out = result.data();
      const int64_t rows = row_count(copy), cut = rows / 3;
      kernels(Isa::kScalar).strided_copy(copy, Range{cut, rows});
      kernels(Isa::kScalar).strided_copy(copy, Range{0, cut});
      ASSERT_EQ(result, expected) << i;
    }
  }
}

std::vector<int64_t> sizes(const StridedCopyArgs& a) {
  return {a.dims.begin(), a.dims.begin() + a.rank};
}

TEST(StridedCopy, WalksAsFewDimensionsAsWillDo) {
  // NCHW to NHWC: pixels are one dimension, and the channels the rows that are turned.
  StridedCopyArgs a{.rank = 4};
  a.dims = {2, 7, 5, 12}, a.in_strides = {420, 5, 1, 35}, a.out_strides = {420, 60, 12, 1};
  EXPECT_EQ(sizes(simplified(a)), (std::vector<int64_t>{2, 35, 12}));
  EXPECT_EQ(simplified(a).in_strides[1], 1);
  // Heads of attention: rows of a head stay whole.
  a.dims = {1, 3, 197, 64}, a.in_strides = {37824, 64, 192, 1}, a.out_strides = {37824, 12608, 64, 1};
  EXPECT_EQ(sizes(simplified(a)), (std::vector<int64_t>{3, 197, 64}));
  // One long row is cut for the threads.
  a.dims = {1, 1, 1000, 100}, a.in_strides = a.out_strides = {100000, 100000, 100, 1};
  const StridedCopyArgs cut = simplified(a);
  EXPECT_EQ(cut.rank, 2);
  EXPECT_GT(row_count(cut), 20);
  EXPECT_EQ(row_count(cut) * cut.dims[1], 100000);
  a.dims = {1, 1, 1, 1};
  EXPECT_EQ(sizes(simplified(a)), std::vector<int64_t>{1});
}

}  // namespace
}  // namespace octet::kernels
