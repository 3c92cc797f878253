#include "train/saved_tensors.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "train/constants.h"

namespace octet::train {

const ir::Tensor& saved_entry(const checkpoint::NamedTensors& state, const std::string& key) {
  const auto it = state.find(key);
  if (it == state.end())
    fail("the checkpoint holds no '", key, "'; was it written by another network, loss or optimizer?");
  return it->second;
}

void restore(at::Tensor& target, const checkpoint::NamedTensors& state, const std::string& key) {
  const at::Tensor saved = to_torch(saved_entry(state, key));
  const ir::Shape want(target.sizes().begin(), target.sizes().end());
  const ir::Shape have(saved.sizes().begin(), saved.sizes().end());
  if (have != want)
    fail("the checkpoint's '", key, "' has the shape ", ir::shape_string(have), ", ", ir::shape_string(want),
         " is expected");
  at::NoGradGuard no_grad;
  target.copy_(saved);
}

}  // namespace octet::train
