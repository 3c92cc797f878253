#include "lower/channel_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernels/int8_ops.h"
#include "numerics/quantize.h"

namespace octet::lower {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// Vertical segments over the codes: which numbers are rounded and clamped to the entry of the table.
struct Segments {
  int first = 0, last = 0;
  double below[256], above[256];

  Segments(const uint8_t* table, int first, int last, int lo, int hi) : first(first), last(last) {
    for (int x = first; x <= last; ++x) {
      below[x] = table[x] == lo ? -kUnbounded : table[x] - 0.5;
      above[x] = table[x] == hi ? kUnbounded : table[x] + 0.5;
    }
  }

  // The free room of a line of this slope, negative where there is none, the offset of its middle, and on which side
  // slopes have more room: the room is a concave function of the slope.
  struct Fit {
    double room, offset;
    bool steeper;
  };
  Fit fit(double slope) const {
    double highest = kUnbounded, lowest = -kUnbounded;
    int from_above = first, from_below = first;
    for (int x = first; x <= last; ++x) {
      const double top = above[x] - slope * x, bottom = below[x] - slope * x;
      if (top < highest) highest = top, from_above = x;
      if (bottom > lowest) lowest = bottom, from_below = x;
    }
    return {highest - lowest, (highest + lowest) / 2, from_below > from_above};
  }
};

bool gives(const uint8_t* table, int first, int last, int lo, int hi, float multiplier, float offset) {
  if (!(std::fabs(multiplier) * 255 + std::fabs(offset) < kernels::kMostOfALine)) return false;
  for (int x = first; x <= last; ++x)
    if (numerics::round_to_int(static_cast<float>(x) * multiplier + offset, lo, hi, lo) != table[x]) return false;
  return true;
}

// Adds the line through the table of a channel.
bool add_line(const uint8_t* table, int first, int last, ChannelLines& lines) {
  const auto add = [&](double multiplier, double offset) {
    lines.multiplier.push_back(static_cast<float>(multiplier));
    lines.offset.push_back(static_cast<float>(offset));
    return gives(table, first, last, lines.lo, lines.hi, lines.multiplier.back(), lines.offset.back());
  };
  if (std::all_of(table + first, table + last + 1, [&](uint8_t code) { return code == table[first]; }))
    return add(0, table[first]);
  const Segments segments(table, first, last, lines.lo, lines.hi);
  // No line is steeper than one that goes from the least code to the largest within one step.
  double gentle = -512, steep = 512;
  const auto inside = [&](int x) { return std::isfinite(segments.below[x]) && std::isfinite(segments.above[x]); };
  int left = first, right = last;
  while (left < right && !inside(left)) ++left;
  while (left < right && !inside(right)) --right;
  if (left < right) {
    const double run = right - left, rise = table[right] - table[left];
    gentle = (rise - 1) / run, steep = (rise + 1) / run;
  }
  constexpr int kHalvings = 50;
  constexpr double kEnoughRoom = 1e-3;
  Segments::Fit fit{};
  double slope = 0;
  for (int i = 0; i < kHalvings; ++i) {
    slope = (gentle + steep) / 2;
    fit = segments.fit(slope);
    if (fit.room > kEnoughRoom) break;
    (fit.steeper ? gentle : steep) = slope;
  }
  return fit.room >= 0 && add(slope, fit.offset);
}

}  // namespace

std::optional<ChannelLines> channel_lines(std::span<const uint8_t> tables, int first, int last) {
  ChannelLines lines{.lo = 255, .hi = 0};
  // Where all end is what clamps all: no channel leaves it, with the clamp or without.
  for (size_t begin = 0; begin < tables.size(); begin += 256)
    for (int x = first; x <= last; ++x) {
      const int32_t code = tables[begin + static_cast<size_t>(x)];
      lines.lo = std::min(lines.lo, code), lines.hi = std::max(lines.hi, code);
    }
  for (size_t begin = 0; begin < tables.size(); begin += 256)
    if (!add_line(tables.data() + begin, first, last, lines)) return std::nullopt;
  return lines;
}

}  // namespace octet::lower
