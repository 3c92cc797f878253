// Any bytes as a file of torch.save(): refused with a UserError, or tensors of the size that their shapes say.
// Checksums are made right first, as nothing would get behind them.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "weights/torch_file.h"

namespace {

template <typename T>
T number(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// For every entry of a central directory that has its bytes within the file.
void mend_checksums(std::string& bytes) {
  for (size_t at = bytes.find("PK\x01\x02"); at != std::string::npos && at + 46 <= bytes.size();
       at = bytes.find("PK\x01\x02", at + 1)) {
    const size_t header = number<uint32_t>(bytes, at + 42), size = number<uint32_t>(bytes, at + 24);
    if (header + 30 > bytes.size()) continue;
    const size_t data = header + 30 + number<uint16_t>(bytes, header + 26) + number<uint16_t>(bytes, header + 28);
    if (data > bytes.size() || size > bytes.size() - data) continue;
    const auto crc =
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + data, static_cast<uInt>(size)));
    std::memcpy(bytes.data() + at + 16, &crc, sizeof crc);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  mend_checksums(bytes);
  checkpoint::NamedTensors tensors;
  try {
    tensors = weights::read_torch_weights(bytes, "fuzz");
  } catch (const UserError&) {
    return 0;
  }
  for (const auto& [name, tensor] : tensors)
    if (tensor.bytes().size() != static_cast<size_t>(tensor.size()) * sizeof(float)) std::abort();
  return 0;
}
