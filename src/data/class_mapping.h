// Which classes are learned, and which names in the files stand for each.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace octet::data {

struct ClassMapping {
  std::vector<std::string> target_classes;  // in the order of the labels; empty: those of `targets`, as they first come
  std::vector<std::pair<std::string, std::string>>
      targets;  // a name in the files, and the class it is; empty: each its own
  bool empty() const { return target_classes.empty() && targets.empty(); }
  // Of the classes, in the order of the labels; empty where the files decide.
  std::vector<std::string> names() const;
};

// `dataset` with the classes of the mapping. Objects, and images of classifiers, of other classes are left out: as a
// remark of findings(), with their number and what may have been meant. Names match exactly. UserError (exit 2),
// starting with `where`, where nothing is left.
std::unique_ptr<Dataset> map_classes(std::unique_ptr<Dataset> dataset, const ClassMapping& mapping,
                                     const std::string& where);

}  // namespace octet::data
