#include "engine/typed_tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace octet::engine {
namespace {

// Calls use(T{}) with the type's own T.
template <typename Use>
void with_type(DataType type, Use use) {
  switch (type) {
    case DataType::kFloat32:
      return use(float{});
    case DataType::kUInt8:
      return use(uint8_t{});
    case DataType::kInt8:
      return use(int8_t{});
    case DataType::kInt32:
      return use(int32_t{});
    case DataType::kInt64:
      return use(int64_t{});
    case DataType::kBool:
      break;  // outputs whose sizes come up in a run, which nobody binds
  }
}

template <typename T>
T nearest(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    if (std::isnan(value)) return 0;
    // In double, which has the limits of 8 and 32 bits; those of 64 bits round up to a power of two.
    const double rounded = std::nearbyint(static_cast<double>(value));
    constexpr auto low = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto high = static_cast<double>(std::numeric_limits<T>::max());
    if (rounded <= low) return std::numeric_limits<T>::min();
    if (rounded >= high) return std::numeric_limits<T>::max();
    return static_cast<T>(rounded);
  }
}

}  // namespace

size_t type_size(DataType type) {
  size_t size = 0;
  with_type(type, [&](auto element) { size = sizeof(element); });
  return size;
}

void to_floats(const void* from, DataType type, std::span<float> to) {
  with_type(type, [&](auto element) {
    const auto* values = static_cast<const decltype(element)*>(from);
    std::transform(values, values + to.size(), to.begin(), [](auto v) { return static_cast<float>(v); });
  });
}

void from_floats(std::span<const float> from, void* to, DataType type) {
  with_type(type, [&](auto element) {
    using T = decltype(element);
    std::transform(from.begin(), from.end(), static_cast<T*>(to), [](float v) { return nearest<T>(v); });
  });
}

}  // namespace octet::engine
