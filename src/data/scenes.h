// Scenes with known boxes, made of the pictures of a labeled dataset: a first dataset for a detector where none is at
// hand. The objects are real (Fashion-MNIST's clothes, say), where they stand is invented.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "vision/box.h"

namespace octet::data {

struct SceneOptions {
  int width = 320, height = 192;         // pixels
  int min_objects = 1, max_objects = 6;  // in a scene; fewer where no place is left
  int min_side = 28, max_side = 88;      // of an object's picture in the scene, pixels; at most the scene's sides
  float max_overlap = 0.1f;              // IoU of any two pictures
  uint64_t seed = 0;
};

struct Scene {
  Image image;                          // RGB
  std::vector<vision::Object> objects;  // tight boxes; labels of the dataset
  std::vector<int64_t> pictures;        // of each object: its index in the dataset
};

// Scene `index`: a function of (dataset, options, index). The background is a random smooth color field with noise; a
// picture's dark pixels are transparent (the datasets meant here have a black ground), the others are tinted. UserError
// (exit 2) for options out of range, and where the dataset has no labels.
Scene make_scene(const Dataset& pictures, const SceneOptions& options, int64_t index);

// Scenes 0 to count - 1 as a dataset, made anew whenever one is asked for. `pictures` must outlive it.
std::unique_ptr<Dataset> scene_dataset(const Dataset& pictures, const SceneOptions& options, int64_t count);

// The scenes from number `first` on as a VOC folder (annotated_images.h): JPEGImages with PNG files, Annotations, and
// ImageSets/Main/SPLIT.txt for each of `splits`, whose scenes follow one another. `progress` is told how many are
// written. UserError where a file cannot be.
void write_scenes(const Dataset& pictures, const SceneOptions& options,
                  const std::vector<std::pair<std::string, int64_t>>& splits, const std::filesystem::path& folder,
                  int64_t first = 0, const std::function<void(int64_t)>& progress = {});

}  // namespace octet::data
