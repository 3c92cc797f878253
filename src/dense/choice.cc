// Operators that choose between numbers, and that change their type.
#include <cmath>
#include <limits>

#include "dense/operators.h"

namespace octet::dense {
namespace {

Tensors where(const Call& call) {
  const Tensor &condition = call.input(0), &a = call.input(1), &b = call.input(2);
  require(condition.type() == Type::kBool && a.type() == b.type(),
          "the condition should be bool, and both choices of one type");
  Tensor out = call.memory().make(a.type(), broadcast(condition.shape(), broadcast(a.shape(), b.shape())));
  const Shape& shape = out.shape();
  const std::vector<Shape> steps = {broadcast_steps(condition.shape(), shape), broadcast_steps(a.shape(), shape),
                                    broadcast_steps(b.shape(), shape)};
  const auto c = condition.values<bool>();
  dispatch(a.type(), [&]<typename T>() {
    const auto x = a.values<T>(), y = b.values<T>();
    const auto to = out.mutable_values<T>();
    walk(shape, steps, [&](int64_t i, const std::vector<int64_t>& at) {
      to[static_cast<size_t>(i)] =
          c[static_cast<size_t>(at[0])] ? x[static_cast<size_t>(at[1])] : y[static_cast<size_t>(at[2])];
    });
  });
  return {out};
}

// NaN stays where `x` is one.
template <typename T>
T limited(T x, const T* low, const T* high) {
  if (low && x < *low) x = *low;
  if (high && x > *high) x = *high;
  return x;
}

Tensors clip(const Call& call) {
  const Tensor& x = call.input(0);
  Tensor out = call.memory().make(x.type(), x.shape());
  dispatch(x.type(), [&]<typename T>() {
    const auto bound = [&](size_t i) -> const T* {
      const Tensor* t = call.optional(i);
      if (!t) return nullptr;
      require(t->type() == x.type() && t->size() == 1, "a bound should be one ", type_name(x.type()));
      return t->values<T>().data();
    };
    const T *low = bound(1), *high = bound(2);
    const auto from = x.values<T>();
    const auto to = out.mutable_values<T>();
    for (size_t i = 0; i < from.size(); ++i) to[i] = limited(from[i], low, high);
  });
  return {out};
}

template <typename To, typename From>
To converted(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_same_v<From, float> && !std::is_same_v<To, float>) {
    // What x86 makes of numbers that do not fit, and so what other runtimes give.
    constexpr float kLow = static_cast<float>(std::numeric_limits<To>::min());
    return x >= kLow && x < -kLow ? static_cast<To>(x) : std::numeric_limits<To>::min();
  } else {
    return static_cast<To>(x);
  }
}

Tensors cast(const Call& call) {
  const Tensor& x = call.input(0);
  Tensor out = call.memory().make(output_type(call.operation(), 0, {x.type()}), x.shape());
  dispatch(x.type(), [&]<typename From>() {
    dispatch(out.type(), [&]<typename To>() {
      const auto from = x.values<From>();
      const auto to = out.mutable_values<To>();
      for (size_t i = 0; i < from.size(); ++i) to[i] = converted<To>(from[i]);
    });
  });
  return {out};
}

// f(a, b) over any number of inputs.
template <typename F>
Tensors folded(const Call& call, F f) {
  Tensor out = call.input(0);
  for (size_t n = 1; n < call.input_count(); ++n) {
    const Tensor a = out, b = call.input(n);
    require(a.type() == b.type(), "one input holds ", type_name(a.type()), ", another ", type_name(b.type()));
    out = call.memory().make(a.type(), broadcast(a.shape(), b.shape()));
    dispatch(a.type(), [&]<typename T>() {
      const auto x = a.values<T>(), y = b.values<T>();
      const auto to = out.mutable_values<T>();
      walk(out.shape(), {broadcast_steps(a.shape(), out.shape()), broadcast_steps(b.shape(), out.shape())},
           [&](int64_t i, const std::vector<int64_t>& at) {
             to[static_cast<size_t>(i)] = f(x[static_cast<size_t>(at[0])], y[static_cast<size_t>(at[1])]);
           });
    });
  }
  return {out};
}

constexpr size_t kMany = 1 << 16;

}  // namespace

std::vector<Operator> choice_operators() {
  return {
      {"Where", where, 3, 3, 1, Typing::kSecond},
      {"Clip", clip, 1, 3},
      {"Cast", cast, 1, 1, 1, Typing::kTo, {"to", "saturate"}},
      {"Identity", [](const Call& c) { return Tensors{c.input(0)}; }},
      // A NaN in either stays.
      {"Max", [](const Call& c) { return folded(c, []<typename T>(T a, T b) { return b > a || b != b ? b : a; }); }, 1,
       kMany},
      {"Min", [](const Call& c) { return folded(c, []<typename T>(T a, T b) { return b < a || b != b ? b : a; }); }, 1,
       kMany},
      {"Sum",
       [](const Call& c) {
         require(c.input(0).type() == Type::kFloat, "is there for float32 only");
         return folded(c, []<typename T>(T a, T b) { return static_cast<T>(a + b); });
       },
       1, kMany},
  };
}

}  // namespace octet::dense
