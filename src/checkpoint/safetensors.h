// The safetensors file format: eight bytes of header length, a JSON header, raw little-endian tensors. Written by and
// readable with the usual Python package; nothing is pickled. https://github.com/huggingface/safetensors
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "ir/tensor.h"

namespace octet::checkpoint {

using NamedTensors = std::map<std::string, ir::Tensor>;

std::string safetensors_bytes(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata = {});

// UserError naming `origin` when the bytes are no valid safetensors file: a type, a shape or a place that does not fit,
// tensors that overlap, bytes that belong to none. Any bytes are safe to read.
NamedTensors parse_safetensors(std::string_view bytes, const std::string& origin);

}  // namespace octet::checkpoint
