// What LSTM, GRU and RNN have in common: their attributes, the shapes of their tensors, and the way through the
// sequence. What a cell does in a step is its own.
#pragma once
#include <memory>
#include <vector>

#include "dense/gate_functions.h"
#include "dense/operators.h"

namespace octet::dense {

struct RecurrentKind {
  int64_t gates = 1;                        // rows of weights, in units of the hidden size
  std::vector<std::string> functions = {};  // of ONNX's names, where the attribute is absent
};

struct RecurrentSettings {
  int64_t hidden = 0;                   // 0: the weights say it
  std::vector<bool> reversed;           // for each direction
  std::vector<GateFunction> functions;  // of the first direction, then of the second
  float clip = 0;                       // of what enters the functions of gates; infinite where nothing is clipped
  bool batch_first = false;
  bool coupled = false;              // of LSTM: the forget gate is what the input gate leaves
  bool linear_before_reset = false;  // of GRU
};

// UserError for values that ONNX does not know.
RecurrentSettings recurrent_settings(const AttributeReader& attributes, const RecurrentKind& kind);

// One direction of a layer while it runs.
struct Direction {
  const Call& call;
  const RecurrentSettings& settings;
  const GateFunction* functions;
  int64_t batch, hidden;
  const float* weights;         // for the state: [gates * hidden, hidden]
  const float* recurrent_bias;  // [gates * hidden]; nullptr: there is none
  const float* peepholes;       // of LSTM: [3 * hidden]; nullptr: there are none
  Tensor state, memory;         // [batch, hidden]

  void clip(float* x, int64_t count) const;
};

// A sequence of the batch that has a step left, and what its gates get from the input there, biases included.
struct Row {
  int64_t sequence = 0;
  const float* input = nullptr;
};

class Cell {
 public:
  virtual ~Cell() = default;
  // Takes the states of these sequences one step further.
  virtual void step(const std::vector<Row>& rows) = 0;
};

// Runs a layer: Y, Y_h and Y_c, as ONNX orders them.
Tensors run_recurrent(const Call& call, const RecurrentKind& kind, std::unique_ptr<Cell> (*make)(Direction& direction));

}  // namespace octet::dense
