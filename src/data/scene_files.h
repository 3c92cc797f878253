// Scenes (scenes.h) as the data sets that detectors are trained with.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/scenes.h"
#include "schema/enum_names.h"

namespace octet::data {

enum class SceneFormat {
  kVoc,    // JPEGImages, Annotations, ImageSets/Main/SPLIT.txt; masks: SegmentationObject and SegmentationClass
  kKitti,  // SPLIT/image_2, SPLIT/label_2; masks: SPLIT/instance and SPLIT/semantic
  kCoco,   // SPLIT, annotations/instances_SPLIT.json with the objects' outlines; masks: SPLIT_instance and
           // SPLIT_semantic, too
};
std::span<const schema::EnumName<SceneFormat>> enum_names(SceneFormat);

// The scenes from number `first` on, as PNG files with six digits; the scenes of `splits` follow one another. Masks,
// where `options.masks` asks for them, are gray PNG files of the same names: in one the number of the object in the
// order of the annotations, from 1, in the other its label + 1; 0 is the ground. The share that is seen is KITTI's
// occlusion: 0 from 0.7 on, 1 from 0.4 on, else 2. `progress` is told how many are written. Splits that are there
// already stay. UserError where a file cannot be written, and (exit 2) for masks of more than 255 objects.
void write_scenes(const Dataset& pictures, const SceneOptions& options, SceneFormat format,
                  const std::vector<std::pair<std::string, int64_t>>& splits, const std::filesystem::path& folder,
                  int64_t first = 0, const std::function<void(int64_t)>& progress = {});

}  // namespace octet::data
