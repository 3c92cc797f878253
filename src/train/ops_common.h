// What the executor and the families of operators share: the values of one run, and how a node is wired to them.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "train/executor.h"

namespace octet::train {

// One value while the graph runs: value, or value * scale, or value * scale + offset.
struct Slot {
  enum class Form {
    kNumber,   // `value` is the number itself
    kCodes,    // FakeQuantize where Run::codes: `value` holds code - zero_point, exactly. Convolutions
               // and matrix products take the codes, so that quantized data never leave the INT8 grid.
    kPending,  // the output of such a convolution, still to be multiplied by `scale`, divided by `count` and moved by
               // `offset` (may be undefined), the first and the last along axis 1. What comes next does that in its own
               // pass.
  };
  at::Tensor value;
  Form form = Form::kNumber;
  at::Tensor scale;  // float32, one element, or one per index of `axis`
  at::Tensor offset;
  int64_t axis = 0;
  int64_t count = 1;  // of a mean whose sum is pending
  bool is_codes() const { return form == Form::kCodes; }
  bool is_tensor_codes() const { return is_codes() && scale.numel() == 1; }
};

// Whether a BatchNormalization uses its running statistics in training, too, and leaves them alone: nobody trains its
// scale and shift.
bool keeps_statistics(const ir::Node& node);

// The state of one forward pass.
struct Run {
  bool training = false;
  bool batch_norm_frozen = false;
  Communicator* statistics = nullptr;  // of batch norm over all ranks (ExecutorOptions)
  bool channels_last = true;
  bool may_overwrite = false;           // steps may work in place where their wiring allows it
  bool cast_model = false;              // every operator gives the compute type
  bool codes = false;                   // quantized values flow as codes
  bool integer_sums = false;            // and what is computed of them is as docs/numerics.md has it (ExecutorOptions)
  at::ScalarType compute = at::kFloat;  // of convolutions, matrix products and what flows between them
  at::ScalarType master = at::kFloat;   // of parameters, statistics, losses: float, or double for gradient checks
  at::Device device = at::kCPU;
  uint64_t seed = 0;
  int64_t step = 0;
  // How scales follow what they see (ExecutorOptions).
  float activation_constant = 0, weight_constant = 1;
  std::vector<Slot> slots;

  // The number in a slot (codes are dequantized to the compute type); undefined for slot -1.
  // A pending product is computed once and kept.
  at::Tensor plain(int slot);
  // The same, at least float32: for operators that need the range or the precision.
  at::Tensor precise(int slot);
  // The same in the compute type: for what feeds convolutions and matrix products. The result is kept, so that a
  // parameter is cast once a step.
  at::Tensor low(int slot);
  void set(int slot, at::Tensor value) {
    if (slot >= 0) slots[slot] = Slot{.value = cast_model ? flow(value) : std::move(value)};
  }
  // A copy of a scale as it is now: updates of later steps must not reach what autograd saved.
  at::Tensor step_scale(int slot);
  // Keeps activations in the compute type: casts float32 down where the compute type is low.
  at::Tensor flow(const at::Tensor& t) const;
};

// The slots of a node's inputs and outputs; -1: absent.
struct Wiring {
  std::vector<int> in, out;
  // May this node overwrite its first input? True if nobody else reads it and autograd saved nothing of it.
  bool may_overwrite = false;
};

using StepFunction = std::function<void(Run&)>;

// Each throws UserError naming the node for what it cannot execute.
StepFunction compile_weighted(const ir::Node& node, const Wiring& wiring);     // Conv, ConvTranspose, Gemm, MatMul
StepFunction compile_norm(const ir::Node& node, const Wiring& wiring);         // normalizations, Dropout
StepFunction compile_elementwise(const ir::Node& node, const Wiring& wiring);  // activations, Add ... Max, Cast
StepFunction compile_pool(const ir::Node& node, const Wiring& wiring);         // pooling, reduction, ArgMax
StepFunction compile_shape(const ir::Node& node, const Wiring& wiring);        // Concat ... Identity
StepFunction compile_resize(const ir::Node& node, const Wiring& wiring);
// QuantizeLinear, DequantizeLinear, FakeQuantize
StepFunction compile_quantize(const ir::Node& node, const Wiring& wiring);

// "node 'x' (Conv)", for messages.
std::string node_text(const ir::Node& node);
// The integers of constant input `i`, or of attribute `name` where that is set; empty when neither is there. UserError
// when the input is computed.
std::vector<int64_t> constant_ints(const ir::Node& node, size_t i, const std::string& name = "");
std::vector<float> constant_floats(const ir::Node& node, size_t i);

// Shape [1, ..., n, ..., 1] of `rank` dimensions for a vector along `axis`.
at::Tensor along_axis(const at::Tensor& vector, int64_t axis, int64_t rank);

}  // namespace octet::train
