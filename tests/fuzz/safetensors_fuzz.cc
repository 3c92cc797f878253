// Any bytes as a safetensors file: refused with a UserError, or tensors that together are no larger than the file and
// that come back the same when they are written. An input that does not start with a length gets that of a header which
// ends at its first zero byte.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size > 0 && data[0] == '{') {
    const uint64_t length = std::min(bytes.find('\0'), bytes.size());
    bytes.insert(0, reinterpret_cast<const char*>(&length), sizeof length);
  }
  checkpoint::NamedTensors tensors;
  try {
    tensors = checkpoint::parse_safetensors(bytes, "fuzz");
  } catch (const UserError&) {
    return 0;
  }
  size_t total = 0;
  for (const auto& [name, tensor] : tensors) {
    total += tensor.bytes().size();
    if (tensor.bytes().size() != static_cast<size_t>(tensor.size()) * ir::data_type_size(tensor.data_type()))
      std::abort();
  }
  if (total > bytes.size()) std::abort();
  const checkpoint::NamedTensors again = checkpoint::parse_safetensors(checkpoint::safetensors_bytes(tensors), "again");
  if (again.size() != tensors.size()) std::abort();
  for (const auto& [name, tensor] : tensors) {
    const ir::Tensor& other = again.at(name);
    if (other.data_type() != tensor.data_type() || other.shape() != tensor.shape() ||
        !std::equal(tensor.bytes().begin(), tensor.bytes().end(), other.bytes().begin(), other.bytes().end()))
      std::abort();
  }
  return 0;
}
