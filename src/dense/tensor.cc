#include "dense/tensor.h"

#include <algorithm>

namespace octet::dense {

const char* type_name(Type type) {
  switch (type) {
    case Type::kFloat:
      return "float32";
    case Type::kInt64:
      return "int64";
    case Type::kInt32:
      return "int32";
    case Type::kBool:
      return "bool";
    case Type::kInt8:
      return "int8";
    case Type::kUint8:
      return "uint8";
  }
  return "?";
}

size_t type_size(Type type) {
  if (type == Type::kInt64) return 8;
  return type == Type::kFloat || type == Type::kInt32 ? 4 : 1;
}

std::string shape_text(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

int64_t element_count(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t count = 1;
  for (const int64_t d : shape) {
    require(d >= 0, "a tensor of the shape ", shape_text(shape), " cannot be");
    require(d == 0 || count <= kMost / d, "a tensor of the shape ", shape_text(shape), " is too large");
    count *= d;
  }
  return count;
}

Tensor Tensor::borrowed(Type type, Shape shape, const void* elements) {
  Tensor out;
  out.type_ = type, out.count_ = element_count(shape), out.shape_ = std::move(shape);
  // Only makers of tensors write them, and this one has been made.
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(elements));
  out.bytes_ = std::shared_ptr<std::byte[]>(bytes, [](const std::byte*) {});
  return out;
}

Tensor Tensor::with_shape(Shape shape) const {
  Tensor out = *this;
  OCTET_CHECK(element_count(shape) == count_, shape_text(shape_), " as ", shape_text(shape));
  out.shape_ = std::move(shape);
  return out;
}

Memory::Memory(int64_t limit_bytes) : limit_(limit_bytes), used_(std::make_shared<std::atomic<int64_t>>(0)) {}

Tensor Memory::make(Type type, Shape shape) {
  Tensor out;
  out.type_ = type;
  out.count_ = element_count(shape);
  const int64_t bytes = std::max<int64_t>(1, out.count_ * static_cast<int64_t>(type_size(type)));
  const int64_t together = used_->fetch_add(bytes) + bytes;
  if (together > limit_) {
    used_->fetch_sub(bytes);
    fail("a tensor of the shape ", shape_text(shape), " would take the tensors of the program behind the plan to ",
         together, " bytes; at most ", limit_, " are allowed");
  }
  out.shape_ = std::move(shape);
  std::byte* memory = nullptr;
  try {
    memory = new std::byte[static_cast<size_t>(bytes)];
  } catch (const std::bad_alloc&) {
    used_->fetch_sub(bytes);
    fail("there is no memory for a tensor of the shape ", shape_text(out.shape_));
  }
  out.bytes_ = std::shared_ptr<std::byte[]>(memory, [used = used_, bytes](const std::byte* p) {
    delete[] p;
    used->fetch_sub(bytes);
  });
  return out;
}

}  // namespace octet::dense
