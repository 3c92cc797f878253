#include "train/diagnosis.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/byte_stream.h"
#include "base/error.h"
#include "ir/ops.h"
#include "train/step.h"

namespace octet::train {
namespace {

// "...: 3 of its 128 values are infinite or NaN"
std::string told(const std::string& what, const at::Tensor& tensor, int64_t count) {
  return str(what, ": ", count, " of its ", tensor.numel(), " values are infinite or NaN");
}

int64_t count_of(const at::Tensor& tensor) {
  return tensor.numel() - at::isfinite(tensor).sum().item<int64_t>();
}

std::string first_of_ranks(const std::vector<std::string>& of_ranks) {
  int64_t lowest = -1;
  std::string out;
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    ByteReader in(of_ranks[rank]);
    const auto order = in.get<int64_t>();
    if (order < 0 || (lowest >= 0 && order >= lowest)) continue;
    lowest = order;
    out = in.get_text() + (of_ranks.size() > 1 ? str(", on rank ", rank) : "");
  }
  return out;
}

}  // namespace

NotFinite first_not_finite(Executor& executor, const data::Batch& batch) {
  const at::NoGradGuard no_grad;
  NotFinite out;
  int64_t order = 0;
  const auto look = [&](const at::Tensor& tensor, const auto& name) {
    if (out.order < 0)
      if (const int64_t count = count_of(tensor); count > 0) out = {order, told(name(), tensor, count)};
    ++order;
  };
  for (const auto& named : executor.named_parameters())
    look(named.second, [&] { return str("the parameter '", named.first, "', since the update before"); });
  look(images_of(batch), [] { return std::string("the images of the batch"); });
  std::vector<at::Tensor> before;
  for (const auto& [name, buffer] : executor.named_buffers()) before.push_back(buffer.clone());
  const int64_t step = executor.step();
  executor.set_tap([&](const ir::Value& value, const at::Tensor& tensor) {
    look(tensor, [&] {
      const ir::Node* node = value.producer;
      return node ? str("'", value.name, "' of node '", node->name, "' (", ir::op_info(node->kind).name, ")")
                  : str("the input '", value.name, "'");
    });
  });
  executor.forward({images_of(batch)}, Mode::kTrain);
  executor.set_tap({});
  executor.set_step(step);
  size_t i = 0;
  for (const auto& [name, buffer] : executor.named_buffers()) at::Tensor(buffer).copy_(before[i++]);
  return out;
}

std::string first_not_finite(Executor& executor, const data::Batch& batch, Communicator& communicator) {
  const NotFinite here = first_not_finite(executor, batch);
  ByteWriter bytes;
  bytes.put(here.order);
  bytes.put_text(here.what);
  return combined(communicator, bytes.take(), first_of_ranks);
}

}  // namespace octet::train
