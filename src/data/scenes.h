// Scenes with known boxes, made of the pictures of a labeled dataset: a first dataset for a detector where none is at
// hand. The objects are real (Fashion-MNIST's clothes, say), where they stand is invented.
#pragma once
#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "vision/box.h"

namespace octet::data {

struct SceneOptions {
  int width = 320, height = 192;         // pixels
  int min_objects = 1, max_objects = 6;  // in a scene; fewer where no place is left
  int min_side = 28, max_side = 88;      // of an object's picture in the scene, pixels; at most the scene's sides
  float max_overlap = 0.1f;              // IoU of any two pictures
  float min_seen = 0;                    // share of an object's pixels that later ones must leave to be seen
  bool textured = false;                 // patterns on the ground
  int clutter = 0;                       // most shapes behind the objects that have no class
  bool masks = false;                    // objects get theirs
  uint64_t seed = 0;
};

struct Scene {
  Image image;  // RGB
  // Of which something is seen. Labels of the dataset; boxes tight around all of the object, also what others hide;
  // masks of what is seen.
  std::vector<vision::Object> objects;
  std::vector<float> seen;        // of each object: share of its pixels that is seen
  std::vector<int64_t> pictures;  // of each object: its index in the dataset
};

// Scene `index`: a function of (dataset, options, index). The background is a random smooth color field with noise,
// with what options add (scene_ground.h), which does not change where objects are; a picture's dark pixels are
// transparent (the datasets meant here have a black ground), the others are tinted. UserError (exit 2) for options out
// of range, and where the dataset has no labels.
Scene make_scene(const Dataset& pictures, const SceneOptions& options, int64_t index);

// Scenes 0 to count - 1 as a dataset, made anew whenever one is asked for. `pictures` must outlive it.
std::unique_ptr<Dataset> scene_dataset(const Dataset& pictures, const SceneOptions& options, int64_t count);

}  // namespace octet::data
