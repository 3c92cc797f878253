// Any bytes as an IDX file, plain or gzip: refused with a UserError, or an array whose sizes and values agree, and
// which then is a dataset or is refused as one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "data/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  constexpr size_t kMaxUnpacked = 1 << 20;
  try {
    data::IdxArray array =
        data::parse_idx(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz", kMaxUnpacked);
    uint64_t product = 1;
    for (int64_t s : array.sizes) product *= static_cast<uint64_t>(s);
    if (product != array.values.size()) std::abort();
    const int64_t count = array.sizes[0];
    if (count > 4096) return 0;
    data::IdxArray labels{{count}, std::string(static_cast<size_t>(count), '\1')};
    const auto dataset =
        data::make_idx_dataset(std::move(array), "fuzz", std::move(labels), "labels", {.channels = size % 2 ? 3 : 0});
    if (dataset->size() != count) std::abort();
    for (int64_t i : {int64_t{0}, count - 1}) {
      const data::Sample sample = dataset->get(i);
      if (sample.image.pixels.size() != sample.image.size() || sample.truth.label != 1) std::abort();
    }
  } catch (const UserError&) {
  }
  return 0;
}
