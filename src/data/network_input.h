// How a network takes images: from the shape of its input to the floats that it is fed.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/loader.h"

namespace octet::data {

struct NetworkInput {
  std::string name;
  int64_t batch = 0;                               // images at a time that the file asks for; 0: any number
  int64_t channels = -1, height = -1, width = -1;  // -1: the file leaves it open
  bool nhwc = false;                               // [N, H, W, C], as Keras networks have it
  bool single = false;                             // [C, H, W] or [H, W, C]: one image, without an axis for others

  // Of that many images of these sizes, in the order of the network.
  std::vector<int64_t> shape(int64_t images, int64_t c, int64_t h, int64_t w) const;
};

// `shape` of the input `name`, below 0 where a size is open. Three or one channels: [N, 3, H, W], [N, 1, H, W] or, with
// the channels last, [N, H, W, 3], [N, H, W, 1]; where both readings are possible the first. The same without N is one
// image, as torchvision's detectors take it. UserError (exit 2) that
// names input and shape for anything else.
NetworkInput read_network_input(const std::string& name, const std::vector<int64_t>& shape);

// UserError (exit 2) naming both where images of these sizes do not fit the input.
void require_fit(const NetworkInput& input, int64_t channels, int64_t height, int64_t width);

// The images of `batch` (NCHW) in the order of the input, at the front of `out`; what is behind them repeats the last
// one, so that a fixed batch is full of real images.
void arrange(const Batch& batch, const NetworkInput& input, std::span<float> out);

}  // namespace octet::data
