// Any bytes as CIFAR files: refused with a UserError, or a dataset whose every image has 32 x 32 pixels and a label
// with a name. Byte 0 chooses format, channels, and file or directory; bytes 1 and 2 the size of the file, which is the
// rest and zeros, so that small inputs make whole records; what follows a zero byte in that rest is also the file of
// names.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "data/dataset.h"
#include "scratch_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  if (size < 3) return 0;
  const int choice = data[0];
  const bool fine = choice % 2, directory = choice / 2 % 2;
  std::string bytes(reinterpret_cast<const char*>(data) + 3, size - 3);
  const std::string names = bytes.substr(std::min(bytes.find('\0'), bytes.size()));
  // Mostly whole records.
  const size_t stride = 3072 + (fine ? 2 : 1), beyond = data[2] > 200 ? data[2] : 0;
  bytes.resize(data[1] % 8 * stride + beyond);

  static const testing::ScratchFolder folder;
  folder.write(fine ? "fine_label_names.txt" : "batches.meta.txt", names);
  const std::filesystem::path file = folder.write(fine ? "test.bin" : "test_batch.bin", bytes);
  try {
    const auto dataset = data::open_dataset({.format = fine ? "cifar100" : "cifar10",
                                             .path = directory ? folder.path() : file,
                                             .split = directory ? "test" : "",
                                             .channels = choice / 4 % 4});
    if (dataset->size() != static_cast<int64_t>(bytes.size() / stride)) std::abort();
    for (int64_t i = 0; i < dataset->size(); ++i) {
      const data::Sample sample = dataset->get(i);
      if (sample.image.height != 32 || sample.image.width != 32 || sample.image.pixels.size() != sample.image.size() ||
          sample.truth.label < 0 || sample.truth.label != dataset->truth(i).label ||
          static_cast<size_t>(sample.truth.label) >= dataset->class_names().size() || dataset->name(i).empty())
        std::abort();
    }
  } catch (const UserError&) {
  }
  return 0;
}
