// From the probabilities of a classifier to its logits.
//
// What: where the only output is the Softmax or LogSoftmax (or Log of Softmax) over the classes, perhaps behind
// operators that change the shape alone and behind quantizers, the output becomes what these make of the Softmax's
// input; quantizers of probabilities go. Why: cross-entropy wants logits, and the softmax of probabilities is another
// distribution. Precondition: types. The output value changes, and with it its name. Test:
// tests/passes/bypass_softmax_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Whether there was one. Nothing changes otherwise.
bool bypass_softmax(ir::Graph& graph);

}  // namespace octet::passes
