#include "data/findings.h"

#include "base/error.h"

namespace octet::data {
namespace {

constexpr size_t kExamples = 3;  // of each kind

struct Wording {
  const char *one, *many;  // after the number
};

// In the order of Finding.
constexpr Wording kWordings[kFindingKinds] = {
    {"annotation cannot be read, and its image is left out",
     "annotations cannot be read, and their images are left out"},
    {"image has no annotation and is left out", "images have no annotation and are left out"},
    {"annotation names an image that is not there and is left out",
     "annotations name images that are not there and are left out"},
    {"image file cannot be read and is left out", "image files cannot be read and are left out"},
    {"box has a coordinate that is no finite number of pixels and is left out",
     "boxes have coordinates that are no finite numbers of pixels and are left out"},
    {"box has x0 >= x1 or y0 >= y1 and is left out", "boxes have x0 >= x1 or y0 >= y1 and are left out"},
    {"box lies outside of its image and is left out", "boxes lie outside of their images and are left out"},
    {"box reaches beyond its image and is cut", "boxes reach beyond their images and are cut"},
};

}  // namespace

void Findings::add(Finding kind, const std::string& where) {
  const auto k = static_cast<size_t>(kind);
  ++counts_[k];
  if (examples_[k].size() < kExamples) examples_[k].push_back(where);
}

void Findings::add(const Findings& other) {
  for (size_t k = 0; k < kFindingKinds; ++k) {
    counts_[k] += other.counts_[k];
    for (const std::string& example : other.examples_[k])
      if (examples_[k].size() < kExamples) examples_[k].push_back(example);
  }
  remarks_.insert(remarks_.end(), other.remarks_.begin(), other.remarks_.end());
}

std::vector<std::string> Findings::sentences() const {
  std::vector<std::string> out;
  for (size_t k = 0; k < kFindingKinds; ++k) {
    if (counts_[k] == 0) continue;
    std::string& sentence =
        out.emplace_back(str(counts_[k], ' ', counts_[k] == 1 ? kWordings[k].one : kWordings[k].many));
    for (size_t i = 0; i < examples_[k].size(); ++i) sentence += str(i == 0 ? ": " : "; ", examples_[k][i]);
    if (const auto more = counts_[k] - static_cast<int64_t>(examples_[k].size()); more > 0)
      sentence += str("; and ", more, " more");
  }
  out.insert(out.end(), remarks_.begin(), remarks_.end());
  return out;
}

std::string Findings::as_reasons() const {
  std::string out;
  for (const std::string& sentence : sentences()) out += "; " + sentence;
  return out;
}

}  // namespace octet::data
