// LSTM, GRU and RNN: what their cells do in a step.
#include <algorithm>

#include "dense/matrix_product.h"
#include "dense/recurrent.h"

namespace octet::dense {
namespace {

const RecurrentKind kLstm{4, {"Sigmoid", "Tanh", "Tanh"}}, kGru{3, {"Sigmoid", "Tanh"}}, kRnn{1, {"Tanh"}};

// The product of the states with the weights of some gates, for the whole batch.
class StateProduct {
 public:
  StateProduct(const Direction& direction, int64_t first_gate, int64_t gates)
      : direction_(direction), width_(gates * direction.hidden) {
    Memory& memory = direction.call.memory();
    weights_ = memory.make<float>({direction.hidden, width_});
    transpose(direction.weights + first_gate * direction.hidden * direction.hidden,
              weights_.mutable_values<float>().data(), width_, direction.hidden);
    sums_ = memory.make<float>({direction.batch, width_});
  }
  void compute(const Tensor& states) {
    matrix_product(states.values<float>().data(), weights_.values<float>().data(), sums_.mutable_values<float>().data(),
                   direction_.batch, direction_.hidden, width_, direction_.call.threads());
  }
  float* row(int64_t sequence) { return sums_.mutable_values<float>().data() + sequence * width_; }

 private:
  const Direction& direction_;
  int64_t width_;
  Tensor weights_, sums_;
};

float* line(Tensor& states, int64_t sequence) {
  return states.mutable_values<float>().data() + sequence * states.shape()[1];
}

class RnnCell : public Cell {
 public:
  explicit RnnCell(Direction& direction) : d_(direction), product_(direction, 0, 1) {}
  void step(const std::vector<Row>& rows) override {
    product_.compute(d_.state);
    for (const Row& row : rows) {
      float* h = line(d_.state, row.sequence);
      const float* sum = product_.row(row.sequence);
      for (int64_t i = 0; i < d_.hidden; ++i) h[i] = row.input[i] + sum[i];
      d_.clip(h, d_.hidden);
      d_.functions[0].apply(h, d_.hidden);
    }
  }

 private:
  Direction& d_;
  StateProduct product_;
};

// Gates: update, reset, new.
class GruCell : public Cell {
 public:
  explicit GruCell(Direction& direction)
      : d_(direction),
        gates_(direction, 0, 2),
        new_(direction, 2, 1),
        reset_(direction.call.memory().make<float>(direction.state.shape())) {
    std::fill(reset_.mutable_values<float>().begin(), reset_.mutable_values<float>().end(), 0.0f);
  }
  void step(const std::vector<Row>& rows) override {
    const int64_t n = d_.hidden;
    gates_.compute(d_.state);
    for (const Row& row : rows) {
      float* gates = gates_.row(row.sequence);
      for (int64_t i = 0; i < 2 * n; ++i) gates[i] += row.input[i];
      d_.clip(gates, 2 * n);
      d_.functions[0].apply(gates, 2 * n);
      const float* h = line(d_.state, row.sequence);
      float* reset = line(reset_, row.sequence);
      for (int64_t i = 0; i < n; ++i) reset[i] = gates[n + i] * h[i];
    }
    new_.compute(d_.settings.linear_before_reset ? d_.state : reset_);
    for (const Row& row : rows) {
      const float* gates = gates_.row(row.sequence);
      float* made = new_.row(row.sequence);
      if (d_.settings.linear_before_reset)
        for (int64_t i = 0; i < n; ++i)
          made[i] = gates[n + i] * (made[i] + (d_.recurrent_bias ? d_.recurrent_bias[2 * n + i] : 0));
      for (int64_t i = 0; i < n; ++i) made[i] += row.input[2 * n + i];
      d_.clip(made, n);
      d_.functions[1].apply(made, n);
      float* h = line(d_.state, row.sequence);
      for (int64_t i = 0; i < n; ++i) h[i] = (1 - gates[i]) * made[i] + gates[i] * h[i];
    }
  }

 private:
  Direction& d_;
  StateProduct gates_, new_;
  Tensor reset_;
};

// Gates: input, output, forget, new.
class LstmCell : public Cell {
 public:
  explicit LstmCell(Direction& direction)
      : d_(direction), product_(direction, 0, 4), made_(static_cast<size_t>(direction.hidden)) {}
  void step(const std::vector<Row>& rows) override {
    const int64_t n = d_.hidden;
    product_.compute(d_.state);
    for (const Row& row : rows) {
      float* in = product_.row(row.sequence);
      for (int64_t i = 0; i < 4 * n; ++i) in[i] += row.input[i];
      float *out = in + n, *forget = in + 2 * n, *made = in + 3 * n;
      float* c = line(d_.memory, row.sequence);
      peep(in, c, 0);
      gate(in, 0);
      if (d_.settings.coupled) {
        for (int64_t i = 0; i < n; ++i) forget[i] = 1 - in[i];
      } else {
        peep(forget, c, 2);
        gate(forget, 0);
      }
      gate(made, 1);
      for (int64_t i = 0; i < n; ++i) c[i] = forget[i] * c[i] + in[i] * made[i];
      peep(out, c, 1);
      gate(out, 0);
      std::copy_n(c, n, made_.data());
      d_.functions[2].apply(made_.data(), n);
      float* h = line(d_.state, row.sequence);
      for (int64_t i = 0; i < n; ++i) h[i] = out[i] * made_[static_cast<size_t>(i)];
    }
  }

 private:
  // Peepholes lie in the order input, output, forget.
  void peep(float* gate, const float* c, int64_t which) const {
    if (!d_.peepholes) return;
    const float* weights = d_.peepholes + which * d_.hidden;
    for (int64_t i = 0; i < d_.hidden; ++i) gate[i] += weights[i] * c[i];
  }
  void gate(float* x, size_t function) const {
    d_.clip(x, d_.hidden);
    d_.functions[function].apply(x, d_.hidden);
  }

  Direction& d_;
  StateProduct product_;
  std::vector<float> made_;
};

template <const RecurrentKind& kKind, typename Made>
Operator row(const char* name, size_t most_inputs, size_t most_outputs, const char* own_attribute) {
  Operator out{name,
               [](const Call& call) {
                 return run_recurrent(call, kKind, [](Direction& direction) -> std::unique_ptr<Cell> {
                   return std::make_unique<Made>(direction);
                 });
               },
               3,
               most_inputs,
               most_outputs,
               Typing::kFloat};
  out.attributes = {"hidden_size", "direction", "layout", "clip", "activations", "activation_alpha", "activation_beta"};
  if (own_attribute) out.attributes.push_back(own_attribute);
  out.check = [](const AttributeReader& attributes) { recurrent_settings(attributes, kKind); };
  return out;
}

}  // namespace

std::vector<Operator> recurrent_operators() {
  return {row<kLstm, LstmCell>("LSTM", 8, 3, "input_forget"), row<kGru, GruCell>("GRU", 6, 2, "linear_before_reset"),
          row<kRnn, RnnCell>("RNN", 6, 2, nullptr)};
}

}  // namespace octet::dense
