#include "data/class_order.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"

namespace octet::data {
namespace {

class Relabeled : public Dataset {
 public:
  // labels[i]: the new label of class i; -1: its objects are none that is learned.
  Relabeled(std::unique_ptr<Dataset> dataset, std::vector<int> labels, std::vector<std::string> names)
      : dataset_(std::move(dataset)), labels_(std::move(labels)) {
    class_names_ = std::move(names);
    findings_ = dataset_->findings();
    content_hash_ = dataset_->content_hash();
    for (size_t i = 0; i < labels_.size(); ++i)
      if (labels_[i] != static_cast<int>(i)) content_hash_ = hash64(str(i, ' ', labels_[i]), content_hash_);
  }
  int64_t size() const override { return dataset_->size(); }
  Sample get(int64_t index) const override {
    Sample sample = dataset_->get(index);
    relabel(sample.truth);
    return sample;
  }
  Annotation truth(int64_t index) const override {
    Annotation truth = dataset_->truth(index);
    relabel(truth);
    return truth;
  }
  std::string name(int64_t index) const override { return dataset_->name(index); }
  uint64_t content_hash() const override { return content_hash_; }

 private:
  int relabeled(int label) const { return label < 0 ? label : labels_.at(static_cast<size_t>(label)); }
  void relabel(Annotation& truth) const {
    truth.label = relabeled(truth.label);
    for (vision::Object& object : truth.objects) {
      object.label = relabeled(object.label);
      if (object.label >= 0) continue;
      truth.others.push_back(object);
      truth.others.back().mask = nullptr;
    }
    std::erase_if(truth.objects, [](const vision::Object& object) { return object.label < 0; });
  }

  std::unique_ptr<Dataset> dataset_;
  std::vector<int> labels_;
  uint64_t content_hash_ = 0;
};

// "'a', 'b', 'c' and 7 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) out += str(i > 0 ? ", '" : "'", names[i], "'");
  if (names.size() > kShown) out += str(" and ", names.size() - kShown, " more");
  return out;
}

}  // namespace

bool are_numbers(const std::vector<std::string>& class_names) {
  for (size_t i = 0; i < class_names.size(); ++i)
    if (class_names[i] != std::to_string(i)) return false;
  return true;
}

std::unique_ptr<Dataset> relabel(std::unique_ptr<Dataset> dataset, std::vector<int> labels,
                                 std::vector<std::string> names) {
  OCTET_CHECK(labels.size() == dataset->class_names().size());
  return std::make_unique<Relabeled>(std::move(dataset), std::move(labels), std::move(names));
}

std::unique_ptr<Dataset> label_by_names(std::unique_ptr<Dataset> dataset, const std::vector<std::string>& names,
                                        const std::string& where, const std::string& whose) {
  const std::vector<std::string>& own = dataset->class_names();
  if (!dataset->labeled() || names.empty() || own == names) return dataset;
  std::map<std::string, int> numbers;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto [first, is_new] = numbers.emplace(names[i], static_cast<int>(i));
    if (!is_new && std::find(own.begin(), own.end(), names[i]) != own.end())
      fail_usage(where, ": the class '", names[i], "' is two of those ", whose, ", numbers ", first->second, " and ", i,
                 ", so its images have no label; give each a name of its own");
  }
  std::vector<int> labels;
  std::vector<std::string> unknown;
  for (const std::string& name : own) {
    const auto found = numbers.find(name);
    labels.push_back(found == numbers.end() ? -1 : found->second);
    if (found == numbers.end()) unknown.push_back(name);
  }
  if (!unknown.empty() && are_numbers(own)) {
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int>(i);
    if (own.size() > names.size())
      fail_usage(where, ": has labels up to ", own.size() - 1, ", but the classes ", whose, " are ", names.size(), ": ",
                 some_of(names), dataset->findings().as_reasons());
  } else if (!unknown.empty()) {
    fail_usage(where, ": has ", unknown.size() == 1 ? "a class" : "classes", " that ",
               unknown.size() == 1 ? "is" : "are", " not among those ", whose, ": ", some_of(unknown),
               unknown.size() == 1 ? did_you_mean(unknown[0], names) : "", " (they are ", some_of(names), ")");
  }
  return relabel(std::move(dataset), std::move(labels), names);
}

std::unique_ptr<Dataset> rename_classes(std::unique_ptr<Dataset> dataset, const std::vector<std::string>& names) {
  const size_t classes = dataset->class_names().size();
  if (names.size() != classes)
    fail_usage(names.size(), " names for the ", classes, " classes of the data set; give one for each");
  std::vector<std::string> distinct;
  std::vector<int> labels;
  for (const std::string& name : names) {
    const auto found = std::find(distinct.begin(), distinct.end(), name);
    labels.push_back(static_cast<int>(found - distinct.begin()));
    if (found == distinct.end()) distinct.push_back(name);
  }
  return relabel(std::move(dataset), std::move(labels), std::move(distinct));
}

}  // namespace octet::data
