// The functions of quantize.h over many elements with the same parameters, bit for bit: what touches every weight of a
// network. Compiled with -O3, so that their loops become vector code.
#pragma once
#include <cstdint>
#include <span>

#include "numerics/quantize.h"

namespace octet::numerics {

// out[i] = dequantize(codes[i], p).
void dequantize(std::span<const int8_t> codes, const QuantParams& p, std::span<float> out);
void dequantize(std::span<const uint8_t> codes, const QuantParams& p, std::span<float> out);

// out[i] = quantize(x[i], p) - p.zero_point. False where one of these leaves s8; then `out` is not specified.
bool quantize_centered(std::span<const float> x, const QuantParams& p, std::span<int8_t> out);

// No NaN and no infinity among them.
bool all_finite(std::span<const float> values);

int64_t sum(std::span<const int8_t> values);
int64_t sum_of_magnitudes(std::span<const int8_t> values);

}  // namespace octet::numerics
