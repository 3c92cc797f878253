// Tensors of the caller in other types than the engine's float32: the numbers are the same, the bytes are not.
#pragma once
#include <octet/engine.h>

#include <cstdint>
#include <span>

namespace octet::engine {

// 0 for a value that is none of the enumeration.
size_t type_size(DataType type);

// Each integer as the nearest float32.
void to_floats(const void* from, DataType type, std::span<float> to);
// The nearest integer, of two as near the even one; those that the type does not have become its nearest, NaN 0.
void from_floats(std::span<const float> from, void* to, DataType type);

}  // namespace octet::engine
