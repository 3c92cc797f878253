#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "program_maker.h"

namespace octet {
namespace {

// Every box against every kept one.
std::vector<int64_t> kept_one_by_one(const std::vector<float>& boxes, const std::vector<float>& scores,
                                     float threshold) {
  std::vector<int64_t> order(scores.size()), kept;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  for (const int64_t i : order) {
    const float* a = &boxes[static_cast<size_t>(i) * 4];
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
      const float* b = &boxes[static_cast<size_t>(k) * 4];
      const float h = std::min(a[2], b[2]) - std::max(a[0], b[0]), w = std::min(a[3], b[3]) - std::max(a[1], b[1]);
      if (h <= 0 || w <= 0) return false;
      const float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
      return h * w / (area_a + area_b - h * w) > threshold;
    });
    if (!covered) kept.push_back(i);
  }
  return kept;
}

TEST(NonMaxSuppression, KeepsWhatEveryBoxBesideEveryOtherKeeps) {
  std::mt19937 random(5);
  for (const float spread : {3.0f, 60.0f, 5000.0f}) {
    constexpr int64_t kCount = 400;
    std::uniform_real_distribution<float> place(-spread, spread), side(0.1f, 12), score(0, 1);
    std::vector<float> boxes, scores;
    for (int64_t i = 0; i < kCount; ++i) {
      const float y = place(random), x = place(random);
      boxes.insert(boxes.end(), {y, x, y + side(random), x + side(random)});
      scores.push_back(score(random));
    }
    testing::ProgramMaker m;
    m.input("boxes");
    m.constant<float>("scores", {1, 1, kCount}, scores);
    m.constant<int64_t>("most", {1}, {kCount});
    m.constant<float>("threshold", {1}, {0.4f});
    m.add("NonMaxSuppression", {"boxes", "scores", "most", "threshold"}, {"chosen"});
    m.output("chosen", dense::Type::kInt64);
    dense::validate(m.program);
    dense::Memory memory;
    const dense::Tensor found =
        dense::run(m.program, {memory.of<float>({1, kCount, 4}, std::span<const float>(boxes))}).at(0);
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < found.shape()[0]; ++i)
      kept.push_back(found.values<int64_t>()[static_cast<size_t>(i) * 3 + 2]);
    EXPECT_EQ(kept, kept_one_by_one(boxes, scores, 0.4f)) << spread;
  }
}

}  // namespace
}  // namespace octet
