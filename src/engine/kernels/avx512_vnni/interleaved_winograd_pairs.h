// The products of interleaved_winograd.cc: a row of positions of the four tiles of 7x7 outputs (or of the two that have
// this row), for pairs of input channels. Between the products of a pair stands what the weights of its columns and of
// the taps of the next pair take: by hand, since the processor looks ahead too little to fill the gaps itself.
#pragma once
#include "engine/kernels/avx512_vnni/lean_winograd_tiles.h"

namespace octet::kernels {
namespace {

// Weights of four input channels of 16 output channels, for each column of taps: bytes (first tap, last tap) of the
// pair of even channels and of that of odd ones, [16 output channels][2], then their middle taps.
constexpr int64_t kTapsBytes = 64, kMiddleAt = 2 * kTapsBytes, kMiddleBytes = 32;
constexpr int64_t kColumnBytes = kMiddleAt + 2 * kMiddleBytes, kFourBytes = 3 * kColumnBytes;

constexpr int kSlots = 4;                                 // tiles of a pass
constexpr int64_t kPlaceBytes = 2 * kChunk;               // of V: a chunk of a position of a tile
constexpr int64_t kPassBytes = 6 * kSlots * kPlaceBytes;  // of V: a chunk of a pass, [position][tile][channel]

// The positions of a row, in the order of their products: the last one is only there for the first half of the tiles.
constexpr int kColumns[6] = {0, 1, 2, 3, 5, 4};

// The rows of positions: where each evaluates the taps of a column, at the points of winograd.h.
enum class Row { kFirst, kOne, kMinusOne, kTwo, kMinusTwo, kLast };
constexpr int row_tiles(Row r) {
  return r == Row::kMinusTwo ? kSlots / 2 : kSlots;
}

// One instruction between products.
enum class Act {
  // of this pair: from columns of taps a, b and c to the weights of positions
  kOuter,     // outer = a + c
  kOne,       // weights = outer + b
  kMinusOne,  // outer -= b
  kFour,      // far = 4 c
  kFar,       // far += a
  kTwice,     // twice = 2 b
  kTwo,       // weights = far + twice
  kMinusTwo,  // far -= twice
  // of a column of the next pair
  kEnds,  // next = first tap + last tap, or + 4 last tap: a product
  kFirst,
  kSign,       // next = first tap, without a product, in two steps
  kLastAlone,  // next = last tap
  kLast,
  kFour16,    // part = last tap, and 4 times that
  kMiddle,    // part = middle tap
  kAdd,       // next += part
  kAddSigned  // next += part, or -= where the row's point is negative
};
struct Step {
  Act act;
  int column = 0;  // of taps
};

// In the order in which they come, evenly spread. Ends of taps are added up by a product where there are fewer products
// than other instructions left, two of them a cycle: products take turns with the others.
template <Row kRow>
struct Steps;
template <>
struct Steps<Row::kFirst> {
  static constexpr Step list[] = {{Act::kOuter},    {Act::kOne},      {Act::kFirst, 0}, {Act::kMinusOne},
                                  {Act::kFour},     {Act::kFar},      {Act::kTwice},    {Act::kTwo},
                                  {Act::kSign, 0},  {Act::kFirst, 1}, {Act::kMinusTwo}, {Act::kSign, 1},
                                  {Act::kFirst, 2}, {Act::kSign, 2}};
};
template <>
struct Steps<Row::kLast> {
  static constexpr Step list[] = {{Act::kOuter},        {Act::kOne},      {Act::kMinusOne},    {Act::kFour},
                                  {Act::kFar},          {Act::kTwice},    {Act::kTwo},         {Act::kLastAlone, 0},
                                  {Act::kLastAlone, 1}, {Act::kMinusTwo}, {Act::kLastAlone, 2}};
};
template <>
struct Steps<Row::kOne> {
  static constexpr Step list[] = {{Act::kOuter},        {Act::kOne},      {Act::kEnds, 0},      {Act::kMinusOne},
                                  {Act::kMiddle, 0},    {Act::kFour},     {Act::kAddSigned, 0}, {Act::kFar},
                                  {Act::kEnds, 1},      {Act::kTwice},    {Act::kTwo},          {Act::kMiddle, 1},
                                  {Act::kAddSigned, 1}, {Act::kFirst, 2}, {Act::kMinusTwo},     {Act::kSign, 2},
                                  {Act::kLast, 2},      {Act::kAdd, 2},   {Act::kMiddle, 2},    {Act::kAddSigned, 2}};
};
template <>
struct Steps<Row::kMinusOne> : Steps<Row::kOne> {};
template <>
struct Steps<Row::kTwo> {
  static constexpr Step list[] = {
      {Act::kOuter},    {Act::kOne},          {Act::kEnds, 0},      {Act::kMinusOne},     {Act::kMiddle, 0},
      {Act::kFour},     {Act::kAddSigned, 0}, {Act::kFar},          {Act::kAddSigned, 0}, {Act::kTwice},
      {Act::kTwo},      {Act::kEnds, 1},      {Act::kMiddle, 1},    {Act::kAddSigned, 1}, {Act::kAddSigned, 1},
      {Act::kMinusTwo}, {Act::kFirst, 2},     {Act::kSign, 2},      {Act::kLast, 2},      {Act::kFour16, 2},
      {Act::kAdd, 2},   {Act::kMiddle, 2},    {Act::kAddSigned, 2}, {Act::kAddSigned, 2}};
};
template <>
struct Steps<Row::kMinusTwo> {
  static constexpr Step list[] = {{Act::kOuter},     {Act::kOne},          {Act::kEnds, 0},      {Act::kMinusOne},
                                  {Act::kMiddle, 0}, {Act::kFour},         {Act::kAddSigned, 0}, {Act::kFar},
                                  {Act::kTwice},     {Act::kAddSigned, 0}, {Act::kEnds, 1},      {Act::kTwo},
                                  {Act::kMiddle, 1}, {Act::kAddSigned, 1}, {Act::kAddSigned, 1}, {Act::kMinusTwo},
                                  {Act::kEnds, 2},   {Act::kMiddle, 2},    {Act::kAddSigned, 2}, {Act::kAddSigned, 2}};
};

template <Row kRow>
struct PairProducts {
  static constexpr int kTiles = row_tiles(kRow), kSums = 5 * kTiles + kTiles / 2;  // [column][tile]
  static constexpr int kSteps = sizeof(Steps<kRow>::list) / sizeof(Step), kTogether = 3;
  static constexpr bool kNegative = kRow == Row::kMinusOne || kRow == Row::kMinusTwo;
  Z sums[kSums];
  Z columns[2][3];  // of taps, of the even pair and of the odd one, in turns now and next
  Z outer, far, twice, weights, part, factors;

  // Factors of the first and the last tap.
  OCTET_INLINE PairProducts() {
    factors = _mm512_set1_epi16(kRow == Row::kTwo || kRow == Row::kMinusTwo ? 4 << 8 | 1 : 1 << 8 | 1);
  }

  // Four input channels, whose even pair is there in `columns`; afterwards that of the next four is.
  // v: of the first position; w: the weights of these four channels.
  OCTET_INLINE void add_even(const std::byte* v, const std::byte* w) { add<0, kTapsBytes, kMiddleBytes>(v, w); }
  OCTET_INLINE void add_odd(const std::byte* v, const std::byte* w) { add<1, kFourBytes, kFourBytes>(v, w); }

  // The columns of the first even pair.
  template <int I = 0>
  OCTET_INLINE void load_first(const std::byte* w) {
    if constexpr (I < kSteps) {
      if constexpr (Steps<kRow>::list[I].act >= Act::kEnds) step<I, 1, 0, 0>(w);
      load_first<I + 1>(w);
    }
  }

 private:
  // Steps come in groups, before every third product: one each time would tie all products to one of two queues.
  static constexpr int place(int step) { return step * kSums / kSteps / kTogether * kTogether; }
  static constexpr int place(Act act) {
    int step = 0;
    while (Steps<kRow>::list[step].act != act) ++step;
    return place(step);
  }
  // Weights are there before the products of their column, and stay until the last of them.
  static_assert(place(Act::kOne) <= kTiles && place(Act::kMinusOne) <= 2 * kTiles);
  static_assert(place(Act::kTwo) >= 2 * kTiles && place(Act::kTwo) <= 3 * kTiles &&
                place(Act::kMinusTwo) <= 5 * kTiles);

  template <int kNow, int64_t kTaps, int64_t kMiddle, int kProduct = 0, int kStep = 0>
  OCTET_INLINE void add(const std::byte* v, const std::byte* w) {
    if constexpr (kStep < kSteps && place(kStep) == kProduct) {
      step<kStep, kNow, kTaps, kMiddle>(w);
      add<kNow, kTaps, kMiddle, kProduct, kStep + 1>(v, w);
    } else if constexpr (kProduct < kSums) {
      constexpr int kColumn = kProduct / kTiles, kTile = kProduct % kTiles;
      const Z& by = kColumn == 0   ? columns[kNow][0]
                    : kColumn == 2 ? outer
                    : kColumn == 4 ? columns[kNow][2]
                    : kColumn == 5 ? far
                                   : weights;
      asm volatile("vpdpwssd %c2(%1)%{1to16%}, %3, %0"
                   : "+v"(sums[kProduct])
                   : "r"(v), "i"((kColumn * kSlots + kTile) * kPlaceBytes + kNow * 64), "v"(by));
      add<kNow, kTaps, kMiddle, kProduct + 1, kStep>(v, w);
    } else {
      static_assert(kStep == kSteps);
    }
  }

  template <int kStep, int kNow, int64_t kTaps, int64_t kMiddle>
  OCTET_INLINE void step(const std::byte* w) {
    constexpr Step kThis = Steps<kRow>::list[kStep];
    constexpr Act kAct = kThis.act;
    const Z &a = columns[kNow][0], &b = columns[kNow][1], &c = columns[kNow][2];
    Z& next = columns[1 - kNow][kThis.column];
    const auto& taps = *reinterpret_cast<const int8_t(*)[64]>(w + kTaps + kThis.column * kColumnBytes);
    const auto& middle = *reinterpret_cast<const int8_t(*)[32]>(w + kMiddleAt + kMiddle + kThis.column * kColumnBytes);
    if constexpr (kAct == Act::kOuter) asm volatile("vpaddw %2, %1, %0" : "=v"(outer) : "v"(a), "v"(c));
    if constexpr (kAct == Act::kOne) asm volatile("vpaddw %2, %1, %0" : "=v"(weights) : "v"(outer), "v"(b));
    if constexpr (kAct == Act::kMinusOne) asm volatile("vpsubw %1, %0, %0" : "+v"(outer) : "v"(b));
    if constexpr (kAct == Act::kFour) asm volatile("vpsllw $2, %1, %0" : "=v"(far) : "v"(c));
    if constexpr (kAct == Act::kFar) asm volatile("vpaddw %1, %0, %0" : "+v"(far) : "v"(a));
    if constexpr (kAct == Act::kTwice) asm volatile("vpaddw %1, %1, %0" : "=v"(twice) : "v"(b));
    if constexpr (kAct == Act::kTwo) asm volatile("vpaddw %2, %1, %0" : "=v"(weights) : "v"(far), "v"(twice));
    if constexpr (kAct == Act::kMinusTwo) asm volatile("vpsubw %1, %0, %0" : "+v"(far) : "v"(twice));
    if constexpr (kAct == Act::kEnds) asm volatile("vpmaddubsw %1, %2, %0" : "=v"(next) : "m"(taps), "v"(factors));
    if constexpr (kAct == Act::kFirst) asm volatile("vpsllw $8, %1, %0" : "=v"(next) : "m"(taps));
    if constexpr (kAct == Act::kSign) asm volatile("vpsraw $8, %0, %0" : "+v"(next));
    if constexpr (kAct == Act::kLastAlone) asm volatile("vpsraw $8, %1, %0" : "=v"(next) : "m"(taps));
    if constexpr (kAct == Act::kLast) asm volatile("vpsraw $8, %1, %0" : "=v"(part) : "m"(taps));
    if constexpr (kAct == Act::kFour16) asm volatile("vpsllw $2, %0, %0" : "+v"(part));
    if constexpr (kAct == Act::kMiddle) asm volatile("vpmovsxbw %1, %0" : "=v"(part) : "m"(middle));
    if constexpr (kAct == Act::kAdd || (kAct == Act::kAddSigned && !kNegative))
      asm volatile("vpaddw %1, %0, %0" : "+v"(next) : "v"(part));
    if constexpr (kAct == Act::kAddSigned && kNegative) asm volatile("vpsubw %1, %0, %0" : "+v"(next) : "v"(part));
  }
};

}  // namespace
}  // namespace octet::kernels
