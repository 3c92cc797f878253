// Pools of every geometry against the plain evaluator: dilations together with pads, strides, SAME and ceil_mode, in
// floats and on codes, on every instruction set.
#include <string>

#include "base/window.h"
#include "lower/lower_test_util.h"
#include "support/sanitized.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using Ints = std::vector<int64_t>;
using ::testing::AllOf;
using ::testing::HasSubstr;

ir::Attributes random_pool(Random& random, OpKind kind) {
  const auto two = [&](int64_t low, int64_t high) {
    return Ints{random.integer(low, high), random.integer(low, high)};
  };
  const Ints kernel = two(1, 4), dilations = two(1, 3);
  ir::Attributes a = {{"kernel_shape", kernel}, {"dilations", dilations}, {"strides", two(1, 3)}};
  switch (random.integer(0, 3)) {
    case 0:
      a["auto_pad"] = std::string(random.integer(0, 1) ? "SAME_UPPER" : "SAME_LOWER");
      break;
    case 1:
      break;
    default: {
      Ints pads;
      for (size_t i = 0; i < 4; ++i) pads.push_back(random.integer(0, (kernel[i % 2] - 1) * dilations[i % 2]));
      a["pads"] = pads;
    }
  }
  a["ceil_mode"] = random.integer(0, 3) == 0 ? int64_t{1} : int64_t{0};
  if (kind == OpKind::kAveragePool) a["count_include_pad"] = random.integer(0, 1);
  return a;
}

// Whether the shape rules take a pool of an image; they refuse one that is too small, or leapt over.
bool fits(OpKind kind, const ir::Attributes& attributes, int64_t h, int64_t w) {
  QuantNet net(1);
  try {
    net.finish({net.op(kind, {net.input({1, 1, h, w})}, attributes)});
  } catch (const UserError&) {
    return false;
  }
  return true;
}

TEST(Pools, RandomWindowsInFloatsAndOnCodes) {
  constexpr int kPools = testing::kSanitized ? 40 : 120;
  int made = 0, dilated = 0;
  for (uint64_t seed = 1; made < kPools; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    QuantNet net(seed);
    const OpKind kind = seed % 2 ? OpKind::kMaxPool : OpKind::kAveragePool;
    const ir::Attributes attributes = random_pool(net.random, kind);
    const int64_t h = net.random.integer(1, 12), w = net.random.integer(1, 12);
    if (!fits(kind, attributes, h, w)) continue;
    ++made;
    dilated += attributes.count("pads") > 0 && std::get<Ints>(attributes.at("dilations")) != Ints{1, 1};
    constexpr int64_t kChannels[] = {3, 5, 16, 21, 70};
    auto* x = net.input({2, kChannels[seed % 5], h, w});
    auto* quantized = net.op(kind, {net.fq(x, 0.01f)}, attributes);
    net.finish({net.op(kind, {x}, attributes), net.fq(quantized, 0.0083f)});
    check_graph(net, {.float_tolerance = 1e-5, .off_by_one = 0.01});
    if (HasFailure()) return;
  }
  EXPECT_GT(dilated, kPools / 4);
}

TEST(Pools, AWindowWithoutAnElementIsRefusedByName) {
  // Taps at -1 and 2 of an image of two rows.
  QuantNet net(2);
  auto* x = net.input({1, 3, 2, 8});
  const ir::Attributes leaps = {
      {"kernel_shape", Ints{2, 1}}, {"dilations", Ints{3, 1}}, {"pads", Ints{1, 0, 1, 0}}, {"strides", Ints{1, 1}}};
  try {
    net.finish({net.graph.add(OpKind::kMaxPool, "stem/pool", {x}, leaps)});
    FAIL() << "taken";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr("'stem/pool'"), HasSubstr("window 0"), HasSubstr("axis 0"), HasSubstr("'x'")));
  }
}

TEST(Pools, FirstWindowOutsideIsTheFirstWithoutATap) {
  Random random(3);
  int outside = 0;
  for (int i = 0; i < 3000; ++i) {
    const int64_t outputs = random.integer(1, 6), kernel = random.integer(1, 4), stride = random.integer(1, 4),
                  dilation = random.integer(1, 4), pad = random.integer(0, 9), size = random.integer(1, 7);
    int64_t expected = -1;
    for (int64_t o = outputs - 1; o >= 0; --o) {
      bool meets = false;
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t at = o * stride - pad + k * dilation;
        meets |= at >= 0 && at < size;
      }
      if (!meets) expected = o;
    }
    outside += expected >= 0;
    ASSERT_EQ(first_window_outside(outputs, kernel, stride, dilation, pad, size), expected)
        << outputs << " " << kernel << " " << stride << " " << dilation << " " << pad << " " << size;
  }
  EXPECT_GT(outside, 300);
}

}  // namespace
}  // namespace octet::testing
