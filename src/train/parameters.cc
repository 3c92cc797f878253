#include "train/parameters.h"

#include <ATen/ATen.h>

#include <utility>

#include "base/error.h"
#include "train/precision.h"

namespace octet::train {

std::vector<NamedParameter> classify_parameters(const Executor& executor, bool master_weights) {
  std::vector<NamedParameter> out;
  for (const auto& [name, tensor] : executor.named_parameters()) {
    NamedParameter p{name, tensor};
    const ir::Value* value = executor.graph().find_value(name);
    OCTET_CHECK(value != nullptr, name);
    for (const ir::Node* user : value->users) {
      const bool normalizes =
          user->kind == ir::OpKind::kBatchNormalization || user->kind == ir::OpKind::kLayerNormalization;
      p.is_norm |= normalizes;
      const bool quantizes = user->kind == ir::OpKind::kFakeQuantize;
      p.is_bias |= user->input(2) == value && !normalizes && !quantizes;
      p.is_scale |= quantizes && user->get_string("state") != ir::kLearnedClip && user->input(0) != value;
    }
    if (master_weights && is_low(tensor.scalar_type())) p.master = tensor.detach().to(at::kFloat);
    out.push_back(std::move(p));
  }
  return out;
}

}  // namespace octet::train
