// A quantized model beside its engine: which of its quantized tensors the engine holds, and the model cut at these, so
// that each piece can be computed from the engine's own codes.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/executor.h"
#include "ir/graph.h"
#include "numerics/quantize.h"

namespace octet::app {

// What verification can say of one activation quantizer of the model.
enum class TensorPlace {
  kCompared,    // the engine holds its codes
  kMerged,      // this model's engine never holds them: a step goes on with them in registers, or they are another's
  kMissing,     // an engine of this model holds them, this one does not
  kOtherScale,  // the engine's codes of that name have another scale or zero point
};

struct QuantizedTensor {
  std::string tensor;  // output of the quantizer
  std::string source;  // its input
  // The engine's tensor with these codes: `tensor`, or where only the shape changes between, the quantizer may have
  // moved before that (lower/canonicalize.h), and the same codes have another shape.
  std::string engine_tensor;
  numerics::QuantParams params;
  bool of_image = false;  // it quantizes the network's input
  TensorPlace place = TensorPlace::kCompared;
  std::string note;  // of the others: where the codes are, or what is wrong
};

// Tensors of a run by name; codes where a name has codes and floats.
using TensorDumps = std::map<std::string, engine::TensorDump>;
TensorDumps tensors_by_name(std::vector<engine::TensorDump> dumps);

// The codes of a tensor in the graph's words, also where the engine holds it as floats that all are multiples of the
// scale; nothing where they are no codes of `params`.
std::vector<int32_t> codes_of(const engine::TensorDump& dump, const numerics::QuantParams& params);

// All activation quantizers of `graph`, in its order. `found`: what the engine gave; `expected`: the tensors that an
// engine holds which was compiled from `graph` just now.
std::vector<QuantizedTensor> find_quantized_tensors(const ir::Graph& graph, const TensorDumps& found,
                                                    const TensorDumps& expected);

// The number of quantizers of activations.
int64_t count_activation_quantizers(const ir::Graph& graph);

// `graph` with what each compared quantizer gives as an input. `tensors` are those of find_quantized_tensors.
struct CutModel {
  // Outputs: those of the graph, then the source of every compared tensor that is not the image itself. Inputs: the
  // image, then every compared tensor.
  ir::Graph pieces;
  // The outputs of the graph alone, with the same inputs.
  ir::Graph scores;
  std::vector<size_t> compared;  // indices of `tensors`: the inputs 1, 2 ...
};
CutModel cut_model(const ir::Graph& graph, const std::vector<QuantizedTensor>& tensors);

}  // namespace octet::app
