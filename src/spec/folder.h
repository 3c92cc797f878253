// The experiment for a folder of images that nobody has described: what `octet train --data FOLDER` trains with.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace octet::spec {

struct FolderExperiment {
  std::string yaml;                  // with comments; parse_experiment() takes it
  std::vector<std::string> remarks;  // what was found, a sentence each, for the user to hear
};

// Takes
//   - train/, beside it val/, valid/ or validation/, and test/, whatever their case, each with a sub-folder a class;
//   - a folder of class folders alone;
//   - MNIST's and CIFAR's files under their usual names.
// Where no images validate, a fifth of the training images does (a tenth of 2,000 or more), chosen by the names of
// their files, so that it stays the same whatever is added; test images never do. Batch size, rate, epochs and
// augmentation go by the number of images and the size that `arch` takes. UserError (exit 2) where the folder holds
// none of these; objects in images (VOC, COCO, KITTI, YOLO) are named as what they are.
FolderExperiment experiment_of_folder(const std::filesystem::path& folder, const std::string& arch);

}  // namespace octet::spec
