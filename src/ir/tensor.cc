#include "ir/tensor.h"

#include <bit>
#include <cstring>

#include "ir/half.h"

namespace octet::ir {
namespace {

template <typename T>
T read(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

// The elements, each through to_number(stored element).
template <typename Out, typename Stored, typename ToNumber>
void convert(std::span<const std::byte> bytes, std::vector<Out>& out, ToNumber to_number) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<Out>(to_number(read<Stored>(bytes.data() + i * sizeof(Stored))));
}

template <typename Out>
std::vector<Out> converted(const Tensor& t) {
  const auto same = [](auto x) { return x; };
  const auto bytes = t.bytes();
  std::vector<Out> out(static_cast<size_t>(t.size()));
  switch (t.data_type()) {
    case DataType::kFloat32:
      convert<Out, float>(bytes, out, same);
      break;
    case DataType::kFloat64:
      convert<Out, double>(bytes, out, same);
      break;
    case DataType::kFloat16:
      convert<Out, uint16_t>(bytes, out, half_to_float);
      break;
    case DataType::kBFloat16:
      convert<Out, uint16_t>(bytes, out,
                             [](uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); });
      break;
    case DataType::kInt8:
      convert<Out, int8_t>(bytes, out, same);
      break;
    case DataType::kUInt8:
      convert<Out, uint8_t>(bytes, out, same);
      break;
    case DataType::kInt32:
      convert<Out, int32_t>(bytes, out, same);
      break;
    case DataType::kInt64:
      convert<Out, int64_t>(bytes, out, same);
      break;
    case DataType::kBool:
      convert<Out, uint8_t>(bytes, out, [](uint8_t b) { return b != 0; });
      break;
    case DataType::kUndefined:
      OCTET_CHECK(false, "tensor without a data type");
  }
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
  for (size_t i = 0; i < shape.size(); ++i) {
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

Tensor::Tensor(DataType type, Shape shape, std::vector<std::byte> bytes) : type_(type), shape_(std::move(shape)) {
  byte_count_ = bytes.size();
  OCTET_CHECK(static_cast<size_t>(element_count(shape_)) * data_type_size(type_) == byte_count_, data_type_name(type_),
              shape_string(shape_), " against ", byte_count_, " bytes");
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  bytes_ = {owner, owner->data()};
}

Tensor Tensor::with_shape(Shape shape) const {
  OCTET_CHECK(element_count(shape) == size(), shape_string(shape_), " as ", shape_string(shape));
  Tensor out = *this;
  out.shape_ = std::move(shape);
  return out;
}

std::vector<float> Tensor::to_floats() const {
  if (type_ != DataType::kFloat32) return converted<float>(*this);
  const auto own = values<float>();
  return {own.begin(), own.end()};
}

std::vector<int64_t> Tensor::to_ints() const {
  return converted<int64_t>(*this);
}

std::span<const float> Tensor::as_floats(std::vector<float>& space) const {
  if (type_ == DataType::kFloat32) return values<float>();
  return space = converted<float>(*this);
}

}  // namespace octet::ir
