#include "data/contents.h"

#include "base/error.h"

namespace octet::data {

Contents contents_of(const Dataset& dataset) {
  Contents contents{.images = dataset.size(), .objects = 0, .of_class = {}};
  contents.of_class.resize(dataset.class_names().size());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const Annotation truth = dataset.truth(i);
    contents.objects += static_cast<int64_t>(truth.objects.size());
    if (truth.label >= 0) ++contents.of_class.at(static_cast<size_t>(truth.label));
    for (const vision::Object& object : truth.objects) ++contents.of_class.at(static_cast<size_t>(object.label));
  }
  return contents;
}

std::string contents_text(const Contents& contents, const std::vector<std::string>& class_names) {
  constexpr size_t kShown = 12;  // classes
  std::string out = str(contents.images, " images, ", contents.objects, " objects");
  for (size_t i = 0; i < class_names.size() && i < kShown; ++i)
    out += str(i == 0 ? " (" : ", ", class_names[i], ' ', contents.of_class[i]);
  if (class_names.size() > kShown) out += str(" and ", class_names.size() - kShown, " further classes");
  return out + (class_names.empty() ? "" : ")");
}

}  // namespace octet::data
