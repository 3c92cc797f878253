// What calibration says of the ranges that it found, beside using them.
#pragma once
#include <map>
#include <string>

#include "ir/graph.h"
#include "quant/observer.h"
#include "quant/options.h"

namespace octet::app {

// A sentence about symmetric quantizers of activations that reach far above zero and hardly below it, as behind Swish:
// most of their codes below zero are never used. Empty where they are less than a quarter of the quantizers of
// activations in `graph`, or where a zero point is out of the question: it is there, or the target refuses it.
std::string asymmetry_advice(const ir::Graph& graph, const std::map<std::string, quant::Range>& ranges,
                             const quant::QuantOptions& options);

}  // namespace octet::app
