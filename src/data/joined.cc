#include "data/joined.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "data/class_order.h"

namespace octet::data {
namespace {

class Joined : public Dataset {
 public:
  Joined(std::vector<std::unique_ptr<Dataset>> parts, std::vector<std::string> names) : parts_(std::move(parts)) {
    class_names_ = std::move(names);
    int64_t end = 0;
    for (const auto& part : parts_) {
      ends_.push_back(end += part->size());
      findings_.add(part->findings());
      content_hash_ = hash64(str(part->content_hash(), ' ', part->size(), '\n'), content_hash_);
    }
  }
  int64_t size() const override { return ends_.back(); }
  Sample get(int64_t index) const override {
    const Place at = place(index);
    return at.part.get(at.index);
  }
  Annotation truth(int64_t index) const override {
    const Place at = place(index);
    return at.part.truth(at.index);
  }
  std::string name(int64_t index) const override {
    const Place at = place(index);
    return at.part.name(at.index);
  }
  uint64_t content_hash() const override { return content_hash_; }

 private:
  struct Place {
    const Dataset& part;
    int64_t index;  // in the part
  };
  Place place(int64_t index) const {
    OCTET_CHECK(index >= 0 && index < size(), "image ", index, " of ", size());
    const auto part = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    return {*parts_[part], index - (part > 0 ? ends_[part - 1] : 0)};
  }

  std::vector<std::unique_ptr<Dataset>> parts_;
  std::vector<int64_t> ends_;  // of the parts, in the whole
  uint64_t content_hash_ = 0;
};

bool all_digits(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Where a source numbers its classes, the others must, too.
void require_one_kind_of_names(std::span<const SourceClasses> sources) {
  const auto numbered = std::find_if(sources.begin(), sources.end(),
                                     [](const SourceClasses& s) { return !s.names.empty() && are_numbers(s.names); });
  if (numbered == sources.end()) return;
  for (const SourceClasses& other : sources)
    for (const std::string& name : other.names)
      if (!all_digits(name))
        fail_usage(numbered->where, ": its classes are the numbers 0 to ", numbered->names.size() - 1, ", and ",
                   other.where, " has the class '", name,
                   "'; which number stands for which name is not known, so they cannot be joined");
}

void require_one_kind_of_labels(const std::vector<Source>& sources) {
  const auto has_objects = [](const Source& s) { return s.dataset->labeled() && s.dataset->truth(0).label < 0; };
  for (const Source& source : sources)
    if (has_objects(source) != has_objects(sources[0])) {
      const auto& [with, without] =
          has_objects(source) ? std::pair(source.where, sources[0].where) : std::pair(sources[0].where, source.where);
      fail_usage(with, ": tells the objects in its images, and ", without,
                 " one class for each image; they cannot be joined");
    }
}

}  // namespace

std::vector<std::string> united_class_names(std::span<const SourceClasses> sources) {
  for (const SourceClasses& source : sources)
    if (source.names.empty() != sources[0].names.empty())
      fail_usage(source.names.empty() ? source.where : sources[0].where, ": its images have no labels, and those of ",
                 source.names.empty() ? sources[0].where : source.where, " have; they cannot be joined");
  require_one_kind_of_names(sources);
  std::vector<std::string> out;
  std::set<std::string> known;
  for (const SourceClasses& source : sources)
    for (const std::string& name : source.names)
      if (known.insert(name).second) out.push_back(name);
  return out;
}

std::unique_ptr<Dataset> join(std::vector<Source> sources) {
  OCTET_CHECK(!sources.empty());
  if (sources.size() == 1) return std::move(sources[0].dataset);
  std::vector<SourceClasses> classes;
  for (const Source& source : sources) classes.push_back({source.where, source.dataset->class_names()});
  const std::vector<std::string> names = united_class_names(classes);
  require_one_kind_of_labels(sources);
  std::vector<std::unique_ptr<Dataset>> parts;
  for (Source& source : sources)
    parts.push_back(label_by_names(std::move(source.dataset), names, source.where, "of all sources"));
  return std::make_unique<Joined>(std::move(parts), names);
}

}  // namespace octet::data
