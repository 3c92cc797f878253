// The reference that needs no LibTorch: every operator by ir::evaluate(), which sums in float64. Seconds for an image
// of a ResNet-50, so it computes the model from the engine's own codes, piece by piece, and not as a whole.
#pragma once
#include "app/reference.h"

namespace octet::app {

class PlainReference : public Reference {
 public:
  explicit PlainReference(int threads = 0);  // 0: as many as CPUs
  std::unique_ptr<GraphRun> whole(const ir::Graph& graph) const override;
  std::unique_ptr<GraphRun> pieces(const ir::Graph& graph, size_t scores) const override;
  std::unique_ptr<GraphRun> exact(const ir::Graph& graph) const override;

 private:
  int threads_;
};

}  // namespace octet::app
