// Options that may be given by class: what holds for all, and for some classes by their names what differs.
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "schema/schema.h"

namespace octet::tasks {

template <typename Options>
class ByClass {
 public:
  ByClass() = default;
  ByClass(Options of_all) : all(std::move(of_all)) {}  // NOLINT: options of all classes are options by class

  Options all;
  schema::NamedList<Options> named;

  // From here on classes are known by their labels too (Task::name_classes). `key` names the map for the message.
  // UserError (exit 2) for a name that no class has.
  void resolve(const std::vector<std::string>& names, const std::string& key) {
    by_label_.assign(names.size(), all);
    for (const auto& [name, options] : named) {
      const auto at = std::find(names.begin(), names.end(), name);
      if (names.empty())
        fail_usage(key, " names the class '", name, "', but neither model nor images name their classes");
      if (at == names.end())
        fail_usage(key, " names the class '", name, "', which is none of the classes", did_you_mean(name, names));
      by_label_[static_cast<size_t>(at - names.begin())] = options;
    }
  }
  // Those of all where classes were not named.
  const Options& of(int label) const {
    return static_cast<size_t>(label) < by_label_.size() ? by_label_[static_cast<size_t>(label)] : all;
  }

 private:
  std::vector<Options> by_label_;
};

// The keys of all classes, and the map of those by class under TAO's name; `describe` of Options has the keys.
template <typename Options>
void describe_by_class(schema::Section& section, ByClass<Options>& options) {
  describe(section, options.all);
  section.map("target_class_config", options.named, std::function<Options()>([&options] { return options.all; }))
      .help("Of single classes, by name: keys that differ from those above.");
}

}  // namespace octet::tasks
