// Activations, each a function of one float.
#include <cmath>

#include "dense/functions.h"
#include "dense/operators.h"

namespace octet::dense {
namespace {

Tensors thresholded_relu(const Call& call) {
  const float alpha = call.float_attribute("alpha", 1);
  return map_floats(call, [=](float x) { return x > alpha ? x : 0.0f; });
}

Tensors leaky_relu(const Call& call) {
  const float alpha = call.float_attribute("alpha", 0.01f);
  return map_floats(call, [=](float x) { return x < 0 ? alpha * x : x; });
}

Tensors elu(const Call& call) {
  const float alpha = call.float_attribute("alpha", 1);
  return map_floats(call, [=](float x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

Tensors celu(const Call& call) {
  const float alpha = call.float_attribute("alpha", 1);
  require(alpha != 0, "alpha is 0");
  return map_floats(call, [=](float x) { return x < 0 ? alpha * std::expm1(x / alpha) : x; });
}

Tensors selu(const Call& call) {
  const float alpha = call.float_attribute("alpha", 1.67326319217681884765625f),
              gamma = call.float_attribute("gamma", 1.05070102214813232421875f);
  return map_floats(call, [=](float x) { return gamma * (x <= 0 ? alpha * std::expm1(x) : x); });
}

Tensors swish(const Call& call) {
  const float alpha = call.float_attribute("alpha", 1);
  return map_floats(call, [=](float x) { return x * sigmoid(alpha * x); });
}

Tensors shrink(const Call& call) {
  const float bias = call.float_attribute("bias", 0), lambda = call.float_attribute("lambd", 0.5f);
  return map_floats(call, [=](float x) { return x < -lambda ? x + bias : x > lambda ? x - bias : 0.0f; });
}

bool is_tanh_form(const AttributeReader& attributes) {
  const std::string form = attributes.string_attribute("approximate", "none");
  require(form == "none" || form == "tanh", "approximate is '", form, "', expected none or tanh");
  return form == "tanh";
}

Tensors gelu(const Call& call) {
  constexpr float kRootOfHalf = 0.707106781186547524f, kRootOfTwoOverPi = 0.797884560802865356f;
  if (is_tanh_form(call))
    return map_floats(
        call, [=](float x) { return 0.5f * x * (1 + std::tanh(kRootOfTwoOverPi * (x + 0.044715f * x * x * x))); });
  return map_floats(call, [=](float x) { return 0.5f * x * (1 + std::erf(x * kRootOfHalf)); });
}

Tensors hard_sigmoid(const Call& call) {
  const float alpha = call.float_attribute("alpha", 0.2f), beta = call.float_attribute("beta", 0.5f);
  return map_floats(call, [=](float x) { return std::fmax(0.0f, std::fmin(1.0f, alpha * x + beta)); });
}

float hard_swish(float x) {
  return x * std::fmax(0.0f, std::fmin(1.0f, x / 6 + 0.5f));
}

float mish(float x) {
  return x * std::tanh(softplus(x));
}

float softsign(float x) {
  return x / (1 + std::fabs(x));
}

template <float (*F)(float)>
Tensors activation(const Call& call) {
  return map_floats(call, F);
}

Operator activation_row(const char* name, Function run, std::vector<const char*> attributes = {},
                        void (*check)(const AttributeReader&) = nullptr) {
  return {name, run, 1, 1, 1, Typing::kFirst, std::move(attributes), check};
}

}  // namespace

std::vector<Operator> activation_operators() {
  return {activation_row("Sigmoid", activation<sigmoid>),
          activation_row("Softplus", activation<softplus>),
          activation_row("Softsign", activation<softsign>),
          activation_row("HardSwish", activation<hard_swish>),
          activation_row("Mish", activation<mish>),
          activation_row("ThresholdedRelu", thresholded_relu, {"alpha"}),
          activation_row("LeakyRelu", leaky_relu, {"alpha"}),
          activation_row("Elu", elu, {"alpha"}),
          activation_row("Celu", celu, {"alpha"}),
          activation_row("Selu", selu, {"alpha", "gamma"}),
          activation_row("Swish", swish, {"alpha"}),
          activation_row("Shrink", shrink, {"bias", "lambd"}),
          activation_row("HardSigmoid", hard_sigmoid, {"alpha", "beta"}),
          activation_row("Gelu", gelu, {"approximate"}, [](const AttributeReader& a) { is_tanh_form(a); })};
}

}  // namespace octet::dense
