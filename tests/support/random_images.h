// Images for tests that only need some.
#pragma once
#include <random>
#include <string>

#include "data/loader.h"
#include "data/memory_dataset.h"

namespace octet::testing {

// Of random 16x16 pixels, three channels, six of them or `images`, and a loader that gives them.
class RandomImages {
 public:
  explicit RandomImages(int64_t batch_size = 1, int images = 6)
      : dataset_(contents(images), 3), loader(dataset_, {.batch_size = batch_size, .transform = transform()}) {}

 private:
  static constexpr int kBytes = 3 * 16 * 16;
  static data::MemoryDataset::Contents contents(int images) {
    std::mt19937 random(4);
    std::string bytes;
    for (int i = 0; i < images * kBytes; ++i) bytes += static_cast<char>(random());
    data::MemoryDataset::Contents out;
    out.parts.push_back({.file = "pixels", .bytes = bytes, .first = 0, .stride = kBytes, .count = images});
    out.height = 16, out.width = 16, out.channels = 3;
    return out;
  }
  static data::TransformOptions transform() {
    data::TransformOptions out;
    out.height = 16, out.width = 16;
    return out;
  }
  data::MemoryDataset dataset_;

 public:
  data::Loader loader;
};

}  // namespace octet::testing
