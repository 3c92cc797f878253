// A folder of images with a file of objects for each, as KITTI and PASCAL VOC have them.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/objects/annotated_set.h"

namespace octet::data {

struct LabelFolder {
  std::filesystem::path root;            // names of images are told from here
  std::filesystem::path images, labels;  // folders
  std::string ending;                    // of the files in `labels`: ".txt"
  // Throws DecodeError (image.h) with what is wrong and where.
  AnnotationFile (*parse)(std::string_view);
  std::vector<std::string> chosen;  // names of images without endings, in this order; empty: all, sorted
};

// Images and annotations are found by name. What lacks the other, or cannot be read, is counted and left out.
// UserError where the folder has no image, or two of the same name.
AnnotatedSet read_label_folder(const LabelFolder& folder);

// Where DatasetOptions name no folder of labels: the first of the names that is a folder in `root`, else a UserError.
std::filesystem::path folder_in(const std::filesystem::path& root, const std::vector<const char*>& names);

}  // namespace octet::data
