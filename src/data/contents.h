// What a dataset holds, counted.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace octet::data {

struct Contents {
  int64_t images = 0;
  int64_t objects = 0;            // of all images; crowds and difficult ones, too
  std::vector<int64_t> of_class;  // objects of each class, or images where those have the classes
};
// From the annotations; no image is decoded.
Contents contents_of(const Dataset& dataset);

// "160 images, 175 objects (car 120, bus 55)"
std::string contents_text(const Contents& contents, const std::vector<std::string>& class_names);

}  // namespace octet::data
