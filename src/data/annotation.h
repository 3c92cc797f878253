// What a dataset tells about one image: as much as it has, no more. Tasks take from it what they learn.
#pragma once
#include <vector>

#include "vision/box.h"

namespace octet::data {

struct Annotation {
  int label = -1;                       // class of the whole image; -1: it has none
  std::vector<vision::Object> objects;  // of detection, in pixels of the image they come with
  // What is marked beside them and belongs to no class that is learned, as KITTI's DontCare: no label, no mask.
  std::vector<vision::Object> others = {};
  float weight = 1;  // of the image in the loss (DatasetOptions::source_weight)
};

}  // namespace octet::data
