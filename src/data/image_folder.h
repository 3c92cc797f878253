// A directory of image files: one sub-directory per class, or a flat one without labels.
#pragma once
#include <memory>

#include "data/dataset.h"

namespace octet::data {

// Classes are the sub-directories in the order of their names (bytes), images the files below them with a known ending,
// again sorted; names that begin with a dot are skipped. Files are opened only when they are read. UserError where
// there is no image at all, a class without one, or images both beside and inside class directories.
std::unique_ptr<Dataset> open_image_folder(const DatasetOptions& options);

// The names of its class directories in the order of their labels; empty for a flat folder.
std::vector<std::string> image_folder_class_names(const DatasetOptions& options);

}  // namespace octet::data
