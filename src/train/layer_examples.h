// What single layers of a quantized network read, and what they should make of it.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"

namespace octet::train {

class LayerExamples {
 public:
  // So many of the images of `loader`'s first epoch. `graph` has scales (frozen); its only input takes [N, C, H, W]. It
  // must outlive this object, and is read anew for each layer. UserError where there is no image.
  LayerExamples(const ir::Graph& graph, data::Loader& loader, int64_t images);

  int64_t images() const { return images_; }

  // Batch after batch, images along axis 0: what the quantized network gives `node` as its first input, and what the
  // float network makes there; until `sink` returns false. What lies behind `node` is not computed.
  void each(const ir::Node& node, const std::function<bool(const at::Tensor& inputs, const at::Tensor& targets)>& sink);

 private:
  const ir::Graph& graph_;
  ir::Graph whole_;
  std::vector<at::Tensor> batches_;
  int64_t images_ = 0;
};

}  // namespace octet::train
