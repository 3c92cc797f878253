// Calls of functions that a model defines become the nodes of their bodies.
#pragma once
#include "onnx/proto.h"

namespace octet::onnx {

// In the graph of the model, whose default domain has this opset. Values and nodes of a body get the name of the call
// in front. UserError for functions that call themselves, that are made for another opset, and for bodies that grow
// beyond measure.
void inline_functions(proto::Model& model, int opset);

}  // namespace octet::onnx
