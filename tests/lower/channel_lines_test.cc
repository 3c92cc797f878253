#include "lower/channel_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace octet::lower {
namespace {

using Table = std::vector<uint8_t>;

// What a batch norm and a clamp make of codes, in the float32 steps of a graph.
Table batch_norm(float scale_in, int zero_in, float factor, float shift, float scale_out, int lo, int hi) {
  Table table(256);
  for (int x = 0; x < 256; ++x) {
    const float real = static_cast<float>(x - zero_in) * scale_in;
    const float normalized = real * factor + shift;
    table[static_cast<size_t>(x)] =
        static_cast<uint8_t>(std::clamp(static_cast<int>(std::nearbyint(normalized / scale_out)) + 128, lo, hi));
  }
  return table;
}

void expect_the_codes_of(const ChannelLines& lines, const Table& tables, int first, int last) {
  ASSERT_EQ(lines.multiplier.size() * 256, tables.size());
  for (size_t c = 0; c < lines.multiplier.size(); ++c)
    for (int x = first; x <= last; ++x) {
      const float y = std::nearbyint(static_cast<float>(x) * lines.multiplier[c] + lines.offset[c]);
      const int code = static_cast<int>(std::clamp(y, static_cast<float>(lines.lo), static_cast<float>(lines.hi)));
      ASSERT_EQ(code, tables[c * 256 + static_cast<size_t>(x)]) << "channel " << c << ", code " << x;
    }
}

TEST(ChannelLines, BatchNormsOfAllKinds) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> unit(0, 1);
  for (int i = 0; i < 50; ++i) {
    Table tables;
    const float scale_out = 0.01f + unit(random) * 0.1f;
    for (int c = 0; c < 24; ++c) {
      const float factor = std::exp(3 * (unit(random) - 0.5f)) * (c % 4 ? 1.0f : -1.0f);
      // Steep, flat, dead and always clamped ones, too.
      const float steepness = c % 7 == 0 ? 200.0f : c % 7 == 1 ? 1e-3f : c % 7 == 2 ? 0.0f : 1.0f;
      const Table table =
          batch_norm(0.02f, 128, factor * steepness, 4 * unit(random) - 2, scale_out, i % 2 ? 128 : 0, 255);
      tables.insert(tables.end(), table.begin(), table.end());
    }
    const auto lines = channel_lines(tables, 1, 255);
    ASSERT_TRUE(lines) << i;
    expect_the_codes_of(*lines, tables, 1, 255);
  }
}

TEST(ChannelLines, CodesThatDoNotOccurDoNotCount) {
  Table table = batch_norm(0.02f, 128, 1.37f, 0.11f, 0.04f, 0, 255);
  std::fill(table.begin(), table.begin() + 40, uint8_t{255});
  EXPECT_FALSE(channel_lines(table, 0, 255));
  const auto lines = channel_lines(table, 40, 255);
  ASSERT_TRUE(lines);
  expect_the_codes_of(*lines, table, 40, 255);
}

TEST(ChannelLines, FunctionsThatBendHaveNone) {
  Table bent(256), jump(256, 7);
  for (int x = 0; x < 256; ++x) bent[static_cast<size_t>(x)] = static_cast<uint8_t>(x < 100 ? x / 2 : x - 50);
  jump[90] = 9;
  EXPECT_FALSE(channel_lines(bent, 0, 255));
  EXPECT_FALSE(channel_lines(jump, 0, 255));
  // One such channel is enough.
  Table both = batch_norm(0.02f, 128, 1.0f, 0, 0.02f, 0, 255);
  both.insert(both.end(), bent.begin(), bent.end());
  EXPECT_FALSE(channel_lines(both, 0, 255));
}

}  // namespace
}  // namespace octet::lower
