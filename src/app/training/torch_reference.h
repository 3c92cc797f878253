// The reference that LibTorch computes: training's own arithmetic, fast enough for whole networks.
#pragma once
#include "app/reference.h"

namespace octet::app {

class TorchReference : public Reference {
 public:
  std::unique_ptr<GraphRun> whole(const ir::Graph& graph) const override;
  std::unique_ptr<GraphRun> pieces(const ir::Graph& graph, size_t scores) const override;
  std::unique_ptr<GraphRun> exact(const ir::Graph& graph) const override;
};

}  // namespace octet::app
