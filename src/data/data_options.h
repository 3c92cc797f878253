// Everything that an experiment says about its images.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/class_mapping.h"
#include "data/dataset.h"
#include "data/input_preset.h"
#include "data/sampling.h"

namespace octet::data {

// One dataset, or several that are joined (joined.h).
using Sources = std::vector<DatasetOptions>;

struct DataOptions {
  Sources train, val, test;  // empty: not named
  Sources calibration;       // empty: the training images, without augmentation
  // Of training images. The size of the output and the mode are decided by training_transform().
  TransformOptions transform;
  InputPreset preset = InputPreset::kNone;  // what `transform` has that no key says
  bool random_resized_crop = false;
  bool exif_orientation = false;  // turn image files as their EXIF data say
  int64_t threads = 0;            // 0: as many as CPUs
  int64_t cache_mb = 1024;        // 2^20 bytes of decoded images that a training keeps
  int64_t seed = 1;               // of order and augmentation

  // What an experiment leaves open, and whoever reads it finds (spec/automatic.h).
  bool auto_mean = false, auto_std = false;

  // Of train, val, test and calibration.
  ClassMapping classes;
  SamplingMode sampling = SamplingMode::kUserDefined;  // of the sources of `train`
  int64_t validation_fold = -1;                        // of those of `train`, which validates instead; -1: none

  // `train`, without the fold that validates.
  Sources training_sources() const { return folded(train, true); }
  // `val`, or the fold of `train`.
  Sources validation_sources() const { return validation_fold < 0 ? val : folded(train, false); }
  // What calibration reads: `calibration`, else what training does. Empty when neither is named.
  Sources calibration_sources() const { return calibration.empty() ? training_sources() : calibration; }
  // What `octet evaluate` reads: `test`, else what validates.
  Sources evaluation_sources() const { return test.empty() ? validation_sources() : test; }

 private:
  Sources folded(Sources sources, bool others) const;
};
void describe(schema::Section& s, DataOptions& data);

// Their paths, for messages: "a, b".
std::string paths_of(const Sources& sources);

// Chooses the half that is meant where an experiment names none: train for `train` and `calibration`, test for the
// others. Formats that name their own splits stay as they are.
void resolve_splits(DataOptions& data);

// The classes of the training images, in the order of the labels: those that `classes` names, else the sources'. As
// cheap as the formats allow. Empty where they have none.
std::vector<std::string> training_class_names(const DataOptions& data);

// The transform of training images for a network that takes `height` x `width` pixels.
TransformOptions training_transform(const DataOptions& data, int64_t height, int64_t width);
// Which objects are left out of images that are moved so, in training and evaluation.
ClipRule clip_rule(const DataOptions& data);

// What is odd about mean and std, as a sentence; empty where nothing is. The commonest mistake is to give the values
// for pixels of 0 .. 255.
std::string doubtful_normalization(const TransformOptions& transform);

// No mean of pixels in [0, 1] is so large, whatever the normalization.
inline constexpr double kLargestMean = 1.5;
// Why a mean beyond that is refused, with the values that are meant, to stand behind its name; empty where none is.
std::string impossible_mean(const std::vector<double>& mean);

}  // namespace octet::data
