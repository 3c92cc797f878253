// Functions of one and of two numbers.
#include <cmath>
#include <limits>
#include <type_traits>

#include "dense/operators.h"

namespace octet::dense {
namespace {

template <typename T>
constexpr bool kIsFloat = std::is_same_v<T, float>;
template <typename T>
constexpr bool kIsBool = std::is_same_v<T, bool>;

[[noreturn]] void no_type(Type type) {
  fail("is not there for ", type_name(type));
}

// f(x) of every number, floats and integers.
template <typename F>
Tensors numbers(const Call& call, F f) {
  const Tensor& x = call.input(0);
  Tensor out = call.memory().make(x.type(), x.shape());
  dispatch(x.type(), [&]<typename T>() {
    if constexpr (kIsBool<T>) {
      no_type(x.type());
    } else {
      const auto from = x.values<T>();
      const auto to = out.mutable_values<T>();
      for (size_t i = 0; i < from.size(); ++i) to[i] = f(from[i]);
    }
  });
  return {out};
}

template <typename To, typename T, typename F>
void zip_as(const Tensor& a, const Tensor& b, Tensor& out, F f) {
  const auto x = a.values<T>(), y = b.values<T>();
  const auto to = out.mutable_values<To>();
  if (a.shape() == b.shape()) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = f(x[i], y[i]);
  } else if (b.size() == 1) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = f(x[i], y[0]);
  } else {
    walk(out.shape(), {broadcast_steps(a.shape(), out.shape()), broadcast_steps(b.shape(), out.shape())},
         [&](int64_t i, const std::vector<int64_t>& at) {
           to[static_cast<size_t>(i)] = f(x[static_cast<size_t>(at[0])], y[static_cast<size_t>(at[1])]);
         });
  }
}

void require_one_type(const Tensor& a, const Tensor& b) {
  require(a.type() == b.type(), "one input holds ", type_name(a.type()), ", the other ", type_name(b.type()));
}

template <typename F>
Tensors arithmetic(const Call& call, F f) {
  const Tensor &a = call.input(0), &b = call.input(1);
  require_one_type(a, b);
  Tensor out = call.memory().make(a.type(), broadcast(a.shape(), b.shape()));
  dispatch(a.type(), [&]<typename T>() {
    if constexpr (kIsBool<T>)
      no_type(a.type());
    else
      zip_as<T, T>(a, b, out, f);
  });
  return {out};
}

template <typename F>
Tensors comparison(const Call& call, F f) {
  const Tensor &a = call.input(0), &b = call.input(1);
  require_one_type(a, b);
  Tensor out = call.memory().make<bool>(broadcast(a.shape(), b.shape()));
  dispatch(a.type(), [&]<typename T>() { zip_as<bool, T>(a, b, out, f); });
  return {out};
}

template <typename F>
Tensors logic(const Call& call, F f) {
  const Tensor &a = call.input(0), &b = call.input(1);
  if (a.type() != Type::kBool || b.type() != Type::kBool) no_type(a.type() != Type::kBool ? a.type() : b.type());
  Tensor out = call.memory().make<bool>(broadcast(a.shape(), b.shape()));
  zip_as<bool, bool>(a, b, out, f);
  return {out};
}

// Integers wrap as those of the machine do.
template <typename T>
using Wrapping = std::conditional_t<kIsFloat<T>, float, std::make_unsigned_t<std::conditional_t<kIsFloat<T>, int, T>>>;

template <typename T>
T quotient(T a, T b) {
  if constexpr (kIsFloat<T>) {
    return a / b;
  } else {
    if (b == 0) fail("a division by zero");
    return b == -1 ? static_cast<T>(0 - static_cast<Wrapping<T>>(a)) : static_cast<T>(a / b);
  }
}

template <typename T>
T remainder_of(T a, T b, bool fmod) {
  if constexpr (kIsFloat<T>) {
    if (fmod) return std::fmod(a, b);
    fail("Mod of floats needs fmod");
  } else {
    if (b == 0) fail("a division by zero");
    const T rest = b == -1 ? T{0} : static_cast<T>(a % b);
    return !fmod && rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  }
}

Tensors mod(const Call& call) {
  const bool fmod = call.int_attribute("fmod", 0) != 0;
  return arithmetic(call, [=]<typename T>(T a, T b) { return remainder_of(a, b, fmod); });
}

template <typename T>
T power(T base, double exponent) {
  const double value = std::pow(static_cast<double>(base), exponent);
  if constexpr (kIsFloat<T>) {
    return static_cast<float>(value);
  } else {
    constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
    return value >= kLow && value < -kLow ? static_cast<T>(value) : T{0};
  }
}

// The exponent may have another type.
Tensors pow(const Call& call) {
  const Tensor &a = call.input(0), &b = call.input(1);
  Tensor out = call.memory().make(a.type(), broadcast(a.shape(), b.shape()));
  dispatch(a.type(), [&]<typename T>() {
    dispatch(b.type(), [&]<typename E>() {
      if constexpr (kIsBool<T> || kIsBool<E>) {
        no_type(Type::kBool);
      } else {
        const auto x = a.values<T>();
        const auto y = b.values<E>();
        const auto to = out.mutable_values<T>();
        walk(out.shape(), {broadcast_steps(a.shape(), out.shape()), broadcast_steps(b.shape(), out.shape())},
             [&](int64_t i, const std::vector<int64_t>& at) {
               to[static_cast<size_t>(i)] =
                   power(x[static_cast<size_t>(at[0])], static_cast<double>(y[static_cast<size_t>(at[1])]));
             });
      }
    });
  });
  return {out};
}

Tensors negated(const Call& call) {
  const Tensor& x = call.input(0);
  if (x.type() != Type::kBool) no_type(x.type());
  Tensor out = call.memory().make<bool>(x.shape());
  for (size_t i = 0; i < x.values<bool>().size(); ++i) out.mutable_values<bool>()[i] = !x.values<bool>()[i];
  return {out};
}

template <typename F>
Tensors test(const Call& call, F f) {
  const Tensor& x = call.input(0);
  if (x.type() != Type::kFloat) no_type(x.type());
  Tensor out = call.memory().make<bool>(x.shape());
  for (size_t i = 0; i < x.values<float>().size(); ++i) out.mutable_values<bool>()[i] = f(x.values<float>()[i]);
  return {out};
}

Tensors is_inf(const Call& call) {
  const bool negative = call.int_attribute("detect_negative", 1) != 0;
  const bool positive = call.int_attribute("detect_positive", 1) != 0;
  return test(call, [=](float x) { return std::isinf(x) && (x < 0 ? negative : positive); });
}

template <float (*F)(float)>
Tensors function(const Call& call) {
  return map_floats(call, F);
}

Operator of_one(const char* name, Function run) {
  return {name, run};
}

Operator of_two(const char* name, Function run, std::vector<const char*> attributes = {}) {
  return {name, run, 2, 2, 1, Typing::kFirst, std::move(attributes)};
}

Operator compared(const char* name, Function run) {
  return {name, run, 2, 2, 1, Typing::kBool};
}

}  // namespace

std::vector<Operator> elementwise_operators() {
  return {
      of_one("Exp", function<std::exp>),
      of_one("Log", function<std::log>),
      of_one("Sqrt", function<std::sqrt>),
      of_one("Floor", function<std::floor>),
      of_one("Ceil", function<std::ceil>),
      of_one("Round", function<std::nearbyint>),
      of_one("Erf", function<std::erf>),
      of_one("Sin", function<std::sin>),
      of_one("Cos", function<std::cos>),
      of_one("Tan", function<std::tan>),
      of_one("Asin", function<std::asin>),
      of_one("Acos", function<std::acos>),
      of_one("Atan", function<std::atan>),
      of_one("Sinh", function<std::sinh>),
      of_one("Cosh", function<std::cosh>),
      of_one("Tanh", function<std::tanh>),
      of_one("Asinh", function<std::asinh>),
      of_one("Acosh", function<std::acosh>),
      of_one("Atanh", function<std::atanh>),
      of_one("Reciprocal", [](const Call& c) { return map_floats(c, [](float x) { return 1 / x; }); }),
      of_one("Relu", [](const Call& c) { return numbers(c, []<typename T>(T x) { return x < 0 ? T{0} : x; }); }),
      of_one("Abs",
             [](const Call& c) {
               return numbers(c, []<typename T>(T x) {
                 if constexpr (kIsFloat<T>)
                   return std::fabs(x);
                 else
                   return x < 0 ? static_cast<T>(0 - static_cast<Wrapping<T>>(x)) : x;
               });
             }),
      of_one("Neg",
             [](const Call& c) {
               return numbers(c, []<typename T>(T x) {
                 if constexpr (kIsFloat<T>)
                   return -x;
                 else
                   return static_cast<T>(0 - static_cast<Wrapping<T>>(x));
               });
             }),
      of_one("Sign",
             [](const Call& c) {
               return numbers(c, []<typename T>(T x) { return x != x ? x : static_cast<T>((x > 0) - (x < 0)); });
             }),
      of_one("Not", negated),
      {"IsNaN", [](const Call& c) { return test(c, [](float x) { return std::isnan(x); }); }, 1, 1, 1, Typing::kBool},
      {"IsInf", is_inf, 1, 1, 1, Typing::kBool, {"detect_negative", "detect_positive"}},
      of_two("Add",
             [](const Call& c) {
               return arithmetic(c, []<typename T>(T a, T b) {
                 return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
               });
             }),
      of_two("Sub",
             [](const Call& c) {
               return arithmetic(c, []<typename T>(T a, T b) {
                 return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
               });
             }),
      of_two("Mul",
             [](const Call& c) {
               return arithmetic(c, []<typename T>(T a, T b) {
                 return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
               });
             }),
      of_two("Div", [](const Call& c) { return arithmetic(c, []<typename T>(T a, T b) { return quotient(a, b); }); }),
      of_two("Mod", mod, {"fmod"}),
      of_two("Pow", pow),
      of_two("PRelu",
             [](const Call& c) {
               return arithmetic(c, []<typename T>(T x, T slope) {
                 return x < 0 ? static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(slope)) : x;
               });
             }),
      compared("Equal", [](const Call& c) { return comparison(c, [](auto a, auto b) { return a == b; }); }),
      compared("Less", [](const Call& c) { return comparison(c, [](auto a, auto b) { return a < b; }); }),
      compared("Greater", [](const Call& c) { return comparison(c, [](auto a, auto b) { return a > b; }); }),
      compared("LessOrEqual", [](const Call& c) { return comparison(c, [](auto a, auto b) { return a <= b; }); }),
      compared("GreaterOrEqual", [](const Call& c) { return comparison(c, [](auto a, auto b) { return a >= b; }); }),
      compared("And", [](const Call& c) { return logic(c, [](bool a, bool b) { return a && b; }); }),
      compared("Or", [](const Call& c) { return logic(c, [](bool a, bool b) { return a || b; }); }),
      compared("Xor", [](const Call& c) { return logic(c, [](bool a, bool b) { return a != b; }); }),
  };
}

}  // namespace octet::dense
