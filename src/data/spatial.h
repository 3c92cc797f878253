// Where an image comes to lie in the network's input, as NVIDIA TAO says it: a part of it, in some size
// (`preprocessing`), and how that moves at random in training (`spatial_augmentation`). Both are matrices (affine.h).
#pragma once
#include <cstdint>

#include "data/affine.h"
#include "data/counter_rng.h"
#include "schema/enum_names.h"

namespace octet::data {

// Of every image, in training and evaluation.
struct PreprocessingOptions {
  int64_t crop_left = 0, crop_top = 0, crop_right = 0, crop_bottom = 0;  // pixels; right or bottom 0: all of the image
  double scale_width = 0, scale_height = 0;  // of what is cut; 0: enable_auto_resize decides
  bool enable_auto_resize = true;            // what is cut is resized to the network's input; else it keeps its size
  double min_bbox_width = 0, min_bbox_height = 0;  // pixels of the input
  double min_visibility = 0;                       // 0 .. 1, share of a box's area

  bool crops() const { return crop_right > crop_left && crop_bottom > crop_top; }
  bool scales() const { return scale_width > 0 && scale_height > 0; }
  bool moves_pixels() const { return crops() || scales() || !enable_auto_resize; }
};
void describe(schema::Section& s, PreprocessingOptions& options);

// From an image of `height` x `width` pixels to an input of `out_height` x `out_width`. With `scale_first` the crop is
// in pixels of the scaled image, as TAO multiplies its matrices.
Affine preprocessing_matrix(const PreprocessingOptions& options, int height, int width, int out_height, int out_width,
                            bool scale_first = false);

// Of every image in training, by random numbers of its own. Nothing by default.
struct SpatialOptions {
  double hflip_probability = 0, vflip_probability = 0;
  double rotate_rad_max = 0, rotate_probability = 1;
  double zoom_min = 1, zoom_max = 1;  // more than 1: larger
  double translate_max_x = 0, translate_max_y = 0;
};
void describe(schema::Section& s, SpatialOptions& options);

// What one image gets, in this order.
struct SpatialChange {
  bool hflip = false, vflip = false;
  double radians = 0;  // about the middle of the input
  double zoom = 1;     // the part of the input from (zoom_x, zoom_y) on comes to lie at (0, 0) and is enlarged by this
  double zoom_x = 0, zoom_y = 0;
  int translate_x = 0, translate_y = 0;  // pixels

  // For an input of `height` x `width` pixels.
  Affine matrix(int height, int width) const;
};

// Angle and translation are uniform; so is the zoom, of which the window is anywhere in the input (where it is larger
// than that, the input is anywhere in it). Takes nine numbers of `random` whatever the options, so that one option does
// not change what another draws. `tao_compatible`: no vertical flip, and every image is rotated (TAO reads
// vflip_probability and rotate_probability and uses neither).
SpatialChange choose_spatial(const SpatialOptions& options, int height, int width, bool tao_compatible,
                             CounterRng& random);

}  // namespace octet::data
