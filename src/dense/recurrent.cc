#include "dense/recurrent.h"

#include <algorithm>
#include <limits>

#include "dense/matrix_product.h"

namespace octet::dense {
namespace {

constexpr int64_t kWidest = 1 << 20;

}  // namespace

RecurrentSettings recurrent_settings(const AttributeReader& attributes, const RecurrentKind& kind) {
  RecurrentSettings out;
  out.hidden = attributes.int_attribute("hidden_size", 0);
  require(!attributes.attribute("hidden_size") || (out.hidden > 0 && out.hidden <= kWidest), "hidden_size is ",
          out.hidden, ", expected 1 to ", kWidest);
  const std::string direction = attributes.string_attribute("direction", "forward");
  if (direction == "bidirectional")
    out.reversed = {false, true};
  else if (direction == "forward" || direction == "reverse")
    out.reversed = {direction == "reverse"};
  else
    fail("direction is '", direction, "', expected forward, reverse or bidirectional");
  const int64_t layout = attributes.int_attribute("layout", 0);
  require(layout == 0 || layout == 1, "layout is ", layout, ", expected 0 or 1");
  out.batch_first = layout == 1;
  out.clip = attributes.float_attribute("clip", std::numeric_limits<float>::infinity());
  require(out.clip > 0, "clip is ", out.clip, ", expected a number above 0");
  out.coupled = attributes.int_attribute("input_forget", 0) != 0;
  out.linear_before_reset = attributes.int_attribute("linear_before_reset", 0) != 0;
  std::vector<std::string> names;
  for (size_t d = 0; d < out.reversed.size(); ++d)
    names.insert(names.end(), kind.functions.begin(), kind.functions.end());
  if (const auto given = attributes.strings_attribute("activations"); given && !given->empty()) {
    require(given->size() == names.size(), "activations names ", given->size(), " functions, expected ", names.size(),
            " for ", out.reversed.size(), " direction", out.reversed.size() > 1 ? "s" : "");
    names = *given;
  }
  out.functions = gate_functions(names, attributes.floats_attribute("activation_alpha").value_or(std::vector<float>{}),
                                 attributes.floats_attribute("activation_beta").value_or(std::vector<float>{}));
  return out;
}

void Direction::clip(float* x, int64_t count) const {
  if (settings.clip == std::numeric_limits<float>::infinity()) return;
  for (int64_t i = 0; i < count; ++i) x[i] = std::clamp(x[i], -settings.clip, settings.clip);
}

namespace {

struct Sizes {
  int64_t steps, batch, inputs, directions, gates, hidden;
};

// The elements of an input that has to have this shape; nullptr where it is absent.
const float* floats_of(const Call& call, size_t input, const char* name, const Shape& shape) {
  const Tensor* t = call.optional(input);
  if (!t) return nullptr;
  require(t->type() == Type::kFloat && t->shape() == shape, name, " is ", type_name(t->type()), shape_text(t->shape()),
          ", expected float32", shape_text(shape));
  return t->values<float>().data();
}

Sizes sizes_of(const Call& call, const RecurrentSettings& settings, const RecurrentKind& kind) {
  const Tensor &x = call.input(0), &weights = call.input(1), &recurrent = call.input(2);
  require(x.rank() == 3 && weights.rank() == 3 && recurrent.rank() == 3, "X ", shape_text(x.shape()), ", W ",
          shape_text(weights.shape()), " and R ", shape_text(recurrent.shape()), " should have three dimensions");
  Sizes out{x.shape()[0], x.shape()[1],
            x.shape()[2], static_cast<int64_t>(settings.reversed.size()),
            kind.gates,   settings.hidden > 0 ? settings.hidden : recurrent.shape()[2]};
  if (settings.batch_first) std::swap(out.steps, out.batch);
  require(out.hidden > 0 && out.hidden <= kWidest, "R ", shape_text(recurrent.shape()), " is for a hidden size of ",
          out.hidden, ", expected 1 to ", kWidest);
  floats_of(call, 0, "X", x.shape());
  floats_of(call, 1, "W", {out.directions, out.gates * out.hidden, out.inputs});
  floats_of(call, 2, "R", {out.directions, out.gates * out.hidden, out.hidden});
  return out;
}

// How many steps each sequence of the batch has.
std::vector<int64_t> lengths_of(const Call& call, const Sizes& sizes) {
  std::vector<int64_t> out(static_cast<size_t>(sizes.batch), sizes.steps);
  if (!call.optional(4)) return out;
  require(call.input(4).shape() == Shape{sizes.batch}, "sequence_lens has the shape ",
          shape_text(call.input(4).shape()), ", expected [", sizes.batch, "]");
  out = call.ints(4);
  for (const int64_t length : out)
    require(length >= 0 && length <= sizes.steps, "a sequence has the length ", length, ", expected 0 to ",
            sizes.steps);
  return out;
}

// What all gates get from the input in all steps, in one product: [steps, batch, gates * hidden] of X in its own order
// of axes. Biases are added, but not that of the recurrent product of a gate that GRU resets with it.
Tensor input_gates(const Call& call, const Sizes& sizes, const RecurrentSettings& settings, const float* weights,
                   const float* bias) {
  const int64_t width = sizes.gates * sizes.hidden, rows = sizes.steps * sizes.batch;
  Tensor turned = call.memory().make<float>({sizes.inputs, width});
  transpose(weights, turned.mutable_values<float>().data(), width, sizes.inputs);
  Tensor out = call.memory().make<float>({rows, width});
  float* to = out.mutable_values<float>().data();
  matrix_product(call.input(0).values<float>().data(), turned.values<float>().data(), to, rows, sizes.inputs, width,
                 call.threads());
  if (!bias) return out;
  const int64_t both = settings.linear_before_reset ? width - sizes.hidden : width;
  std::vector<float> sum(bias, bias + width);
  for (int64_t i = 0; i < both; ++i) sum[static_cast<size_t>(i)] += bias[width + i];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < width; ++i) to[r * width + i] += sum[static_cast<size_t>(i)];
  return out;
}

// Copies states of one direction between [batch, hidden] and the order of the layer's tensors.
class States {
 public:
  States(const Sizes& sizes, bool batch_first) : sizes_(sizes), batch_first_(batch_first) {}
  Shape shape() const {
    return batch_first_ ? Shape{sizes_.batch, sizes_.directions, sizes_.hidden}
                        : Shape{sizes_.directions, sizes_.batch, sizes_.hidden};
  }
  Tensor first(const Call& call, const float* given, int64_t direction) const {
    Tensor out = call.memory().make<float>({sizes_.batch, sizes_.hidden});
    const auto to = out.mutable_values<float>();
    std::fill(to.begin(), to.end(), 0.0f);
    for (int64_t b = 0; given && b < sizes_.batch; ++b)
      std::copy_n(given + place(b, direction), sizes_.hidden, to.data() + b * sizes_.hidden);
    return out;
  }
  // The state of a sequence without steps is 0, as ONNX Runtime has it, and not what it began with.
  void last(const Tensor& states, const std::vector<int64_t>& lengths, int64_t direction, Tensor& out) const {
    for (int64_t b = 0; b < sizes_.batch; ++b) {
      float* to = out.mutable_values<float>().data() + place(b, direction);
      if (lengths[static_cast<size_t>(b)] == 0)
        std::fill_n(to, sizes_.hidden, 0.0f);
      else
        std::copy_n(states.values<float>().data() + b * sizes_.hidden, sizes_.hidden, to);
    }
  }

 private:
  int64_t place(int64_t b, int64_t direction) const {
    return (batch_first_ ? b * sizes_.directions + direction : direction * sizes_.batch + b) * sizes_.hidden;
  }
  const Sizes& sizes_;
  bool batch_first_;
};

}  // namespace

Tensors run_recurrent(const Call& call, const RecurrentKind& kind,
                      std::unique_ptr<Cell> (*make)(Direction& direction)) {
  const RecurrentSettings settings = recurrent_settings(call, kind);
  const Sizes sizes = sizes_of(call, settings, kind);
  const auto [steps, batch, inputs, directions, gates, hidden] = sizes;
  const int64_t width = gates * hidden;
  const States states(sizes, settings.batch_first);
  const float* bias = floats_of(call, 3, "B", {directions, 2 * width});
  const float* first_state = floats_of(call, 5, "initial_h", states.shape());
  const float* first_memory = floats_of(call, 6, "initial_c", states.shape());
  const float* peepholes = floats_of(call, 7, "P", {directions, 3 * hidden});
  const std::vector<int64_t> lengths = lengths_of(call, sizes);
  Tensor y = call.memory().make<float>(settings.batch_first ? Shape{batch, steps, directions, hidden}
                                                            : Shape{steps, directions, batch, hidden});
  float* to = y.mutable_values<float>().data();
  std::fill(to, to + y.size(), 0.0f);  // behind the end of a sequence
  Tensor last_state = call.memory().make<float>(states.shape()),
         last_memory = call.memory().make<float>(states.shape());
  std::vector<Row> rows;
  for (int64_t d = 0; d < directions; ++d) {
    const float* weights = call.input(1).values<float>().data() + d * width * inputs;
    const Tensor projected = input_gates(call, sizes, settings, weights, bias ? bias + d * 2 * width : nullptr);
    const float* input = projected.values<float>().data();
    Direction direction{call,
                        settings,
                        settings.functions.data() + d * static_cast<int64_t>(kind.functions.size()),
                        batch,
                        hidden,
                        call.input(2).values<float>().data() + d * width * hidden,
                        bias ? bias + (d * 2 + 1) * width : nullptr,
                        peepholes ? peepholes + d * 3 * hidden : nullptr,
                        states.first(call, first_state, d),
                        states.first(call, first_memory, d)};
    const std::unique_ptr<Cell> cell = make(direction);
    const auto step_of = [&](int64_t s, int64_t b) {
      return settings.reversed[static_cast<size_t>(d)] ? lengths[static_cast<size_t>(b)] - 1 - s : s;
    };
    for (int64_t s = 0; s < steps; ++s) {
      rows.clear();
      for (int64_t b = 0; b < batch; ++b)
        if (s < lengths[static_cast<size_t>(b)]) {
          const int64_t t = step_of(s, b);
          rows.push_back({b, input + (settings.batch_first ? b * steps + t : t * batch + b) * width});
        }
      if (rows.empty()) break;
      cell->step(rows);
      for (const Row& row : rows) {
        const int64_t t = step_of(s, row.sequence);
        const int64_t at = settings.batch_first ? (row.sequence * steps + t) * directions + d
                                                : (t * directions + d) * batch + row.sequence;
        std::copy_n(direction.state.values<float>().data() + row.sequence * hidden, hidden, to + at * hidden);
      }
    }
    states.last(direction.state, lengths, d, last_state);
    states.last(direction.memory, lengths, d, last_memory);
  }
  return {y, last_state, last_memory};
}

}  // namespace octet::dense
