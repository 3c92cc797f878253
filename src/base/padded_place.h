// What the padding modes of ONNX show beside an axis.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace octet {

// The element of an axis of `size` elements that is seen at `i`, which may lie outside: the nearest one (edge), the
// axis over and over (wrap), or there and back without seeing its ends twice (reflect). Nothing where it is the number
// to fill with (constant, and an axis without elements).
inline std::optional<int64_t> padded_place(int64_t i, int64_t size, std::string_view mode) {
  if (i >= 0 && i < size) return i;
  if (mode == "constant" || size == 0) return std::nullopt;
  if (mode == "edge") return i < 0 ? 0 : size - 1;
  if (mode == "wrap") return (i % size + size) % size;
  const int64_t period = std::max<int64_t>(2 * (size - 1), 1), place = (i % period + period) % period;
  return std::min(place, period - place);
}

}  // namespace octet
