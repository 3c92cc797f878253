// BatchNormalization, LayerNormalization, LRN and Dropout.
#include <ATen/CPUGeneratorImpl.h>

#include "train/ops_common.h"
#include "train/sync_batch_norm.h"

namespace octet::train {
namespace {

StepFunction batch_norm(const ir::Node& node, const Wiring& w) {
  for (size_t i = 1; i < w.out.size(); ++i)
    require(w.out[i] < 0, node_text(node), ": only the first output of BatchNormalization can be used");
  // ONNX's momentum is the weight of the old value, LibTorch's that of the new one.
  const double momentum = 1.0 - static_cast<double>(node.get_float("momentum"));
  const double epsilon = node.get_float("epsilon");
  const bool fixed = keeps_statistics(node);
  return [=](Run& run) {
    const at::Tensor x = run.plain(w.in[0]);
    const at::Tensor gamma = run.plain(w.in[1]), beta = run.plain(w.in[2]);
    const bool batch_statistics = run.training && !run.batch_norm_frozen && !fixed;
    if (batch_statistics && run.statistics)
      return run.set(w.out[0], sync_batch_norm(x, gamma, beta, run.plain(w.in[3]), run.plain(w.in[4]), momentum,
                                               epsilon, *run.statistics));
    require(!batch_statistics || x.numel() / x.size(1) > 1,
            "batch norm over one value a channel has no variance: use a larger batch or image");
    run.set(w.out[0], std::get<0>(at::native_batch_norm(x, gamma, beta, run.plain(w.in[3]), run.plain(w.in[4]),
                                                        batch_statistics, momentum, epsilon)));
  };
}

StepFunction layer_norm(const ir::Node& node, const Wiring& w) {
  for (size_t i = 1; i < w.out.size(); ++i)
    require(w.out[i] < 0, node_text(node), ": only the first output of LayerNormalization can be used");
  const double epsilon = node.get_float("epsilon");
  const int64_t axis = node.get_int("axis");
  return [=](Run& run) {
    const at::Tensor x = run.precise(w.in[0]), scale = run.precise(w.in[1]);
    const at::Tensor shift = w.in.size() > 2 ? run.precise(w.in[2]) : at::Tensor();
    const auto together = x.sizes().slice(static_cast<size_t>(axis < 0 ? axis + x.dim() : axis));
    run.set(w.out[0], run.flow(at::layer_norm(x, together, scale, shift, epsilon)));
  };
}

StepFunction local_response_norm(const ir::Node& node, const Wiring& w) {
  const int64_t size = node.get_int("size");
  require(size >= 1, node_text(node), ": size is ", size, ", expected 1 or more");
  const double alpha = node.get_float("alpha"), beta = node.get_float("beta"), bias = node.get_float("bias");
  return [=](Run& run) {
    const at::Tensor x = run.precise(w.in[0]);
    const int64_t channels = x.size(1), before = (size - 1) / 2, after = size - 1 - before;
    const at::Tensor square = x * x;
    at::Tensor sum = square;
    for (int64_t shift = 1; shift <= std::max(before, after) && shift < channels; ++shift) {
      // The neighbors `shift` above and below, where they exist.
      std::vector<int64_t> pad(2 * x.dim(), 0);
      const size_t front = 2 * (x.dim() - 2);  // of the channel axis, counted from the last
      const auto shifted = [&](int64_t start, int64_t at_front, int64_t at_back) {
        pad[front] = at_front;
        pad[front + 1] = at_back;
        return at::constant_pad_nd(square.narrow(1, start, channels - shift), pad);
      };
      if (shift <= after) sum = sum + shifted(shift, 0, shift);
      if (shift <= before) sum = sum + shifted(0, shift, 0);
    }
    run.set(w.out[0], run.flow(x / at::pow(sum * (alpha / static_cast<double>(size)) + bias, beta)));
  };
}

uint64_t mix(uint64_t a, uint64_t b) {  // splitmix64 of both
  uint64_t z = a * 0x9e3779b97f4a7c15ull + b + 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

uint64_t text_hash(const std::string& text) {
  uint64_t h = 0;
  for (const char c : text) h = mix(h, static_cast<unsigned char>(c));
  return h;
}

// The mask depends on seed, step and the node's name alone, so that a resumed run draws the same ones. It is drawn on
// the CPU for any device, for the same reason.
StepFunction dropout(const ir::Node& node, const Wiring& w) {
  const std::vector<float> given = constant_floats(node, 1);
  const double ratio = given.empty() ? 0.5 : given[0];
  require(ratio >= 0 && ratio < 1, node_text(node), ": ratio is ", ratio, ", expected 0 <= ratio < 1");
  const int64_t own_seed = node.get_int("seed");
  return [=, name = text_hash(node.name)](Run& run) {
    const at::Tensor x = run.plain(w.in[0]);
    const bool drop = run.training && ratio > 0;
    at::Tensor mask;
    if (drop) {
      const uint64_t seed = mix(mix(run.seed + static_cast<uint64_t>(own_seed), static_cast<uint64_t>(run.step)), name);
      mask = at::empty(x.sizes(), at::kBool).bernoulli_(1 - ratio, at::detail::createCPUGenerator(seed)).to(run.device);
      run.set(w.out[0], x * mask * (1 / (1 - ratio)));
    } else {
      run.set(w.out[0], x);
    }
    if (w.out.size() > 1 && w.out[1] >= 0)
      run.set(w.out[1], drop ? mask : at::ones(x.sizes(), x.options().dtype(at::kBool)));
  };
}

}  // namespace

StepFunction compile_norm(const ir::Node& node, const Wiring& w) {
  switch (node.kind) {
    case ir::OpKind::kBatchNormalization:
      return batch_norm(node, w);
    case ir::OpKind::kLayerNormalization:
      return layer_norm(node, w);
    case ir::OpKind::kLRN:
      return local_response_norm(node, w);
    case ir::OpKind::kDropout:
      return dropout(node, w);
    default:
      break;
  }
  OCTET_CHECK(false, node_text(node), " is not a normalization");
}

}  // namespace octet::train
