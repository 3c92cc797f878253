// Weights of Keras in HDF5, as Keras 2 writes them with Model.save() and save_weights(), and with it NVIDIA TAO 5 and
// later (.hdf5): a group for each layer, named in the attribute `layer_names`, with its tensors in `weight_names`.
// Format: keras/saving/hdf5_format.py of Keras 2.
#pragma once
#include <string>
#include <string_view>

#include "checkpoint/safetensors.h"

namespace octet::weights {

// By the names and in the layouts of PyTorch and of Octet's networks: kernels of convolutions [height, width, in, out]
// become "LAYER.weight" [out, in, height, width], depthwise ones [height, width, in, multiplier] "LAYER.weight"
// [in * multiplier, 1, height, width], those of linear layers [in, out] "LAYER.weight" [out, in]; gamma, beta,
// moving_mean and moving_variance are "LAYER.weight", ".bias", ".running_mean" and ".running_var". Layers of nested
// models keep their own names. Other tensors are "LAYER.NAME" as they are.
//
// UserError naming `origin` when it is damaged, or none of the two. Any bytes are safe: libhdf5 reads them in a process
// of its own, whose end by a signal is one more way to be damaged.
checkpoint::NamedTensors read_keras_weights(std::string_view bytes, const std::string& origin);

}  // namespace octet::weights
