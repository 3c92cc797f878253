// Tensors whose type and sizes are known only when a program runs, and the memory that they may take together.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace octet::dense {

enum class Type : uint8_t { kFloat = 1, kInt64 = 2, kInt32 = 3, kBool = 4, kInt8 = 5, kUint8 = 6 };
const char* type_name(Type type);  // "float32", "int64", "int32", "bool", "int8", "uint8"
size_t type_size(Type type);       // bytes of one element

using Shape = std::vector<int64_t>;
std::string shape_text(const Shape& shape);  // "[2, 3]"
// The number of elements. UserError for a negative size and for a product beyond 2^40.
int64_t element_count(const Shape& shape);

namespace internal {
template <typename T>
struct TypeOf;
template <>
struct TypeOf<float> {
  static constexpr Type value = Type::kFloat;
};
template <>
struct TypeOf<int64_t> {
  static constexpr Type value = Type::kInt64;
};
template <>
struct TypeOf<int32_t> {
  static constexpr Type value = Type::kInt32;
};
template <>
struct TypeOf<bool> {
  static constexpr Type value = Type::kBool;
};
template <>
struct TypeOf<int8_t> {
  static constexpr Type value = Type::kInt8;
};
template <>
struct TypeOf<uint8_t> {
  static constexpr Type value = Type::kUint8;
};
}  // namespace internal

// Row-major. Copies share the elements, which only whoever made the tensor writes.
class Tensor {
 public:
  Tensor() = default;

  Type type() const { return type_; }
  const Shape& shape() const { return shape_; }
  size_t rank() const { return shape_.size(); }
  int64_t size() const { return count_; }
  std::span<const std::byte> bytes() const { return {bytes_.get(), static_cast<size_t>(count_) * type_size(type_)}; }
  std::byte* data() { return bytes_.get(); }
  // The elements; T must be the type (a broken invariant otherwise).
  template <typename T>
  std::span<const T> values() const {
    check(internal::TypeOf<T>::value);
    return {reinterpret_cast<const T*>(bytes_.get()), static_cast<size_t>(count_)};
  }
  template <typename T>
  std::span<T> mutable_values() {
    check(internal::TypeOf<T>::value);
    return {reinterpret_cast<T*>(bytes_.get()), static_cast<size_t>(count_)};
  }
  // Elements of the caller's that stay where they are as long as the tensor lives.
  static Tensor borrowed(Type type, Shape shape, const void* elements);
  // The same elements, not copied, under another shape of as many.
  Tensor with_shape(Shape shape) const;

 private:
  friend class Memory;
  void check(Type type) const { OCTET_CHECK(type == type_, "tensor holds ", type_name(type_)); }

  Type type_ = Type::kFloat;
  Shape shape_;
  int64_t count_ = 0;
  std::shared_ptr<std::byte[]> bytes_;
};

// Makes tensors, and counts what those that still live take.
class Memory {
 public:
  static constexpr int64_t kDefaultLimit = int64_t{2} << 30;
  explicit Memory(int64_t limit_bytes = kDefaultLimit);

  // With elements that are not set. UserError where all tensors together would pass the limit.
  Tensor make(Type type, Shape shape);
  template <typename T>
  Tensor make(Shape shape) {
    return make(internal::TypeOf<T>::value, std::move(shape));
  }
  template <typename T>
  Tensor of(Shape shape, std::span<const T> values) {
    Tensor out = make<T>(std::move(shape));
    OCTET_CHECK(values.size() == static_cast<size_t>(out.size()));
    std::copy(values.begin(), values.end(), out.mutable_values<T>().begin());
    return out;
  }

 private:
  int64_t limit_;
  std::shared_ptr<std::atomic<int64_t>> used_;  // tensors may outlive the Memory
};

}  // namespace octet::dense
