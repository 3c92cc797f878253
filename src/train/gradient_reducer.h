// Makes the gradients of all ranks their mean while backward still computes further ones: parameters are put into
// buckets in the order in which backward comes to them, and a bucket sets out when its last gradient is there.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "train/communicator.h"
#include "train/options/reduction.h"

namespace octet::train {

class GradientReducer {
 public:
  // `parameters`: float32 leaves with requires_grad, in the order of the forward pass. With one rank nothing is done.
  GradientReducer(std::vector<at::Tensor> parameters, Communicator& communicator, const ReductionOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Before the backward after which the gradients are needed. Others before it add to the gradients without any
  // traffic.
  void begin();
  // After it: every parameter has the mean gradient, zeros where no rank gave one.
  void finish();

 private:
  struct State;
  std::shared_ptr<State> state_;  // hooks of the parameters hold it, too
};

}  // namespace octet::train
