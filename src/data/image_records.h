// A data set of images with a class as ImageNet's TFRecord files (imagenet_tfrecord.h).
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace octet::data {

struct ImageRecordOptions {
  DatasetOptions source;
  int64_t num_shards = 0;                // 0: one for every kImagesOfShard
  int64_t label_offset = 1;              // the label of the first class
  bool shuffle = true;                   // else in the order of the source
  int64_t seed = 42;                     // of the random order
  std::filesystem::path text_of_synset;  // lines "n01440764 tench, Tinca tinca"; empty: image/class/text is the class
};
inline constexpr int64_t kImagesOfShard = 1250;  // as ImageNet's 1,281,167 in 1,024 shards
void describe(schema::Section& s, ImageRecordOptions& options);

struct WrittenRecords {
  std::vector<std::filesystem::path> files;
  int64_t images = 0;
  std::vector<int64_t> of_class;  // images, by label
  Findings findings;              // what was left out
};

// Writes FOLDER/NAME-00000-of-00008 and so on. JPEG and PNG files are copied as they are, other images become PNG;
// those whose first bytes cannot be read are left out. image/class/synset is the name of the class, where it is no
// number. The same images and options give the same bytes. What was written is removed again where something fails.
// UserError (exit 2) where the images have no class, or a shard would have more than 4 GiB, which it is in memory
// before it is written. `progress` is told how many images are done.
WrittenRecords write_image_records(const Dataset& dataset, const ImageRecordOptions& options,
                                   const std::filesystem::path& name,
                                   const std::function<void(int64_t)>& progress = {});

// The files that an earlier write_image_records() to that name left, whatever their number.
std::vector<std::filesystem::path> earlier_shards(const std::filesystem::path& name);

}  // namespace octet::data
