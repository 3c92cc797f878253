// What an activation and the quantizer behind it make of the sums of a convolution: a function from 16-bit steps of the
// sum (docs/numerics.md) to codes, without arithmetic on floats, so that every instruction set gives the same bytes.
//
// The 65,536 steps are 256 cells of 256. In a cell the codes only rise, or only fall: cells before `turn` are walked
// from their end, so that they rise, too (Silu falls before its minimum and rises behind it). So a cell is the code it
// begins with and the places where the code rises by one, `rises` of them at most.
//
// Most functions are nearly straight within 1/64 of the steps. These are kept as a line for each of 64 cells, which
// takes three bytes of a cell instead of 1 + rises in each of four, and half of the time. A code then differs by one
// from that of the function where this lies near a rounding border (kLineError), mostly within some hundredths of a
// code.
#pragma once
#include <cstdint>

namespace octet::kernels {

// The steps that a sum is rounded to.
inline constexpr int32_t kLeastStep = -32768, kGreatestStep = 32767;
// Where a function changes far out (LeakyRelu with a small slope, or Silu, which rises to zero again), the sum, in
// steps, counts less there: v = c + (v - c) * tails with c = clamp(v, -kInnerSteps, kInnerSteps), before it is rounded.
inline constexpr int32_t kInnerSteps = 16384;
inline constexpr int32_t kMostTailShift = 12;
// With so many rises a step is 1/32 of a code, and rounding to steps moves a number by 1/64 of a code at most.
inline constexpr int32_t kMostRises = 8;
inline constexpr int32_t kLineCells = 64, kLineBytes = 3 * kLineCells;
inline constexpr int32_t kLeastLineShift = 9, kGreatestLineShift = 12;
// Where a line has another code than the function, this is at most so far, in codes, from the border between the two.
inline constexpr double kLineError = 0.25;

struct CodeFunction {
  // 1 + rises rows of 256 bytes, by the upper byte of the step: the first codes, and places p, each of which adds one
  // to the code from place p + 1 of the cell on (255: never). Without rows and lines there is no function.
  const uint8_t* rows = nullptr;
  int32_t rises = 0;
  // Instead of rows, 3 rows of 64 bytes by cell = (step >> 10) & 63: base, slope (signed) and offset;
  //   code = (base + (slope * place >> line_shift)) mod 256, place = ((step >> 3) + offset) mod 256
  // In odd cells step >> 3 begins with 128, which the offset takes back.
  const uint8_t* lines = nullptr;
  int32_t line_shift = kGreatestLineShift;
  float tails = 1;      // 2^-n, n <= kMostTailShift; 1: none
  int32_t turn = -128;  // the first cell that is walked forwards, counted as signed upper bytes are: -128..127

  explicit operator bool() const { return rows != nullptr || lines != nullptr; }
  bool has_tails() const { return tails != 1; }
  static constexpr int64_t bytes(int64_t rises) { return (1 + rises) * 256; }
};

}  // namespace octet::kernels
