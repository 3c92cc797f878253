// Tables of codes as lines: what batch norm and a clamp make of codes, channel by channel, is a straight line through
// them that is rounded once, and arithmetic takes a tenth of the time of looking a code up in a table of its channel.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace octet::lower {

// For every channel clamp(rne(float(code) * multiplier + offset), lo, hi), a product and a sum that are both rounded
// (kernels::ScaleShiftCodesArgs).
struct ChannelLines {
  std::vector<float> multiplier, offset;
  int32_t lo = 0, hi = 255;
};

// `tables`: 256 codes a channel, of which those for the codes [first, last] count. Nothing where the lines do not give
// every one of them, as of a function that bends.
std::optional<ChannelLines> channel_lines(std::span<const uint8_t> tables, int first, int last);

}  // namespace octet::lower
