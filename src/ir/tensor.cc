#include "ir/tensor.h"

#include <bit>
#include <cstring>

namespace octet::ir {
namespace {

float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  uint32_t exponent = (h >> 10) & 31, mantissa = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 5.9604644775390625e-08f;  // 2^-24
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

template <typename T>
T read(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

template <typename Out>
Out element(DataType type, const std::byte* p) {
  switch (type) {
    case DataType::kFloat32:
      return static_cast<Out>(read<float>(p));
    case DataType::kFloat64:
      return static_cast<Out>(read<double>(p));
    case DataType::kFloat16:
      return static_cast<Out>(half_to_float(read<uint16_t>(p)));
    case DataType::kBFloat16:
      return static_cast<Out>(std::bit_cast<float>(static_cast<uint32_t>(read<uint16_t>(p)) << 16));
    case DataType::kInt8:
      return static_cast<Out>(read<int8_t>(p));
    case DataType::kUInt8:
      return static_cast<Out>(read<uint8_t>(p));
    case DataType::kInt32:
      return static_cast<Out>(read<int32_t>(p));
    case DataType::kInt64:
      return static_cast<Out>(read<int64_t>(p));
    case DataType::kBool:
      return static_cast<Out>(read<uint8_t>(p) != 0);
    case DataType::kUndefined:
      break;
  }
  OCTET_CHECK(false, "tensor without a data type");
  return Out{};
}

template <typename Out>
std::vector<Out> converted(const Tensor& t) {
  const size_t step = data_type_size(t.data_type()), n = static_cast<size_t>(t.size());
  std::vector<Out> out(n);
  for (size_t i = 0; i < n; i++) out[i] = element<Out>(t.data_type(), t.bytes().data() + i * step);
  return out;
}

}  // namespace

const char* data_type_name(DataType type) {
  switch (type) {
    case DataType::kUndefined:
      return "undefined";
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBFloat16:
      return "bfloat16";
    case DataType::kFloat64:
      return "float64";
    case DataType::kInt8:
      return "int8";
    case DataType::kUInt8:
      return "uint8";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
    case DataType::kBool:
      return "bool";
  }
  return "undefined";
}

size_t data_type_size(DataType type) {
  switch (type) {
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kFloat64:
    case DataType::kInt64:
      return 8;
    case DataType::kFloat16:
    case DataType::kBFloat16:
      return 2;
    case DataType::kInt8:
    case DataType::kUInt8:
    case DataType::kBool:
      return 1;
    case DataType::kUndefined:
      break;
  }
  return 0;
}

std::string shape_string(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); i++) {
    if (i) out += ", ";
    out += shape[i] == kDynamic ? "?" : std::to_string(shape[i]);
  }
  return out + "]";
}

int64_t element_count(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) {
    OCTET_CHECK(d >= 0, "shape ", shape_string(shape), " is not static");
    if (__builtin_mul_overflow(n, d, &n)) fail("shape ", shape_string(shape), " has more elements than can be counted");
  }
  return n;
}

bool is_static(const Shape& shape) {
  for (int64_t d : shape)
    if (d < 0) return false;
  return true;
}

std::string type_string(const TensorType& type) {
  return std::string(data_type_name(type.data_type)) + (type.shape ? shape_string(*type.shape) : "[...]");
}

Tensor::Tensor(DataType type, Shape shape, std::vector<std::byte> bytes)
    : type_(type), shape_(std::move(shape)), bytes_(std::make_shared<const std::vector<std::byte>>(std::move(bytes))) {
  OCTET_CHECK(static_cast<size_t>(element_count(shape_)) * data_type_size(type_) == bytes_->size(),
              data_type_name(type_), shape_string(shape_), " against ", bytes_->size(), " bytes");
}

std::vector<float> Tensor::to_floats() const {
  return converted<float>(*this);
}
std::vector<int64_t> Tensor::to_ints() const {
  return converted<int64_t>(*this);
}

}  // namespace octet::ir
