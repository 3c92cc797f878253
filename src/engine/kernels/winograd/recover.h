// From the sums of a tile's positions to its outputs (winograd.h). In an anonymous namespace: see
// kernels/CMakeLists.txt.
#pragma once
#include "engine/kernels/int8_conv.h"
#include "engine/kernels/winograd/transforms.h"

namespace octet::kernels {
namespace {

constexpr uint32_t kRecovering = 954437177;  // the inverse of 9, see winograd.h

// Some output channels of a tile: each of its four rows is given to take(y, outputs), as 64 times the sums.
// m: the first position's sums, those of the next `step` further on each. start: added to the position that reaches all
// outputs alike.
template <typename Sums, typename Take>
OCTET_FLAT void recover_rows(const uint32_t* m, int64_t step, const Sums& start, const Take& take) {
  Sums lines[4][6];
#pragma GCC unroll 6
  for (int x = 0; x < 6; ++x) {
    Sums column[6], y[4];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) column[i] = load_vector<Sums>(m + (i * 6 + x) * step);
    if (x == 1) column[1] += start;
    transform_output(column, y);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) lines[i][x] = y[i];
  }
#pragma GCC unroll 4
  for (int y = 0; y < 4; ++y) {
    Sums outputs[4];
    transform_output(lines[y], outputs);
#pragma GCC unroll 4
    for (int x = 0; x < 4; ++x) outputs[x] *= kRecovering;
    take(y, outputs);
  }
}

// K::Codes, which takes the rows of a tile straight to codes, where an instruction set has one.
template <typename K>
struct CodesOf {
  struct Type {
    explicit Type(const Epilogue&) {}
  };
};
template <typename K>
requires requires {
  typename K::Codes;
}
struct CodesOf<K> {
  using Type = typename K::Codes;
};

}  // namespace
}  // namespace octet::kernels
