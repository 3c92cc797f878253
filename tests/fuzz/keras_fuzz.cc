// Any bytes as a Keras model in HDF5: refused with a UserError, or tensors of the size that their shapes say. libhdf5
// runs in a process of its own, so what it makes of damaged files must not reach this one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "weights/keras_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  checkpoint::NamedTensors tensors;
  try {
    tensors = weights::read_keras_weights({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const UserError&) {
    return 0;
  }
  for (const auto& [name, tensor] : tensors)
    if (tensor.bytes().size() != static_cast<size_t>(tensor.size()) * sizeof(float)) std::abort();
  return 0;
}
