// The types that a network is trained in.
#pragma once
#include <span>
#include <string>

#include "schema/enum_names.h"

namespace octet::train {

// What convolutions, matrix products and the activations between them are computed in. Parameters, their gradients,
// scales, rounding, batch norm statistics, softmax and the graph's outputs are float32 also under bf16 and fp16, unless
// an opt level says otherwise (amp.h). float64 is for gradient checks (everything is float64, except that
// fake-quantization rounds in float32); an experiment cannot ask for it.
enum class Precision { kFloat32, kBFloat16, kFloat16, kAuto, kFloat64 };
std::span<const schema::EnumName<Precision>> enum_names(Precision);  // those that an experiment may name
const char* precision_name(Precision precision);                     // of all

// What `auto` means on this machine, or the one that is named. On a CPU without fast BF16 or FP16 a warning says
// that fp32 would be quicker; a device without it at all is left to the executor.
Precision resolve_precision(Precision wanted, const std::string& device);

}  // namespace octet::train
