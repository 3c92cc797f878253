// The rules of index_ties.h, one for each family of operators; ops.def names them. A rule ties places of the inputs and
// outputs of its node, and mentions an axis of an input only where it has tied all that follows from it: what it leaves
// out is fixed. Shapes are those of the shape rules, which ran before.
#pragma once
#include "ir/index_ties.h"

namespace octet::ir {

#define OCTET_OP(kind, min_inputs, max_inputs, max_outputs, infer, evaluate, ties, ...) \
  void ties(const Node& node, IndexTies& t);
#include "ir/ops.def"
#undef OCTET_OP

}  // namespace octet::ir
