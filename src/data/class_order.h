// Labels by the names of classes. A data set numbers its classes by what lies in it; a folder that lacks one class
// would number all that follow differently from the folder that the network learned from.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace octet::data {

// True when the names say nothing but the number of the class: "0", "1", ...
bool are_numbers(const std::vector<std::string>& class_names);

// `dataset` with the label labels[i] for its class i, of the classes `names`; -1: objects of that class are left out.
std::unique_ptr<Dataset> relabel(std::unique_ptr<Dataset> dataset, std::vector<int> labels,
                                 std::vector<std::string> names);

// `dataset` with the label i for the class `names[i]`, whatever the order of its own. Classes that it lacks are fine.
// One that is not among `names` is a UserError (exit 2) that says which, starting with `where`; `whose` says whose the
// names are ("of the training images"); so is one that `names` has twice. Data sets without labels stay as they are,
// and so do those whose classes have numbers instead of names, when `names` are no numbers: number i is then names[i].
std::unique_ptr<Dataset> label_by_names(std::unique_ptr<Dataset> dataset, const std::vector<std::string>& names,
                                        const std::string& where, const std::string& whose);

// `dataset` with the name `names[i]` for its class i. Classes of the same name become one; the labels number the names
// in the order in which they first come. UserError (exit 2) where there are not as many names as classes.
std::unique_ptr<Dataset> rename_classes(std::unique_ptr<Dataset> dataset, const std::vector<std::string>& names);

}  // namespace octet::data
