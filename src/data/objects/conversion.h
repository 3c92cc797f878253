// Data sets of objects as TAO's TFRecords: divided into partitions, one of which may validate, and these into shards.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/objects/annotated_set.h"
#include "schema/enum_names.h"

namespace octet::data {

enum class PartitionMode {
  kRandom,    // images are dealt at random; of two partitions the first, which validates, has val_split percent
  kSequence,  // images that follow one another stay together, as the frames of a video should
};
std::span<const schema::EnumName<PartitionMode>> enum_names(PartitionMode);

// TAO's keys of kitti_config. What differs from TAO: images are shuffled before they are divided, where TAO takes the
// first val_split percent by name; any number of partitions may be random; sequences need no file.
struct ConversionOptions {
  DatasetOptions source;
  PartitionMode partition_mode = PartitionMode::kRandom;
  int64_t num_partitions = 2;
  double val_split = 20;  // percent
  int64_t num_shards = 10;
  // JSON: {"sequence": ["frame", ...], ...}, frames as the images are named, with or without their folder. Empty: runs
  // of images in their order.
  std::filesystem::path kitti_sequence_to_frames_file;
  int64_t seed = 42;
};
void describe(schema::Section& s, ConversionOptions& options);

// The indices of the images of each partition, in random order, so that shards are alike. In sequences of a file, these
// are dealt longest first to the partitions from the last to the first, as TAO does; images that are in none are left
// out. Empty partitions are possible. UserError where frames of the file are missing, or it is none.
std::vector<std::vector<size_t>> partition(const std::vector<AnnotatedImage>& images, const ConversionOptions& options);

struct WrittenPartition {
  int64_t images = 0;
  std::vector<std::filesystem::path> files;
  std::map<std::string, int64_t> objects;  // by class
};

// Writes FOLDER/NAME-fold-000-of-002-shard-00000-of-00010 and so on (record_file_name), without a part about folds
// where there is one partition, or shards where their number is 0. A partition of fewer images than shards has as many
// shards as images; an empty one has no file. `set` is what drop_unusable() left. What was written is removed again
// where something fails. `progress` is told how many images are written.
std::vector<WrittenPartition> write_tfrecords(const AnnotatedSet& set, const ConversionOptions& options,
                                              const std::filesystem::path& name,
                                              const std::function<void(int64_t)>& progress = {});

// The files that an earlier write_tfrecords() to that name left.
std::vector<std::filesystem::path> earlier_records(const std::filesystem::path& name);

// The set that `source` names. UserError (exit 2) for a format without objects.
AnnotatedSet read_objects(const DatasetOptions& source);

}  // namespace octet::data
