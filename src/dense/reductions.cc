// Operators that make fewer numbers of many, and those along an axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "dense/operators.h"

namespace octet::dense {
namespace {

struct ReducedShape {
  Shape kept, shape;  // with sizes of 1, and as the operator puts it out
  std::vector<bool> reduced;
  int64_t count = 1;  // elements that become one
};

ReducedShape reduced_shape(const Shape& in, const std::vector<size_t>& axes, bool keep) {
  ReducedShape out{in, {}, std::vector<bool>(in.size(), false)};
  for (const size_t axis : axes) {
    if (out.reduced[axis]) fail("axis ", axis, " is there twice");
    out.reduced[axis] = true, out.kept[axis] = 1, out.count *= in[axis];
  }
  for (size_t i = 0; i < in.size(); ++i)
    if (keep || !out.reduced[i]) out.shape.push_back(out.kept[i]);
  return out;
}

// The axes of a Reduce*; all of them where none are said.
std::vector<size_t> axes_of(const Call& call, size_t rank) {
  const auto given = call.optional_ints(1);
  std::vector<size_t> axes;
  if (given)
    for (const int64_t axis : *given) axes.push_back(normal_axis(axis, rank));
  if (axes.empty() && call.int_attribute("noop_with_empty_axes", 0) == 0)
    for (size_t i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

template <typename T>
using Sum = std::conditional_t<std::is_same_v<T, float>, double, uint64_t>;

// out = finish(all x of a group joined by `join`, how many), in the type Acc.
template <typename T, typename Acc, typename Join, typename Finish>
Tensor reduced(const Call& call, Acc start, Join join, Finish finish) {
  const Tensor& x = call.input(0);
  const ReducedShape shape = reduced_shape(x.shape(), axes_of(call, x.rank()), call.int_attribute("keepdims", 1) != 0);
  Tensor out = call.memory().make<T>(shape.kept);
  Tensor sums = call.memory().make(Type::kInt64, shape.kept);  // as bytes of Acc
  static_assert(sizeof(Acc) == 8);
  auto* acc = reinterpret_cast<Acc*>(sums.data());
  std::fill(acc, acc + out.size(), start);
  const auto from = x.values<T>();
  walk(x.shape(), {broadcast_steps(shape.kept, x.shape())},
       [&](int64_t i, const std::vector<int64_t>& at) { acc[at[0]] = join(acc[at[0]], from[static_cast<size_t>(i)]); });
  const auto to = out.mutable_values<T>();
  for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<T>(finish(acc[i], shape.count));
  return out.with_shape(shape.shape);
}

// For floats and integers: joined by a function of Sum<T>.
template <typename Join, typename Finish>
Tensors summed(const Call& call, int start, Join join, Finish finish) {
  return {dispatch(call.input(0).type(), [&]<typename T>() -> Tensor {
    if constexpr (std::is_same_v<T, bool>) {
      fail("is not there for bool");
    } else {
      using Acc = Sum<T>;
      return reduced<T>(
          call, static_cast<Acc>(start), [&](Acc a, T x) { return join(a, static_cast<Acc>(x)); }, finish);
    }
  })};
}

constexpr auto kAsItIs = [](auto sum, int64_t) { return sum; };

// The same of floats alone.
template <typename Join, typename Finish>
Tensors summed_floats(const Call& call, Join join, Finish finish) {
  require(call.input(0).type() == Type::kFloat, "is there for float32 only");
  return {reduced<float>(
      call, 0.0, [&](double a, float x) { return join(a, static_cast<double>(x)); }, finish)};
}

template <bool kLargest>
Tensors extreme(const Call& call) {
  return {dispatch(call.input(0).type(), [&]<typename T>() -> Tensor {
    if constexpr (std::is_same_v<T, float>) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      return reduced<float>(
          call, kLargest ? -kInfinity : kInfinity,
          [](double a, float x) { return (kLargest ? x > a : x < a) || x != x ? static_cast<double>(x) : a; }, kAsItIs);
    } else {
      using Limits = std::numeric_limits<T>;
      return reduced<T>(
          call, static_cast<int64_t>(kLargest ? Limits::min() : Limits::max()),
          [](int64_t a, T x) { return kLargest ? std::max<int64_t>(a, x) : std::min<int64_t>(a, x); }, kAsItIs);
    }
  })};
}

Tensors mean(const Call& call) {
  return {dispatch(call.input(0).type(), [&]<typename T>() -> Tensor {
    if constexpr (std::is_same_v<T, bool>) {
      fail("is not there for bool");
    } else {
      return reduced<T>(
          call, 0.0, [](double a, T x) { return a + static_cast<double>(x); },
          [](double sum, int64_t n) { return n > 0 ? sum / static_cast<double>(n) : std::nan(""); });
    }
  })};
}

// With the largest taken out, so that nothing overflows.
Tensors log_sum_exp(const Call& call) {
  const Tensor largest = extreme<true>(call)[0];
  const Tensor& x = call.input(0);
  require(x.type() == Type::kFloat, "is there for float32 only");
  const ReducedShape shape = reduced_shape(x.shape(), axes_of(call, x.rank()), call.int_attribute("keepdims", 1) != 0);
  Tensor out = call.memory().make<float>(shape.kept);
  std::vector<double> sums(static_cast<size_t>(out.size()), 0);
  const auto top = largest.values<float>(), from = x.values<float>();
  const auto base = [&](size_t i) { return std::isfinite(top[i]) ? static_cast<double>(top[i]) : 0.0; };
  walk(x.shape(), {broadcast_steps(shape.kept, x.shape())}, [&](int64_t i, const std::vector<int64_t>& at) {
    const auto g = static_cast<size_t>(at[0]);
    sums[g] += std::exp(static_cast<double>(from[static_cast<size_t>(i)]) - base(g));
  });
  for (size_t i = 0; i < sums.size(); ++i)
    out.mutable_values<float>()[i] = static_cast<float>(std::log(sums[i]) + base(i));
  return {out.with_shape(shape.shape)};
}

template <bool kLargest>
Tensors arg(const Call& call) {
  const Tensor& x = call.input(0);
  const size_t axis = normal_axis(call.int_attribute("axis", 0), x.rank());
  const bool last = call.int_attribute("select_last_index", 0) != 0;
  const int64_t length = x.shape()[axis], inner = count_of(x.shape(), axis + 1, x.rank());
  require(length > 0, "there is no largest or smallest of nothing");
  const ReducedShape shape = reduced_shape(x.shape(), {axis}, call.int_attribute("keepdims", 1) != 0);
  Tensor out = call.memory().make<int64_t>(shape.shape);
  dispatch(x.type(), [&]<typename T>() {
    const auto from = x.values<T>();
    const auto to = out.mutable_values<int64_t>();
    for (int64_t i = 0; i < out.size(); ++i) {
      const T* p = from.data() + i / inner * inner * length + i % inner;
      int64_t best = 0;
      for (int64_t k = 1; k < length; ++k) {
        const T a = p[k * inner], b = p[best * inner];
        if ((kLargest ? a > b : a < b) || (last && a == b)) best = k;
      }
      to[static_cast<size_t>(i)] = best;
    }
  });
  return {out};
}

template <bool kLog>
Tensors softmax(const Call& call) {
  const Tensor& x = call.input(0);
  require(x.type() == Type::kFloat, "is there for float32 only");
  Tensor out = call.memory().make<float>(x.shape());
  if (x.rank() == 0) {
    out.mutable_values<float>()[0] = kLog ? 0.0f : 1.0f;
    return {out};
  }
  const size_t axis = normal_axis(call.int_attribute("axis", -1), x.rank());
  const int64_t length = x.shape()[axis], inner = count_of(x.shape(), axis + 1, x.rank());
  const int64_t lines = length == 0 ? 0 : x.size() / length;
  for (int64_t i = 0; i < lines; ++i) {
    const int64_t at = i / inner * inner * length + i % inner;
    const float* from = x.values<float>().data() + at;
    float* to = out.mutable_values<float>().data() + at;
    float largest = from[0], sum = 0;
    for (int64_t k = 1; k < length; ++k) largest = std::max(largest, from[k * inner]);
    for (int64_t k = 0; k < length; ++k) {
      to[k * inner] = std::exp(from[k * inner] - largest);
      sum += to[k * inner];
    }
    const float log_sum = std::log(sum);
    for (int64_t k = 0; k < length; ++k)
      to[k * inner] = kLog ? from[k * inner] - largest - log_sum : to[k * inner] / sum;
  }
  return {out};
}

Tensors cumulative_sum(const Call& call) {
  const Tensor& x = call.input(0);
  const size_t axis = normal_axis(call.one_int(1), x.rank());
  const bool exclusive = call.int_attribute("exclusive", 0) != 0, reverse = call.int_attribute("reverse", 0) != 0;
  const int64_t length = x.shape()[axis], inner = count_of(x.shape(), axis + 1, x.rank());
  Tensor out = call.memory().make(x.type(), x.shape());
  dispatch(x.type(), [&]<typename T>() {
    if constexpr (std::is_same_v<T, bool>) {
      fail("is not there for bool");
    } else {
      for (int64_t i = 0; length > 0 && i < x.size() / length; ++i) {
        const int64_t at = i / inner * inner * length + i % inner;
        std::conditional_t<std::is_same_v<T, float>, float, uint64_t> sum = 0;
        for (int64_t k = 0; k < length; ++k) {
          const int64_t place = at + (reverse ? length - 1 - k : k) * inner;
          const T value = x.values<T>()[static_cast<size_t>(place)];
          const auto before = sum;
          sum += static_cast<decltype(sum)>(value);
          out.mutable_values<T>()[static_cast<size_t>(place)] = static_cast<T>(exclusive ? before : sum);
        }
      }
    }
  });
  return {out};
}

Operator row(const char* name, Function run) {
  return {name, run, 1, 2, 1, Typing::kFirst, {"keepdims", "noop_with_empty_axes"}};
}

}  // namespace

std::vector<Operator> reduction_operators() {
  return {
      row("ReduceSum",
          [](const Call& c) {
            return summed(
                c, 0, [](auto a, auto x) { return a + x; }, kAsItIs);
          }),
      row("ReduceProd",
          [](const Call& c) {
            return summed(
                c, 1, [](auto a, auto x) { return a * x; }, kAsItIs);
          }),
      row("ReduceSumSquare",
          [](const Call& c) {
            return summed(
                c, 0, [](auto a, auto x) { return a + x * x; }, kAsItIs);
          }),
      row("ReduceMean", mean),
      row("ReduceMax", extreme<true>),
      row("ReduceMin", extreme<false>),
      row("ReduceL1",
          [](const Call& c) {
            return summed_floats(
                c, [](double a, double x) { return a + std::fabs(x); }, kAsItIs);
          }),
      row("ReduceL2",
          [](const Call& c) {
            return summed_floats(
                c, [](double a, double x) { return a + x * x; }, [](double sum, int64_t) { return std::sqrt(sum); });
          }),
      row("ReduceLogSum",
          [](const Call& c) {
            return summed_floats(
                c, [](double a, double x) { return a + x; }, [](double sum, int64_t) { return std::log(sum); });
          }),
      row("ReduceLogSumExp", log_sum_exp),
      {"ArgMax", arg<true>, 1, 1, 1, Typing::kInt64, {"axis", "keepdims", "select_last_index"}},
      {"ArgMin", arg<false>, 1, 1, 1, Typing::kInt64, {"axis", "keepdims", "select_last_index"}},
      {"Softmax", softmax<false>, 1, 1, 1, Typing::kFirst, {"axis"}},
      {"LogSoftmax", softmax<true>, 1, 1, 1, Typing::kFirst, {"axis"}},
      {"CumSum", cumulative_sum, 2, 2, 1, Typing::kFirst, {"exclusive", "reverse"}},
  };
}

}  // namespace octet::dense
