#include "numerics/quantize_span.h"

#include <algorithm>
#include <bit>

namespace octet::numerics {
namespace {

// Adding and taking off 1.5 * 2^23 leaves a float of up to 2^22 rounded to an integer, ties to even.
constexpr float kRounder = 12582912.0f;

template <typename Code>
void dequantize_codes(std::span<const Code> codes, const QuantParams& p, std::span<float> out) {
  const int32_t zero_point = p.zero_point;
  const float scale = p.scale;
  for (size_t i = 0; i < codes.size(); ++i)
    out[i] = static_cast<float>(static_cast<int32_t>(codes[i]) - zero_point) * scale;
}

// Sums of pieces that 32 bits hold.
template <typename Map>
int64_t sum_mapped(std::span<const int8_t> values, Map map) {
  constexpr size_t kPiece = 1 << 16;
  int64_t total = 0;
  for (size_t start = 0; start < values.size(); start += kPiece) {
    int32_t sum = 0;
    for (const int8_t v : values.subspan(start, std::min(kPiece, values.size() - start)))
      sum += map(static_cast<int32_t>(v));
    total += sum;
  }
  return total;
}

}  // namespace

void dequantize(std::span<const int8_t> codes, const QuantParams& p, std::span<float> out) {
  dequantize_codes(codes, p, out);
}

void dequantize(std::span<const uint8_t> codes, const QuantParams& p, std::span<float> out) {
  dequantize_codes(codes, p, out);
}

bool quantize_centered(std::span<const float> x, const QuantParams& p, std::span<int8_t> out) {
  const int32_t low = p.qmin - p.zero_point, high = p.qmax - p.zero_point;
  if (low < -128 || high > 127 || low > high) {
    for (size_t i = 0; i < x.size(); ++i) {
      const int32_t code = quantize(x[i], p) - p.zero_point;
      if (code < -128 || code > 127) return false;
      out[i] = static_cast<int8_t>(code);
    }
    return true;
  }
  // Integral bounds commute with rounding, so the clamp may come first; NaN passes it and becomes 0.
  const float lo = static_cast<float>(low), hi = static_cast<float>(high), scale = p.scale;
  for (size_t i = 0; i < x.size(); ++i) {
    float v = x[i] / scale;
    v = v < lo ? lo : v;
    v = v > hi ? hi : v;
    v = v == v ? v : 0.0f;
    out[i] = static_cast<int8_t>(static_cast<int32_t>((v + kRounder) - kRounder));
  }
  return true;
}

bool all_finite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t bad = 0;
  for (const float v : values) bad |= (std::bit_cast<uint32_t>(v) & kExponent) == kExponent ? 1u : 0u;
  return bad == 0;
}

int64_t sum(std::span<const int8_t> values) {
  return sum_mapped(values, [](int32_t v) { return v; });
}

int64_t sum_of_magnitudes(std::span<const int8_t> values) {
  return sum_mapped(values, [](int32_t v) { return v < 0 ? -v : v; });
}

}  // namespace octet::numerics
