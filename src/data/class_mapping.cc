#include "data/class_mapping.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "base/error.h"
#include "base/nearest.h"
#include "data/class_order.h"
#include "data/contents.h"
#include "data/selection.h"

namespace octet::data {
namespace {

bool differ_in_case(const std::string& a, const std::string& b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return a != b && a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) { return lower(x) == lower(y); });
}

// Of a name that maps nowhere: "; 'car' differs only in case ...".
std::string what_was_meant(const std::string& name, const std::vector<std::string>& known) {
  for (const std::string& other : known)
    if (differ_in_case(name, other))
      return str("; '", other, "' differs only in case, and names match exactly",
                 std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::isupper(c); })
                     ? " (lower_case_classes: true of the source takes them in lower case, as TAO does)"
                     : "");
  return did_you_mean(name, known);
}

// The names in files that are known.
std::vector<std::string> known_names(const ClassMapping& mapping) {
  if (mapping.targets.empty()) return mapping.target_classes;
  std::vector<std::string> out;
  for (const auto& [source, target] : mapping.targets) out.push_back(source);
  return out;
}

int index_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

// The label of a name in the files; -1: none.
int label_of(const ClassMapping& mapping, const std::vector<std::string>& classes, const std::string& name) {
  if (mapping.targets.empty()) return index_of(classes, name);
  for (const auto& [source, target] : mapping.targets)
    if (source == name) return index_of(classes, target);
  return -1;
}

// Images whose class has a label, or that tell objects.
std::unique_ptr<Dataset> without_unmapped_images(std::unique_ptr<Dataset> dataset, const std::vector<int>& labels) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    const int label = dataset->truth(i).label;
    if (label < 0 || labels.at(static_cast<size_t>(label)) >= 0) kept.push_back(i);
  }
  return static_cast<int64_t>(kept.size()) == dataset->size() ? std::move(dataset)
                                                              : select(std::move(dataset), std::move(kept));
}

}  // namespace

std::vector<std::string> ClassMapping::names() const {
  std::vector<std::string> out = target_classes;
  if (out.empty())
    for (const auto& [source, target] : targets)
      if (index_of(out, target) < 0) out.push_back(target);
  return out;
}

std::unique_ptr<Dataset> map_classes(std::unique_ptr<Dataset> dataset, const ClassMapping& mapping,
                                     const std::string& where) {
  if (mapping.empty() || !dataset->labeled()) return dataset;
  const std::vector<std::string> classes = mapping.names(), own = dataset->class_names();
  const Contents contents = contents_of(*dataset);
  const char* const things = contents.objects > 0 ? " objects" : " images";
  std::vector<int> labels;
  std::vector<std::string> remarks;
  int64_t mapped = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    labels.push_back(label_of(mapping, classes, own[i]));
    if (labels[i] >= 0) mapped += contents.of_class[i];
    if (labels[i] < 0 && contents.of_class[i] > 0)
      remarks.push_back(str("the class '", own[i], "' (", contents.of_class[i], things,
                            ") maps to no class that is learned and is left out",
                            what_was_meant(own[i], known_names(mapping))));
  }
  if (mapped == 0) {
    std::string reasons;
    for (const std::string& remark : remarks) reasons += "; " + remark;
    fail_usage(where, ": data.target_classes and data.target_class_mapping leave nothing of it", reasons);
  }
  dataset = relabel(without_unmapped_images(std::move(dataset), labels), labels, classes);
  dataset->add_remarks(remarks);
  return dataset;
}

}  // namespace octet::data
