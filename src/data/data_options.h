// Everything that an experiment says about its images.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "data/augment.h"
#include "data/dataset.h"

namespace octet::data {

struct DataOptions {
  std::optional<DatasetOptions> train, val, test;
  std::optional<DatasetOptions> calibration;  // absent: the training images, without augmentation
  // Of training images. The size of the output and the mode are decided by training_transform().
  TransformOptions transform;
  bool random_resized_crop = false;
  bool exif_orientation = false;  // turn image files as their EXIF data say
  int64_t threads = 0;            // 0: as many as CPUs
  int64_t seed = 1;               // of order and augmentation

  // What calibration reads: `calibration`, else `train`. nullptr when neither is named.
  const DatasetOptions* calibration_source() const { return calibration ? &*calibration : train ? &*train : nullptr; }
  // What `octet evaluate` reads: `test`, else `val`.
  const DatasetOptions* evaluation_source() const { return test ? &*test : val ? &*val : nullptr; }
};
void describe(schema::Section& s, DataOptions& data);

// Chooses the half that is meant where an experiment names none: train for `train` and `calibration`, test for the
// others. Formats that name their own splits stay as they are.
void resolve_splits(DataOptions& data);

// The transform of training images for a network that takes `height` x `width` pixels.
TransformOptions training_transform(const DataOptions& data, int64_t height, int64_t width);

// What is odd about mean and std, as a sentence; empty where nothing is. The commonest mistake is to give the values
// for pixels of 0 .. 255.
std::string doubtful_normalization(const TransformOptions& transform);

}  // namespace octet::data
