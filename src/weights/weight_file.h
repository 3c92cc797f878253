// A file with trained weights, of any format that Octet reads, told by its content.
#pragma once
#include <filesystem>
#include <string>

#include "checkpoint/safetensors.h"

namespace octet::weights {

enum class WeightFormat { kOnnx, kSafetensors, kKeras, kTorch };

// UserError (usage) for one that Octet cannot read, by name and by content, with what to do instead: an encrypted model
// of NVIDIA TAO (.tlt, .etlt).
WeightFormat weight_format(const std::filesystem::path& path);

// Its floating-point tensors by name, as float32: the constants of an ONNX graph, the tensors of a safetensors file,
// the layers of a Keras model (keras_file.h), the state dictionary of a file of PyTorch (torch_file.h). UserError,
// naming the file, where it is damaged.
checkpoint::NamedTensors read_weights(const std::filesystem::path& path);

}  // namespace octet::weights
