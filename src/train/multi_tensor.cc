#include "train/multi_tensor.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "train/cuda/update_kernels_cuda.h"
#include "train/parallel.h"
#include "train/update_formulas.h"

namespace octet::train {
namespace {

using kernels::Storage;
using kernels::UpdateArrays;
using kernels::UpdateKind;
using kernels::UpdateRule;

Storage storage_of(const at::Tensor& t) {
  if (t.scalar_type() == at::kBFloat16) return Storage::kBFloat16;
  if (t.scalar_type() == at::kHalf) return Storage::kFloat16;
  OCTET_CHECK(t.scalar_type() == at::kFloat);
  return Storage::kFloat32;
}

// Where a step is computed: by kernels of the CPU, those of a CUDA device, or by ATen's operators.
enum class Way { kCpu, kCuda, kOperators };

Way way_of(std::span<const UpdateTensor> tensors) {
  if (tensors.empty()) return Way::kCpu;
  const at::Device device = tensors[0].weight.device();
  for (const UpdateTensor& t : tensors)
    if (t.weight.scalar_type() == at::kDouble || t.weight.device() != device) return Way::kOperators;
  if (device.is_cpu()) return Way::kCpu;
  return device.is_cuda() && kernels::cuda::runs_on(device.index()) ? Way::kCuda : Way::kOperators;
}

UpdateArrays arrays_of(const UpdateTensor& t) {
  const auto floats = [](const at::Tensor& s) { return s.defined() ? s.data_ptr<float>() : nullptr; };
  UpdateArrays a;
  a.gradient = {t.gradient.const_data_ptr(), storage_of(t.gradient)};
  a.weight = {t.weight.mutable_data_ptr(), storage_of(t.weight)};
  if (t.copy.defined()) a.copy = {t.copy.mutable_data_ptr(), storage_of(t.copy)};
  a.first = floats(t.first);
  a.second = floats(t.second);
  return a;
}

// A range of the elements of one tensor. Its borders are those of the tensor or multiples of kChunk, whoever does it.
struct Chunk {
  size_t tensor;
  int64_t begin, end;
};
constexpr int64_t kChunk = 1 << 16;

// Every chunk of every tensor; the threads get neighboring ones, about as many elements each.
template <typename F>
void for_chunks(const std::vector<Chunk>& chunks, F f) {
  std::vector<size_t> bounds = {0};  // of shares of about kChunk elements
  int64_t elements = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    elements += chunks[i].end - chunks[i].begin;
    if (elements < kChunk && i + 1 < chunks.size()) continue;
    bounds.push_back(i + 1);
    elements = 0;
  }
  parallel_for(static_cast<int64_t>(bounds.size()) - 1, 1, [&](int64_t first, int64_t last) {
    for (size_t i = bounds[static_cast<size_t>(first)]; i < bounds[static_cast<size_t>(last)]; ++i) f(i);
  });
}

std::vector<Chunk> chunks_of(std::span<const UpdateTensor> tensors) {
  std::vector<Chunk> out;
  for (size_t i = 0; i < tensors.size(); ++i)
    for (int64_t begin = 0; begin < tensors[i].weight.numel(); begin += kChunk)
      out.push_back({i, begin, std::min(begin + kChunk, tensors[i].weight.numel())});
  return out;
}

void update_by_kernels(std::span<const UpdateTensor> tensors) {
  const kernels::UpdateTable& table = kernels::update_table();
  const std::vector<Chunk> chunks = chunks_of(tensors);
  std::vector<UpdateArrays> arrays;
  for (const UpdateTensor& t : tensors) arrays.push_back(arrays_of(t));
  std::vector<kernels::LambNorms> norms(chunks.size());
  bool lamb = false;
  for (const UpdateTensor& t : tensors) lamb |= t.rule.kind == UpdateKind::kLamb;
  for_chunks(chunks, [&](size_t i) {
    const auto& [tensor, begin, end] = chunks[i];
    const UpdateRule& rule = tensors[tensor].rule;
    if (rule.kind == UpdateKind::kLamb) {
      norms[i] = table.lamb_moments(arrays[tensor], rule, begin, end);
    } else {
      table.update(arrays[tensor], rule, begin, end);
    }
  });
  if (!lamb) return;
  std::vector<kernels::LambNorms> whole(tensors.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    whole[chunks[i].tensor].weight += norms[i].weight;
    whole[chunks[i].tensor].update += norms[i].update;
  }
  for_chunks(chunks, [&](size_t i) {
    const auto& [tensor, begin, end] = chunks[i];
    const UpdateRule& rule = tensors[tensor].rule;
    if (rule.kind != UpdateKind::kLamb) return;
    const float rate = kernels::lamb_rate(rule, std::sqrt(whole[tensor].weight), std::sqrt(whole[tensor].update));
    table.lamb_update(arrays[tensor], rule, rate, begin, end);
  });
}

double square_sum_by_kernels(std::span<const UpdateTensor> tensors, float factor) {
  const kernels::UpdateTable& table = kernels::update_table();
  const std::vector<Chunk> chunks = chunks_of(tensors);
  std::vector<double> sums(chunks.size());
  for_chunks(chunks, [&](size_t i) {
    const at::Tensor& gradient = tensors[chunks[i].tensor].gradient;
    sums[i] =
        table.square_sum({gradient.const_data_ptr(), storage_of(gradient)}, factor, chunks[i].begin, chunks[i].end);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// Calls f(tensors, workspace, place) for the kernels of a CUDA device. Nothing of Octet has streams of its own, so what
// is before and after is on the default one, too.
template <typename F>
auto on_device(std::span<const UpdateTensor> tensors, F f) {
  std::vector<kernels::cuda::DeviceUpdate> out;
  for (const UpdateTensor& t : tensors) out.push_back({arrays_of(t), t.rule, t.weight.numel()});
  const at::Device device = tensors[0].weight.device();
  const at::Tensor workspace = at::empty({static_cast<int64_t>(kernels::cuda::workspace_bytes(out))},
                                         tensors[0].weight.options().dtype(at::kByte));
  return f(std::span<const kernels::cuda::DeviceUpdate>(out), workspace.mutable_data_ptr(),
           kernels::cuda::Place{.device = device.index()});
}

// By single operators.
void update_one(const UpdateTensor& t) {
  const UpdateRule& rule = t.rule;
  const at::ScalarType type = t.weight.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor weight = t.weight.to(type), g = t.gradient.to(type) * rule.gradient_factor, first = t.first,
             second = t.second;
  if (rule.kind == UpdateKind::kSgd) {
    if (!rule.decay_last && rule.decay != 0) g = g + weight * rule.decay;
    if (first.defined()) {
      first.mul_(rule.momentum).add_(g);
      g = rule.nesterov ? g + first * rule.momentum : first;
    }
    if (rule.decay_last && rule.decay != 0) g = g + weight * rule.decay;
    weight = weight - g * rule.rate;
  } else {
    const bool lamb = rule.kind == UpdateKind::kLamb;
    if (!lamb && !rule.decoupled && rule.decay != 0) g = g + weight * rule.decay;
    first.add_((g - first) * rule.gain1);
    second.mul_(rule.beta2).add_(g * g * rule.gain2);
    at::Tensor step = first * rule.correction1 / (second.sqrt() * rule.correction2 + rule.eps);
    if (lamb || rule.decoupled) step = step + weight * rule.decay;
    at::Tensor rate = at::full({}, rule.rate, weight.options());
    if (lamb && (rule.decay != 0 || rule.always_adapt)) {
      const at::Tensor size = weight.norm(), length = step.norm();
      rate = at::where((size > 0) & (length > 0), rate * size / length, rate);
    }
    weight = weight - step * rate;
  }
  t.weight.copy_(weight);
  if (t.copy.defined()) t.copy.copy_(weight);
}

// Whether ATen has a fused optimizer for it: float32, and PyTorch's rules alone.
bool is_fused(const UpdateTensor& t) {
  const UpdateRule& rule = t.rule;
  const bool known = rule.kind == UpdateKind::kSgd ? !rule.decay_last : rule.kind == UpdateKind::kAdam && rule.step > 0;
  return known && t.weight.scalar_type() == at::kFloat && t.gradient.scalar_type() == at::kFloat;
}

// Tensors of one rule.
void update_fused(std::span<const UpdateTensor> tensors) {
  const UpdateRule& rule = tensors[0].rule;
  std::vector<at::Tensor> weights, gradients, first, second;
  for (const UpdateTensor& t : tensors) {
    weights.push_back(t.weight);
    gradients.push_back(rule.gradient_factor == 1 ? t.gradient : t.gradient * rule.gradient_factor);
    if (t.first.defined()) first.push_back(t.first);
    if (t.second.defined()) second.push_back(t.second);
  }
  if (rule.kind == UpdateKind::kSgd) {
    at::_fused_sgd_(weights, gradients, first, rule.decay, rule.momentum, rule.rate, 0.0, rule.nesterov, false, false);
  } else {
    const std::vector<at::Tensor> steps(weights.size(), at::full({}, rule.step, weights[0].options()));
    const double beta1 = 1 - static_cast<double>(rule.gain1), beta2 = 1 - static_cast<double>(rule.gain2);
    const auto run = [&](auto function) {
      function(weights, gradients, first, second, at::TensorList(), steps, rule.rate, beta1, beta2, rule.decay,
               rule.eps, false, false, std::nullopt, std::nullopt);
    };
    rule.decoupled ? run([](auto&&... a) { at::_fused_adamw_(a...); })
                   : run([](auto&&... a) { at::_fused_adam_(a...); });
  }
  for (const UpdateTensor& t : tensors)
    if (t.copy.defined()) t.copy.copy_(t.weight);
}

}  // namespace

double square_sum(std::span<const UpdateTensor> tensors, double factor) {
  const Way way = way_of(tensors);
  if (way == Way::kCpu) return square_sum_by_kernels(tensors, static_cast<float>(factor));
  if (way == Way::kCuda)
    return on_device(tensors, [&](auto... a) { return kernels::cuda::square_sum(a..., static_cast<float>(factor)); });
  std::vector<at::Tensor> sums;
  for (const UpdateTensor& t : tensors) sums.push_back(t.gradient.to(at::kDouble).mul(factor).square().sum());
  return at::stack(sums).sum().item<double>();
}

void update(std::span<const UpdateTensor> tensors) {
  switch (way_of(tensors)) {
    case Way::kCpu:
      return update_by_kernels(tensors);
    case Way::kCuda:
      return on_device(tensors, [](auto... a) { kernels::cuda::update(a...); });
    case Way::kOperators:
      return update_by_operators(tensors);
  }
}

void update_by_operators(std::span<const UpdateTensor> tensors) {
  at::NoGradGuard no_grad;
  std::map<std::pair<float, float>, std::vector<UpdateTensor>> fused;  // by what tensors of one step may differ in
  for (const UpdateTensor& t : tensors) is_fused(t) ? fused[{t.rule.rate, t.rule.decay}].push_back(t) : update_one(t);
  for (const auto& [rule, group] : fused) update_fused(group);
}

}  // namespace octet::train
