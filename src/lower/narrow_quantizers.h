// Signed codes of numbers that are never negative: half of them are never used, and the engine is quicker without.
#pragma once
#include "ir/graph.h"

namespace octet::lower {

// A quantizer of an activation with signed codes around zero whose input cannot be negative (behind Relu, Sigmoid, Clip
// from 0 on ..., and what moves, pools, adds or multiplies such) gets 0 as its least code. Nothing else changes: the
// numbers are the same, and so are the codes. The engine stores them without an offset then: zero is the byte 0, so
// that sums need no correction and the lower limit of codes is that of a byte. Images only: features have few sums, and
// those within a squeeze-and-excite are read by their graph's codes (TensorDump::inner).
//
// Where codes of several quantizers meet as they are (Concat, a quantizer behind another), all are narrowed or none, as
// the engine has to requantize what differs. Returns the number of quantizers. Requires types.
int narrow_quantizers(ir::Graph& graph);

}  // namespace octet::lower
