// LSTM, GRU and RNN against their formulas, one number after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "one_operation.h"

namespace octet {
namespace {

using dense::Shape;
using ::testing::HasSubstr;
using testing::OneOperation;

using Numbers = std::vector<double>;
using Function = std::function<double(double)>;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double tanh_of(double x) {
  return std::tanh(x);
}

struct Layer {
  std::string op;
  int64_t steps = 4, batch = 3, inputs = 2, hidden = 3;
  std::string direction = "forward";
  bool batch_first = false, bias = true, peepholes = false, coupled = false, linear_before_reset = false;
  double clip = 0;
  std::vector<int32_t> lengths = {};
  bool states = true;
  std::vector<Function> functions = {sigmoid, tanh_of, tanh_of};  // f, g, h
  dense::Attributes attributes = {};

  int64_t gates() const { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }
  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
};

std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& v : out) v = number(random);
  return out;
}

// The tensors of a layer and what becomes of them.
class Model {
 public:
  explicit Model(Layer layer) : l_(std::move(layer)) {
    const int64_t g = l_.gates() * l_.hidden, d = l_.directions();
    x_ = numbers(l_.steps * l_.batch * l_.inputs, 1);
    w_ = numbers(d * g * l_.inputs, 2);
    r_ = numbers(d * g * l_.hidden, 3);
    b_ = l_.bias ? numbers(d * 2 * g, 4) : std::vector<float>(static_cast<size_t>(d * 2 * g), 0.0f);
    h_ = l_.states ? numbers(d * l_.batch * l_.hidden, 5)
                   : std::vector<float>(static_cast<size_t>(d * l_.batch * l_.hidden), 0.0f);
    c_ = l_.states ? numbers(d * l_.batch * l_.hidden, 6) : h_;
    p_ =
        l_.peepholes ? numbers(d * 3 * l_.hidden, 7) : std::vector<float>(static_cast<size_t>(d * 3 * l_.hidden), 0.0f);
  }

  OneOperation operation() const {
    const int64_t g = l_.gates() * l_.hidden, d = l_.directions();
    OneOperation out(l_.op, l_.attributes, l_.op == "LSTM" ? 3 : 2);
    out.attribute("hidden_size", l_.hidden);
    out.attribute("direction", l_.direction);
    if (l_.batch_first) out.attribute("layout", int64_t{1});
    if (l_.coupled) out.attribute("input_forget", int64_t{1});
    if (l_.linear_before_reset) out.attribute("linear_before_reset", int64_t{1});
    if (l_.clip > 0) out.attribute("clip", static_cast<float>(l_.clip));
    out.with<float>(l_.batch_first ? Shape{l_.batch, l_.steps, l_.inputs} : Shape{l_.steps, l_.batch, l_.inputs}, x_);
    out.with<float>({d, g, l_.inputs}, w_).with<float>({d, g, l_.hidden}, r_);
    l_.bias ? out.with<float>({d, 2 * g}, b_) : out.without();
    l_.lengths.empty() ? out.without() : out.with<int32_t>({l_.batch}, l_.lengths);
    const Shape states = l_.batch_first ? Shape{l_.batch, d, l_.hidden} : Shape{d, l_.batch, l_.hidden};
    l_.states ? out.with<float>(states, h_) : out.without();
    if (l_.op != "LSTM") return out;
    l_.states ? out.with<float>(states, c_) : out.without();
    l_.peepholes ? out.with<float>({d, 3 * l_.hidden}, p_) : out.without();
    return out;
  }

  void expect_equal() const {
    const std::vector<dense::Tensor> got = operation().run(2);
    const int64_t n = l_.hidden, d = l_.directions();
    // Sums of so many terms below 1, through functions whose slope is at most 1, and through the states of few steps.
    const double tolerance = std::ldexp(static_cast<double>(l_.inputs + n + 8), -22);
    EXPECT_EQ(got[0].shape(), l_.batch_first ? (Shape{l_.batch, l_.steps, d, n}) : (Shape{l_.steps, d, l_.batch, n}));
    for (size_t i = 1; i < got.size(); ++i)
      EXPECT_EQ(got[i].shape(), l_.batch_first ? (Shape{l_.batch, d, n}) : (Shape{d, l_.batch, n}));
    for (int64_t k = 0; k < d; ++k)
      for (int64_t b = 0; b < l_.batch; ++b) {
        const int64_t length = l_.lengths.empty() ? l_.steps : l_.lengths[static_cast<size_t>(b)];
        Numbers h = given(h_, k, b), c = given(c_, k, b);
        std::vector<Numbers> y(static_cast<size_t>(l_.steps), Numbers(static_cast<size_t>(n), 0));
        for (int64_t s = 0; s < length; ++s) {
          const bool reversed = l_.direction == "reverse" || k == 1;
          const int64_t t = reversed ? length - 1 - s : s;
          step(k, t, b, h, c);
          y[static_cast<size_t>(t)] = h;
        }
        if (length == 0) h = c = Numbers(static_cast<size_t>(n), 0);
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t t = 0; t < l_.steps; ++t) {
            const int64_t at = l_.batch_first ? (b * l_.steps + t) * d + k : (t * d + k) * l_.batch + b;
            EXPECT_NEAR(value(got[0], at * n + i), y[static_cast<size_t>(t)][static_cast<size_t>(i)], tolerance)
                << l_.op << " direction " << k << " sequence " << b << " step " << t;
          }
          const int64_t state = (l_.batch_first ? b * d + k : k * l_.batch + b) * n + i;
          EXPECT_NEAR(value(got[1], state), h[static_cast<size_t>(i)], tolerance);
          if (got.size() > 2) {
            EXPECT_NEAR(value(got[2], state), c[static_cast<size_t>(i)], tolerance);
          }
        }
      }
  }

 private:
  static double value(const dense::Tensor& t, int64_t i) { return t.values<float>()[static_cast<size_t>(i)]; }
  static double at(const std::vector<float>& v, int64_t i) { return v[static_cast<size_t>(i)]; }

  Numbers given(const std::vector<float>& states, int64_t k, int64_t b) const {
    Numbers out;
    for (int64_t i = 0; i < l_.hidden; ++i)
      out.push_back(at(states, (l_.batch_first ? b * l_.directions() + k : k * l_.batch + b) * l_.hidden + i));
    return out;
  }
  double of_input(int64_t k, int64_t gate, int64_t i, int64_t t, int64_t b) const {
    const int64_t g = l_.gates() * l_.hidden, row = gate * l_.hidden + i;
    double sum = at(b_, k * 2 * g + row);
    for (int64_t j = 0; j < l_.inputs; ++j)
      sum += at(w_, (k * g + row) * l_.inputs + j) *
             at(x_, (l_.batch_first ? b * l_.steps + t : t * l_.batch + b) * l_.inputs + j);
    return sum;
  }
  double of_state(int64_t k, int64_t gate, int64_t i, const Numbers& h) const {
    const int64_t g = l_.gates() * l_.hidden, row = gate * l_.hidden + i;
    double sum = at(b_, k * 2 * g + g + row);
    for (int64_t j = 0; j < l_.hidden; ++j) sum += at(r_, (k * g + row) * l_.hidden + j) * h[static_cast<size_t>(j)];
    return sum;
  }
  double clipped(double x) const { return l_.clip > 0 ? std::clamp(x, -l_.clip, l_.clip) : x; }

  void step(int64_t k, int64_t t, int64_t b, Numbers& h, Numbers& c) const {
    const Numbers before = h;
    const auto gate = [&](int64_t which, int64_t i) {
      return of_input(k, which, i, t, b) + of_state(k, which, i, before);
    };
    const Function &f = l_.functions[0], &g = l_.functions[1];
    const auto peep = [&](int64_t which, int64_t i) { return at(p_, (k * 3 + which) * l_.hidden + i); };
    Numbers reset;
    for (int64_t i = 0; i < l_.hidden && l_.op == "GRU"; ++i)
      reset.push_back(f(clipped(gate(1, i))) * before[static_cast<size_t>(i)]);
    for (int64_t i = 0; i < l_.hidden; ++i) {
      double &hi = h[static_cast<size_t>(i)], &ci = c[static_cast<size_t>(i)];
      if (l_.op == "RNN") {
        hi = f(clipped(gate(0, i)));
      } else if (l_.op == "GRU") {
        const double update = f(clipped(gate(0, i)));
        const double from_state =
            l_.linear_before_reset ? f(clipped(gate(1, i))) * of_state(k, 2, i, before) : of_state(k, 2, i, reset);
        hi = (1 - update) * g(clipped(of_input(k, 2, i, t, b) + from_state)) + update * hi;
      } else {
        const double in = f(clipped(gate(0, i) + peep(0, i) * ci));
        const double forget = l_.coupled ? 1 - in : f(clipped(gate(2, i) + peep(2, i) * ci));
        ci = forget * ci + in * g(clipped(gate(3, i)));
        hi = f(clipped(gate(1, i) + peep(1, i) * ci)) * l_.functions[2](ci);
      }
    }
  }

  Layer l_;
  std::vector<float> x_, w_, r_, b_, h_, c_, p_;
};

Layer layer(const std::string& op, const std::string& direction = "forward") {
  Layer out{.op = op};
  out.direction = direction;
  if (op == "RNN") out.functions = {tanh_of, tanh_of, tanh_of};
  return out;
}

constexpr const char* kAll[] = {"LSTM", "GRU", "RNN"};

TEST(Recurrent, IsItsFormulaInAllDirectionsAndLayouts) {
  for (const char* op : kAll)
    for (const char* direction : {"forward", "reverse", "bidirectional"})
      for (const bool batch_first : {false, true})
        for (const bool bare : {false, true}) {
          Layer l = layer(op, direction);
          l.batch_first = batch_first, l.bias = l.states = !bare;
          Model(l).expect_equal();
        }
}

TEST(Recurrent, SequencesEndWhereTheirLengthsSay) {
  for (const char* op : kAll)
    for (const char* direction : {"forward", "reverse", "bidirectional"})
      for (const std::vector<int32_t>& lengths : {std::vector<int32_t>{2, 4, 0}, {0, 0, 0}, {4, 1, 3}})
        for (const bool batch_first : {false, true}) {
          Layer l = layer(op, direction);
          l.lengths = lengths, l.batch_first = batch_first;
          Model(l).expect_equal();
        }
}

TEST(Recurrent, TakesSizesThatFillNoTileAndNone) {
  for (const char* op : kAll)
    for (const auto& [steps, batch, inputs, hidden] :
         {std::tuple{1, 1, 1, 1}, {0, 2, 3, 2}, {2, 0, 3, 2}, {3, 2, 0, 2}, {3, 5, 70, 33}}) {
      Layer l = layer(op, "bidirectional");
      l.steps = steps, l.batch = batch, l.inputs = inputs, l.hidden = hidden;
      if (steps == 0) l.lengths = {0, 0};  // states of sequences without steps are 0
      Model(l).expect_equal();
    }
}

TEST(Recurrent, OptionsOfCells) {
  for (const bool coupled : {false, true})
    for (const bool peepholes : {false, true}) {
      Layer l = layer("LSTM", "bidirectional");
      l.coupled = coupled, l.peepholes = peepholes;
      Model(l).expect_equal();
      l.clip = 0.3;
      Model(l).expect_equal();
    }
  for (const double clip : {0.0, 0.3})
    for (const bool linear : {false, true}) {
      Layer l = layer("GRU", "reverse");
      l.linear_before_reset = linear, l.clip = clip;
      Model(l).expect_equal();
    }
}

TEST(Recurrent, FunctionsOfGates) {
  struct Row {
    std::string name;
    Function f;
    std::vector<float> alpha, beta;
  };
  const std::vector<Row> rows = {
      {"Relu", [](double x) { return std::max(x, 0.0); }, {}, {}},
      {"Affine", [](double x) { return 0.5 * x + 0.25; }, {0.5f}, {0.25f}},
      {"Affine", [](double x) { return x; }, {}, {}},
      {"LeakyRelu", [](double x) { return x < 0 ? static_cast<double>(0.01f) * x : x; }, {}, {}},
      {"ThresholdedRelu", [](double x) { return x > 0.25 ? x : 0; }, {0.25f}, {}},
      {"ScaledTanh", [](double x) { return 0.75 * std::tanh(0.5 * x); }, {0.75f}, {0.5f}},
      {"HardSigmoid", [](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); }, {0.25f}, {0.5f}},
      {"Elu", [](double x) { return x < 0 ? 0.5 * std::expm1(x) : x; }, {0.5f}, {}},
      {"Softsign", [](double x) { return x / (1 + std::abs(x)); }, {}, {}},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }, {}, {}},
  };
  for (const Row& row : rows) {
    Layer l = layer("LSTM");
    l.functions[1] = row.f;  // the cell's own, between Sigmoid and Tanh
    l.attributes["activations"] = std::vector<std::string>{"Sigmoid", row.name, "Tanh"};
    if (!row.alpha.empty()) l.attributes["activation_alpha"] = row.alpha;
    if (!row.beta.empty()) l.attributes["activation_beta"] = row.beta;
    SCOPED_TRACE(row.name);
    Model(l).expect_equal();
  }
}

TEST(Recurrent, HostileAttributesAreRefusedBeforeAnyRun) {
  const auto said = [](const std::string& op, const std::string& key, dense::Attribute value) {
    return Model(layer(op)).operation().attribute(key, std::move(value)).refusal();
  };
  for (const char* op : kAll) {
    for (const int64_t hidden : {int64_t{0}, int64_t{-3}, int64_t{1} << 40, std::numeric_limits<int64_t>::min()})
      EXPECT_THAT(said(op, "hidden_size", hidden), HasSubstr("expected 1 to 1048576")) << op;
    EXPECT_THAT(said(op, "hidden_size", 3.0f), HasSubstr("'hidden_size' should be an integer"));
    EXPECT_THAT(said(op, "direction", std::string("backwards")),
                HasSubstr("direction is 'backwards', expected forward, reverse or bidirectional"));
    EXPECT_THAT(said(op, "direction", int64_t{1}), HasSubstr("'direction' should be a string"));
    EXPECT_THAT(said(op, "layout", int64_t{2}), HasSubstr("layout is 2"));
    EXPECT_THAT(said(op, "clip", -1.0f), HasSubstr("clip is -1"));
    EXPECT_THAT(said(op, "clip", std::nanf("")), HasSubstr("clip is nan"));
    EXPECT_THAT(said(op, "activations", std::vector<std::string>(7, "Tanh")),
                HasSubstr("activations names 7 functions"));
    EXPECT_THAT(said(op, "activations", std::string("Tanh")), HasSubstr("should be a list of strings"));
    EXPECT_THAT(said(op, "activation_alpha", std::vector<float>{1}),
                HasSubstr("activation_alpha has 1 values, and its functions take 0"));
    EXPECT_THAT(said(op, "peephole", int64_t{1}), HasSubstr("'peephole' is not supported"));
  }
  EXPECT_THAT(said("RNN", "activations", std::vector<std::string>{"Sine"}),
              HasSubstr("'Sine' is no function of its gates; there are Sigmoid, Tanh"));
  EXPECT_THAT(said("RNN", "activations", std::vector<std::string>{"ScaledTanh"}), HasSubstr("has no default"));
  EXPECT_THAT(said("GRU", "input_forget", int64_t{1}), HasSubstr("'input_forget' is not supported"));
}

TEST(Recurrent, ShapesThatDoNotFitAreRefused) {
  const auto zeros = [](const Shape& s) {
    return std::vector<float>(static_cast<size_t>(dense::element_count(s)), 0.0f);
  };
  const auto said = [&](const std::vector<Shape>& inputs) {
    OneOperation lstm("LSTM", {}, 3);
    for (const Shape& shape : inputs) lstm.with<float>(shape, zeros(shape));
    return lstm.failure();
  };
  EXPECT_EQ(said({{2, 1, 3}, {1, 8, 3}, {1, 8, 2}}), "");
  EXPECT_THAT(said({{2, 3}, {1, 8, 3}, {1, 8, 2}}), HasSubstr("should have three dimensions"));
  EXPECT_THAT(said({{2, 1, 3}, {1, 8, 4}, {1, 8, 2}}), HasSubstr("W is float32[1, 8, 4], expected float32[1, 8, 3]"));
  EXPECT_THAT(said({{2, 1, 3}, {2, 8, 3}, {2, 8, 2}}), HasSubstr("W is float32[2, 8, 3], expected float32[1, 8, 3]"));
  EXPECT_THAT(said({{2, 1, 3}, {1, 8, 3}, {1, 9, 2}}), HasSubstr("R is float32[1, 9, 2], expected float32[1, 8, 2]"));
  EXPECT_THAT(said({{2, 1, 3}, {1, 0, 3}, {1, 0, 0}}), HasSubstr("is for a hidden size of 0"));
  EXPECT_THAT(said({{2, 1, 3}, {1, 8, 3}, {1, 8, 2}, {1, 8}}),
              HasSubstr("B is float32[1, 8], expected float32[1, 16]"));
  const auto with_lengths = [&](const Shape& shape, const std::vector<int32_t>& lengths) {
    OneOperation lstm("LSTM", {}, 1);
    for (const Shape& s : {Shape{2, 1, 3}, Shape{1, 8, 3}, Shape{1, 8, 2}}) lstm.with<float>(s, zeros(s));
    return lstm.without().with<int32_t>(shape, lengths).failure();
  };
  EXPECT_EQ(with_lengths({1}, {2}), "");
  EXPECT_THAT(with_lengths({1}, {3}), HasSubstr("a sequence has the length 3, expected 0 to 2"));
  EXPECT_THAT(with_lengths({1}, {-1}), HasSubstr("a sequence has the length -1"));
  EXPECT_THAT(with_lengths({2}, {1, 1}), HasSubstr("sequence_lens has the shape [2], expected [1]"));
  OneOperation typed("LSTM", {}, 1);
  for (const Shape& s : {Shape{2, 1, 3}, Shape{1, 8, 3}, Shape{1, 8, 2}, Shape{1, 16}, Shape{1}})
    typed.with<float>(s, zeros(s));
  EXPECT_THAT(typed.refusal(), HasSubstr("input 4 should hold integers"));
}

TEST(Recurrent, ComesBackFromBytes) {
  Layer l = layer("LSTM", "bidirectional");
  l.attributes["activations"] = std::vector<std::string>{"Sigmoid", "Tanh", "Elu", "Sigmoid", "Tanh", "Affine"};
  l.attributes["activation_alpha"] = std::vector<float>{0.5f, 0.25f};
  const dense::Program program = Model(l).operation().program();
  const std::string bytes = program_bytes(program);
  const dense::Program again = dense::parse_program(std::as_bytes(std::span(bytes)));
  dense::validate(again);
  EXPECT_EQ(again.operations[0].attributes, program.operations[0].attributes);
  EXPECT_EQ(program_bytes(again), bytes);
  const auto weighted = dense::weighted_operations(again);
  ASSERT_EQ(weighted.size(), 1u);
  EXPECT_EQ(weighted[0].parameters, 2 * 12 * (2 + 3 + 2));
}

}  // namespace
}  // namespace octet
