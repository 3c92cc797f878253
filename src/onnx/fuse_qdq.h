// QuantizeLinear -> DequantizeLinear pairs become FakeQuantize nodes, pre-quantized constants become float constants
// behind a FakeQuantize. The other direction is the exporter's.
#pragma once
#include <string>

#include "ir/graph.h"

namespace octet::onnx {

// metadata_props entries in which Octet keeps what Q/DQ pairs cannot say. The importer takes them out again.
// One line a FakeQuantize whose range or state is not what the file alone implies: "qmin qmax state name".
inline constexpr const char* kFakeQuantizeKey = "octet.fake_quantize";
// One trainable initializer a line. Present when the graph has any.
inline constexpr const char* kTrainableKey = "octet.trainable";

// Precondition: types are inferred. Rewrites
// - Q(x) -> DQ with equal constant scale and zero point: FakeQuantize(x); several DQ of one Q become one node;
// - Q(x) -> DQ with one other constant scale or zero point: FakeQuantize, the arithmetic that leads from one to the
//   other, FakeQuantize;
// - DQ of an int8 or uint8 constant: a float constant of the same name, and FakeQuantize. Its codes come out again
//   exactly. qmin is -127 where the zero points are 0 and no code is -128 (also for Q(constant) -> DQ);
// - DQ of an int32 constant (a bias): a float constant of the same name.
// FakeQuantize has the name and the output of the DequantizeLinear, state "frozen". `notes` is the text of
// kFakeQuantizeKey, or empty. Q and DQ without a partner stay as they are. UserError for scales that are not positive.
void fuse_qdq(ir::Graph& graph, const std::string& notes = "");

}  // namespace octet::onnx
