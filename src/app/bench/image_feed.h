// Images from files as an inference gets them: read, decoded, brought to the size of the input and normalized, in the
// thread that asks, one batch after the other.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "app/experiment_data.h"
#include "data/network_input.h"
#include "engine/plan.h"

namespace octet::app {

class ImageFeed {
 public:
  // For the input of `plan`, which must be one of images, as `spec` says that they become it. `paths` are files and
  // folders. UserError where there is no image, or it cannot be the input.
  ImageFeed(const spec::ExperimentSpec& spec, const std::vector<std::string>& paths, const engine::Plan& plan);
  // The next images; after the last one the first again. UserError where none can be decoded.
  void next(std::span<float> input);
  int64_t images() const { return stream_.dataset->size(); }

 private:
  data::NetworkInput input_;
  DataStream stream_;
};

}  // namespace octet::app
