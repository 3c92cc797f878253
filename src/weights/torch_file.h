// Weights that PyTorch saved with torch.save(): a ZIP archive with a pickle and its storages, or, before PyTorch 1.6, a
// stream of pickles. The pickle is read as data; nothing in it is called (pickle.h).
// Format: torch/serialization.py.
#pragma once
#include <string>
#include <string_view>

#include "checkpoint/safetensors.h"

namespace octet::weights {

bool is_torch_file(std::string_view bytes);

// The floating-point tensors of the state dictionary, as float32: of the file itself, or of its entry "state_dict",
// "model_state_dict", "model", "module" or "net", as training scripts write them. "module." and "model.", with which
// wrappers begin every name, are taken off. UserError naming `origin` when it is damaged, holds a model as Python
// objects, or no tensors. Any bytes are safe.
checkpoint::NamedTensors read_torch_weights(std::string_view bytes, const std::string& origin);

}  // namespace octet::weights
