// QuantizeLinear and DequantizeLinear, with one scale or one for each index of an axis.
#include <cmath>
#include <limits>

#include "dense/operators.h"
#include "numerics/quantize.h"

namespace octet::dense {
namespace {

// How a tensor is cut where each index of an axis has a scale of its own: elements of one scale lie in runs.
struct Lines {
  int64_t outer = 1, scales = 1, inner = 1;
};

Lines lines_of(const Call& call, const Tensor& x, const Tensor& scale) {
  if (scale.size() == 1 && scale.rank() <= 1) return {1, 1, x.size()};
  require(scale.rank() == 1, "the scale has the shape ", shape_text(scale.shape()),
          "; blocks with scales of their own are not supported");
  const size_t axis = normal_axis(call.int_attribute("axis", 1), x.rank());
  require(scale.size() == x.shape()[axis], "there are ", scale.size(), " scales for ", x.shape()[axis],
          " indices of axis ", axis);
  return {count_of(x.shape(), 0, axis), scale.size(), count_of(x.shape(), axis + 1, x.rank())};
}

const Tensor& scale_of(const Call& call) {
  const Tensor& scale = call.input(1);
  require(scale.type() == Type::kFloat, "the scale holds ", type_name(scale.type()), ", expected float32");
  for (const float s : scale.values<float>()) require(std::isfinite(s) && s > 0, "the scale ", s, " is not positive");
  return scale;
}

template <typename T>
int32_t zero_point(const Tensor* zero, int64_t i) {
  return zero ? static_cast<int32_t>(zero->values<T>()[static_cast<size_t>(i)]) : 0;
}

void check_zero_point(const Tensor* zero, Type type, const Tensor& scale) {
  require(!zero || zero->type() == type, "the zero point holds ", zero ? type_name(zero->type()) : "", ", the codes ",
          type_name(type));
  require(!zero || zero->size() == scale.size(), "there are ", zero ? zero->size() : 0, " zero points for ",
          scale.size(), " scales");
}

template <typename T>
Tensors quantize_as(const Call& call, Type type) {
  const Tensor &x = call.input(0), &scale = scale_of(call);
  require(x.type() == Type::kFloat, "is there for float32 only, not for ", type_name(x.type()));
  const Tensor* zero = call.optional(2);
  check_zero_point(zero, type, scale);
  const Lines lines = lines_of(call, x, scale);
  Tensor out = call.memory().make<T>(x.shape());
  const float* from = x.values<float>().data();
  T* to = out.mutable_values<T>().data();
  for (int64_t o = 0; o < lines.outer; ++o)
    for (int64_t s = 0; s < lines.scales; ++s, from += lines.inner, to += lines.inner) {
      const float step = scale.values<float>()[static_cast<size_t>(s)];
      const numerics::QuantParams params{.scale = step,
                                         .zero_point = zero_point<T>(zero, s),
                                         .qmin = std::numeric_limits<T>::min(),
                                         .qmax = std::numeric_limits<T>::max()};
      for (int64_t i = 0; i < lines.inner; ++i) to[i] = static_cast<T>(numerics::quantize(from[i], params));
    }
  return {out};
}

Tensors quantize_linear(const Call& call) {
  const Tensor* zero = call.optional(2);
  const bool is_signed = zero ? zero->type() == Type::kInt8 : call.int_attribute("output_dtype", 2) == 3;
  return is_signed ? quantize_as<int8_t>(call, Type::kInt8) : quantize_as<uint8_t>(call, Type::kUint8);
}

template <typename T>
Tensors dequantize_as(const Call& call) {
  const Tensor &x = call.input(0), &scale = scale_of(call);
  const Tensor* zero = call.optional(2);
  check_zero_point(zero, x.type(), scale);
  const Lines lines = lines_of(call, x, scale);
  Tensor out = call.memory().make<float>(x.shape());
  const T* from = x.values<T>().data();
  float* to = out.mutable_values<float>().data();
  for (int64_t o = 0; o < lines.outer; ++o)
    for (int64_t s = 0; s < lines.scales; ++s, from += lines.inner, to += lines.inner) {
      const float step = scale.values<float>()[static_cast<size_t>(s)];
      const int32_t z = zero_point<T>(zero, s);
      for (int64_t i = 0; i < lines.inner; ++i) to[i] = static_cast<float>(int64_t{from[i]} - z) * step;
    }
  return {out};
}

Tensors dequantize_linear(const Call& call) {
  switch (call.input(0).type()) {
    case Type::kInt8:
      return dequantize_as<int8_t>(call);
    case Type::kUint8:
      return dequantize_as<uint8_t>(call);
    case Type::kInt32:
      return dequantize_as<int32_t>(call);
    default:
      fail("is not there for codes of ", type_name(call.input(0).type()));
  }
}

}  // namespace

std::vector<Operator> quantization_operators() {
  return {{"QuantizeLinear", quantize_linear, 2, 3, 1, Typing::kCodes, {"axis", "saturate", "output_dtype"}},
          {"DequantizeLinear", dequantize_linear, 2, 3, 1, Typing::kFloat, {"axis"}}};
}

}  // namespace octet::dense
