// Any bytes as the annotations of objects: a KITTI text, a VOC file, a COCO file, a TFRecord file or an Example.
// Refused with an error that says what is wrong, or read into objects of which those that can be used are finite, have
// an area and lie in their image. Byte 0 chooses the format.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/records.h"
#include "data/image.h"
#include "data/objects/annotated_set.h"
#include "data/objects/coco.h"
#include "data/objects/example.h"
#include "data/objects/kitti.h"
#include "data/objects/voc.h"

namespace {

using namespace octet;

void use(data::AnnotationFile file) {
  for (const data::AnnotatedObject& object : file.objects)
    if (object.mask && (object.mask->width() != file.width || object.mask->height() != file.height)) std::abort();
  if (file.width <= 0 || file.height <= 0) file.width = file.height = 100;
  data::AnnotatedSet set;
  set.images.push_back({.path = "a.png", .name = "a", .source = "a.txt", .annotation = std::move(file)});
  data::drop_unusable(set, false, "set");
  const data::AnnotationFile& left = set.images.at(0).annotation;
  for (const data::AnnotatedObject& object : left.objects) {
    const vision::Box seen =
        vision::clipped(object.box, static_cast<float>(left.width), static_cast<float>(left.height));
    if (!(vision::area(object.box) > 0) || !(vision::area(seen) > 0)) std::abort();
  }
  for (const std::string& sentence : set.findings.sentences())
    if (sentence.empty()) std::abort();
}

// What was read is written and read again as the same.
void use(const data::Example& example) {
  const data::Example again = data::parse_example(data::write_example(example));
  if (again.id != example.id || again.annotation.objects.size() != example.annotation.objects.size()) std::abort();
  use(example.annotation);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  try {
    switch (bytes[0] % 6) {
      case 0:
        use(data::parse_kitti(text));
        break;
      case 1:
        use(data::parse_voc(text));
        break;
      case 2:
      case 3:
        for (data::CocoImage& image : data::parse_coco(text, bytes[0] % 2 == 1).images)
          use(std::move(image.annotation));
        break;
      case 4:
        use(data::parse_example(text));
        break;
      default:
        RecordReader records(text, "file");
        while (const auto record = records.next()) use(data::parse_example(*record));
    }
  } catch (const data::DecodeError&) {
  } catch (const UserError&) {
  }
  return 0;
}
