#include "dense/gate_functions.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "dense/functions.h"

namespace octet::dense {
namespace {

// A parameter that a function has: with its default, where the operator says one.
struct Parameter {
  std::optional<float> fallback;
};

struct Form {
  const char* name;
  float (*f)(float x, float alpha, float beta);
  std::optional<Parameter> alpha = std::nullopt, beta = std::nullopt;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"Sigmoid", [](float x, float, float) { return sigmoid(x); }},
      {"Tanh", [](float x, float, float) { return std::tanh(x); }},
      {"Relu", [](float x, float, float) { return x < 0 ? 0.0f : x; }},
      {"Affine", [](float x, float alpha, float beta) { return alpha * x + beta; }, Parameter{1.0f}, Parameter{0.0f}},
      {"LeakyRelu", [](float x, float alpha, float) { return x < 0 ? alpha * x : x; }, Parameter{0.01f}},
      {"ThresholdedRelu", [](float x, float alpha, float) { return x > alpha ? x : 0.0f; }, Parameter{1.0f}},
      {"ScaledTanh", [](float x, float alpha, float beta) { return alpha * std::tanh(beta * x); },
       Parameter{std::nullopt}, Parameter{std::nullopt}},
      {"HardSigmoid",
       [](float x, float alpha, float beta) { return std::fmax(0.0f, std::fmin(1.0f, alpha * x + beta)); },
       Parameter{0.2f}, Parameter{0.5f}},
      {"Elu", [](float x, float alpha, float) { return x < 0 ? alpha * std::expm1(x) : x; }, Parameter{1.0f}},
      {"Softsign", [](float x, float, float) { return x / (1 + std::fabs(x)); }},
      {"Softplus", [](float x, float, float) { return softplus(x); }},
  };
  return all;
}

const Form& form_of(const std::string& name) {
  std::string all;
  for (const Form& form : forms()) {
    if (name == form.name) return form;
    all += (all.empty() ? "" : ", ") + std::string(form.name);
  }
  fail("'", name, "' is no function of its gates; there are ", all);
}

// The next of `values` where the function has the parameter; 0 where not.
float take(const std::optional<Parameter>& parameter, const std::vector<float>& values, size_t& next,
           const std::string& name, const char* key) {
  if (!parameter) return 0;
  if (next < values.size()) return values[next++];
  require(parameter->fallback.has_value(), name, " has no default for its value in ", key, ", and the list has ended");
  return *parameter->fallback;
}

}  // namespace

std::vector<GateFunction> gate_functions(const std::vector<std::string>& names, const std::vector<float>& alphas,
                                         const std::vector<float>& betas) {
  size_t alpha = 0, beta = 0;
  std::vector<GateFunction> out;
  for (const std::string& name : names) {
    const Form& form = form_of(name);
    GateFunction& made = out.emplace_back();
    made.f_ = form.f;
    made.alpha_ = take(form.alpha, alphas, alpha, name, "activation_alpha");
    made.beta_ = take(form.beta, betas, beta, name, "activation_beta");
  }
  require(alpha == alphas.size(), "activation_alpha has ", alphas.size(), " values, and its functions take ", alpha);
  require(beta == betas.size(), "activation_beta has ", betas.size(), " values, and its functions take ", beta);
  return out;
}

}  // namespace octet::dense
