// What single layers of a quantized network read, and what they should make of it.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"
#include "train/executor.h"

namespace octet::train {

class LayerExamples {
 public:
  // So many of the images of `loader`'s first epoch. `graph` has scales (frozen); its only input takes [N, C, H, W].
  // UserError where there is no image.
  LayerExamples(const ir::Graph& graph, data::Loader& loader, int64_t images);

  int64_t images() const { return images_; }
  // Constants of `graph`, the same network, are what the quantized one computes with from now on.
  void load_from(const ir::Graph& graph) { quantized_.load_from(graph); }

  // Batch after batch, images along axis 0: what the quantized network gives `node` as its first input, and what the
  // float network makes there; until `sink` returns false.
  void each(const ir::Node& node, const std::function<bool(const at::Tensor& inputs, const at::Tensor& targets)>& sink);

 private:
  std::vector<at::Tensor> batches_;
  int64_t images_ = 0;
  Executor whole_, quantized_;
};

}  // namespace octet::train
