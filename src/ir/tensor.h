// Types of values, and constant tensors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace octet::ir {

enum class DataType { kUndefined, kFloat32, kFloat16, kBFloat16, kFloat64, kInt8, kUInt8, kInt32, kInt64, kBool };

const char* data_type_name(DataType type);  // "float32", ...
size_t data_type_size(DataType type);       // bytes of one element

// A dimension is >= 0, or kDynamic.
inline constexpr int64_t kDynamic = -1;
using Shape = std::vector<int64_t>;

std::string shape_string(const Shape& shape);  // "[?, 3, 224, 224]"
// Product of the dimensions. Requires a static shape; UserError when the product is beyond int64.
int64_t element_count(const Shape& shape);
bool is_static(const Shape& shape);

struct TensorType {
  DataType data_type = DataType::kUndefined;
  std::optional<Shape> shape;  // nothing: rank unknown
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string type_string(const TensorType& type);  // "float32[?, 3, 224, 224]"

namespace internal {
template <typename T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::kFloat32;
};
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::kFloat64;
};
template <>
struct DataTypeOf<int8_t> {
  static constexpr DataType value = DataType::kInt8;
};
template <>
struct DataTypeOf<uint8_t> {
  static constexpr DataType value = DataType::kUInt8;
};
template <>
struct DataTypeOf<int32_t> {
  static constexpr DataType value = DataType::kInt32;
};
template <>
struct DataTypeOf<int64_t> {
  static constexpr DataType value = DataType::kInt64;
};
template <>
struct DataTypeOf<bool> {
  static constexpr DataType value = DataType::kBool;
};
}  // namespace internal

// An immutable constant, row-major. Copies share the bytes.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DataType type, Shape shape, std::vector<std::byte> bytes);

  // Of the type T, with the elements that fill(std::span<T>) writes: all of them.
  template <typename T, typename Fill>
  static Tensor made(Shape shape, Fill fill) {
    const auto count = static_cast<size_t>(element_count(shape));
    std::shared_ptr<T[]> elements = std::make_shared_for_overwrite<T[]>(count);
    fill(std::span<T>(elements.get(), count));
    Tensor out;
    out.type_ = internal::DataTypeOf<T>::value, out.shape_ = std::move(shape);
    out.bytes_ = {elements, reinterpret_cast<const std::byte*>(elements.get())}, out.byte_count_ = count * sizeof(T);
    return out;
  }
  template <typename T>
  static Tensor of(Shape shape, std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    return Tensor(internal::DataTypeOf<T>::value, std::move(shape), {bytes.begin(), bytes.end()});
  }
  template <typename T>
  static Tensor of(Shape shape, const std::vector<T>& values) {
    return of<T>(std::move(shape), std::span<const T>(values));
  }
  template <typename T>
  static Tensor scalar(T value) {
    return of<T>({}, std::span<const T>(&value, 1));
  }

  // The same elements, not copied, under another shape of as many.
  Tensor with_shape(Shape shape) const;

  DataType data_type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return element_count(shape_); }
  bool empty() const { return type_ == DataType::kUndefined; }
  std::span<const std::byte> bytes() const { return {bytes_.get(), byte_count_}; }
  // The elements; T must be the data type (a broken invariant otherwise).
  template <typename T>
  std::span<const T> values() const {
    OCTET_CHECK(internal::DataTypeOf<T>::value == type_, "tensor holds ", data_type_name(type_));
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }
  // Elements converted to another type: any integer or floating type in (float16 and bfloat16 included).
  std::vector<float> to_floats() const;
  std::vector<int64_t> to_ints() const;
  // The same without a copy where the elements are floats already; else `space` holds them.
  std::span<const float> as_floats(std::vector<float>& space) const;

 private:
  DataType type_ = DataType::kUndefined;
  Shape shape_;
  std::shared_ptr<const std::byte> bytes_;  // of whatever holds them
  size_t byte_count_ = 0;
};

}  // namespace octet::ir
