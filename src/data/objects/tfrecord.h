// Folders of TFRecord files, in the layout of TAO's DetectNet_v2: the objects of all images, the images beside them.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/objects/annotated_set.h"

namespace octet::data {

// Which part of a data set a file is, by its name: NAME-fold-001-of-002-shard-00003-of-00010.
struct FoldName {
  int64_t fold = 0, folds = 0;
};
std::optional<FoldName> fold_of(const std::string& file_name);
// The opposite; without the part about folds or shards where there are none (0).
std::string record_file_name(const std::string& name, int64_t fold, int64_t folds, int64_t shard, int64_t shards);

// Files that DatasetOptions::labels means: a file, all files of a folder, or those that fit a pattern with * and ? in
// its last part; sorted. Hidden files, JSON files and idx-* (indices of DALI) are not meant. UserError where there are
// none.
std::vector<std::filesystem::path> record_files(const std::filesystem::path& pattern);

// The records of the files above, those of the wanted folds (DatasetOptions::fold), of images in DatasetOptions::path,
// with the ending DatasetOptions::image_extension, or any that is found. UserError, naming file and record, where a
// checksum does not hold; where folds are wanted, and a file names none or there is no such fold.
AnnotatedSet read_tfrecord(const DatasetOptions& options);

}  // namespace octet::data
