// Executes an ir::Graph with LibTorch, forward and backward. The graph is compiled once into a list of steps; autograd
// records them in training. There is no second model class: what the trainer trains, the exporter writes.
//
// Layout: tensors keep the logical shapes of the graph (NCHW); with `channels_last`, 4-D activations and weights are
// held in NHWC memory. Callers may pass any strides.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "quant/scale_averaging.h"
#include "train/communicator.h"
#include "train/options/precision.h"

namespace at {
class Tensor;
}

namespace octet::train {

enum class Mode { kTrain, kEval };

struct ExecutorOptions {
  std::string device = "cpu";                 // or "cuda", "cuda:N": UserError where there is none
  Precision precision = Precision::kFloat32;  // not kAuto: see resolve_precision
  // The whole network is of the type that `precision` names, weights and all; but parameters and statistics of
  // normalizations where these are to stay float32.
  bool cast_model = false, keep_batchnorm_fp32 = true;
  bool channels_last = true;
  uint64_t seed = 0;                // of Dropout
  quant::ScaleAveraging averaging;  // once per forward(kTrain)
  // kEval in float32 on the CPU computes what docs/numerics.md says of quantized tensors: exact sums of codes, biases
  // as int32, one rounding to each code. So its codes are those of the engine, not those beside a border that float32
  // sums fall on the other side of. For graphs whose constants stay as they are from the first forward() on.
  bool integer_sums = false;
  // Batch norm is over the images of all ranks in forward(kTrain) and its backward; null: each over its own.
  Communicator* statistics = nullptr;
};

class Executor {
 public:
  // Copies what it needs from `graph`, which must have passed ir::infer_shapes. UserError, naming the node, for an
  // operator or attribute that cannot be executed.
  explicit Executor(const ir::Graph& graph, ExecutorOptions options = {});
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  // Runs the graph on one batch. `inputs`: one tensor per graph input, in its order; floating inputs of any float type
  // and any device (they are moved and cast). Returns one tensor per graph output, in its order, float32 if floating.
  // kTrain: BatchNormalization uses the batch's statistics and updates the running ones (but where its scale and shift
  // are not trainable), Dropout drops, scales follow
  // their averaging constants, and the outputs carry an autograd graph. kEval: no autograd, intermediate tensors are
  // freed after their last use. In float32, kEval computes the plain dequantized float graph, node by node (but with
  // integer_sums): that is the reference which the engine is verified against.
  std::vector<at::Tensor> forward(std::vector<at::Tensor> inputs, Mode mode);

  // Trainable constants in graph order (of first use), named as their values: leaf tensors on the device with
  // requires_grad, float32 but where the model is cast. Optimizers update them in place. 4-D ones are dense but, with
  // channels_last, not contiguous; their gradients have the same strides, so element-wise updates need not care. Use
  // .contiguous() to get graph order.
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() const;
  // Running statistics of BatchNormalization and scales of FakeQuantize, in graph order: no gradient; float32 but
  // for statistics that are cast.
  std::vector<std::pair<std::string, at::Tensor>> named_buffers() const;

  // After parameters were written to in another way than by a step that follows forward(kTrain): scales of weights that
  // are a function of these are brought up to date before anyone else looks at them.
  void parameters_changed();

  // Copies parameters, buffers and scales into the constants of the same names in `graph` (new Tensor objects).
  // UserError if a name is missing there or has another shape.
  void write_back(ir::Graph& graph);
  // Copies them from the constants of `graph` into the tensors here (which stay the same objects).
  void load_from(const ir::Graph& graph);

  // Calls `tap` with every value of `names` (empty: every floating-point value that a node makes, and the graph's
  // inputs), as float32 in NCHW logical order, as soon as it is computed. In kTrain the tensor is part of the autograd
  // graph: what a loss makes of it has a gradient. UserError for an unknown name. An empty function removes the tap.
  using Tap = std::function<void(const ir::Value&, const at::Tensor&)>;
  void set_tap(Tap tap, const std::vector<std::string>& names = {});

  // Replaces a value in every forward pass, kTrain and kEval: `replace` gets what was computed (float32 if floating)
  // and returns what later nodes, taps and the outputs see instead: of any shape that they take, on any device. In
  // kTrain its gradient goes to whatever the replacement was made of. A replacement of quantized values is not
  // quantized again. UserError for an unknown name. An empty function removes the override.
  using Override = std::function<at::Tensor(const at::Tensor& computed)>;
  void set_override(const std::string& value, Override replace);

  // The types of a forward pass over zeros with this batch size, node by node: of what flows out of it ("codes" where
  // these are quantized) and of its parameters (empty: it has none).
  struct NodeTypes {
    std::string name, op, output, parameters;
  };
  std::vector<NodeTypes> node_types(int64_t batch);

  // Frozen batch norm: kTrain uses the running statistics and leaves them alone.
  void set_batch_norm_frozen(bool frozen);
  // Averaging constants from now on (see ExecutorOptions).
  void set_averaging_constants(float activations, float weights);
  // Number of the next forward(kTrain); with the seed it determines Dropout. Counts up by itself; set it on resume.
  void set_step(int64_t step);
  int64_t step() const;

  const ExecutorOptions& options() const;
  // The executor's own copy of the graph (constants as they were at construction or load_from).
  const ir::Graph& graph() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Operators that Executor cannot run, with the reason; for the test that every kind is executed or rejected.
// nullptr: the kind is supported.
const char* unsupported_reason(ir::OpKind kind);

}  // namespace octet::train
