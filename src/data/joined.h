// Several datasets as one.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace octet::data {

// The classes of one source; `where` names it in messages.
struct SourceClasses {
  std::string where;
  std::vector<std::string> names;  // empty: no labels
};

// The names of all, each once: the first source's in its order, then what each following one adds. UserError (exit 2)
// where a source has labels and another has none, and where one has numbers for classes (IDX) and another has names, as
// nothing says which number is which name.
std::vector<std::string> united_class_names(std::span<const SourceClasses> sources);

struct Source {
  std::unique_ptr<Dataset> dataset;
  std::string where;
};

// The images of all, one source after the other, labeled by united_class_names(). UserError as there, and where one
// source has a class for each image and another has objects.
std::unique_ptr<Dataset> join(std::vector<Source> sources);

}  // namespace octet::data
