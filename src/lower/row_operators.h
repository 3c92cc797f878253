// Tokens of a transformer are rows: [batch, tokens, features], or [batch, height, width, features] in Swin and
// ConvNeXt, are [rows, features] in the same order. Products by constant weights already compute on rows
// (rewrite_forms.h), and codes have a layout there (rank 2), which they have not in rank 3.
#pragma once
#include "ir/graph.h"

namespace octet::lower {

// Operators along rows compute on rows, too, where an input is made of rows: element-wise ones whose other operands are
// of the same shape, single numbers, or constants along the last axis; quantizers with one scale; LayerNormalization
// over the last axis always. The Reshape from rows moves behind them, so that sums, activations and quantizers meet the
// products beside them as they do in a network that was written in rank 2. The rows of a result NAME are called
// NAME/rows (those of a quantizer are what verification looks for). Requires types and constants that are folded.
// Returns the number of operators.
int compute_on_rows(ir::Graph& graph);

}  // namespace octet::lower
