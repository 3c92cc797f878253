// Any bytes as COCO's annotations: refused with a UserError, or ids.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "app/detection_files.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  try {
    app::parse_coco_ids(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const UserError&) {
  }
  return 0;
}
