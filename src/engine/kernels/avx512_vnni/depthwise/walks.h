// The depthwise kernels of real networks: 3x3 and 5x5, strides 1 and 2. Each walks along a strip of output pixels and
// builds the quads of every input column once, for all output pixels that it feeds. On Intel cores vpunpck runs once
// a cycle and everything else twice, so both the number of shuffles and the sum of all vector instructions count; on
// AMD's Zen 5, where shuffles hardly count, it is the loads, two a cycle:
//
//   per 64 outputs          shuffles   dot products
//   3x3 stride 1, 2 rows       4           12         quads = 4 input rows, shared by 3 columns and 2 rows
//   3x3 stride 1, 1 row        8           12         quads = 3 input rows
//   3x3 stride 2              16           12
//   5x5 stride 1              10           28         quads = 4 input rows; the fifth row in quads of 4 columns
//   5x5 stride 2              20           28
#pragma once
#include "engine/kernels/avx512_vnni/depthwise/walk3.h"
#include "engine/kernels/avx512_vnni/depthwise/walk5.h"

namespace octet::kernels {
namespace {

using Walk = void(const Block&, const Strip&, const Constants&, const uint8_t*);
struct Walks {
  Walk *one_row = nullptr, *two_rows = nullptr;  // two_rows may be absent
};

template <int Parts, Finish F>
Walks choose_walks(const ConvGeometry& g) {
  if (g.kernel_w == 3 && g.stride_w == 1) return {walk3<Parts, F, 1>, walk3<Parts, F, 2>};
  if (g.kernel_w == 3) return {walk3_stride2<Parts, F>};
  if (g.stride_w == 1) return {walk5<Parts, F, 1>};
  return {walk5<Parts, F, 2>};
}

template <Finish F>
Walks choose_walks(const ConvGeometry& g, int64_t parts) {
  if (parts == 1) return choose_walks<1, F>(g);
  if (parts == 2) return choose_walks<2, F>(g);
  return choose_walks<4, F>(g);
}

OCTET_INLINE bool has_walks(const ConvGeometry& g) {
  return g.kernel_h == g.kernel_w && (g.kernel_w == 3 || g.kernel_w == 5) && g.stride_h == g.stride_w &&
         g.stride_w <= 2 && g.dilation_h == 1 && g.dilation_w == 1;
}

}  // namespace
}  // namespace octet::kernels
