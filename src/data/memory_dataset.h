// Images of one size that lie decoded in memory; what IDX and CIFAR files become.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace octet::data {

enum class PixelLayout { kInterleaved, kPlanar };  // HWC, CHW

class MemoryDataset : public Dataset {
 public:
  // A run of records in one file; image i of the part lies at `first + i * stride`, height * width * channels bytes.
  struct Part {
    std::string file;
    std::string bytes;
    size_t first = 0, stride = 0;
    int64_t count = 0;
  };
  struct Contents {
    std::vector<Part> parts;
    int height = 0, width = 0, channels = 0;
    PixelLayout layout = PixelLayout::kInterleaved;
    std::vector<int> labels;               // one per image, or none
    std::vector<std::string> class_names;  // one per class, or none
  };
  // `channels` as in DatasetOptions.
  MemoryDataset(Contents contents, int channels);

  int64_t size() const override { return size_; }
  Sample get(int64_t index) const override;
  Annotation truth(int64_t index) const override;
  std::string name(int64_t index) const override;
  uint64_t content_hash() const override { return content_hash_; }

 private:
  struct Place {
    const Part* part;
    int64_t record;
  };
  Place locate(int64_t index) const;

  Contents contents_;
  int channels_;
  int64_t size_ = 0;
  uint64_t content_hash_ = 0;
};

}  // namespace octet::data
