#include "train/convolution.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "train/ops_common.h"
#include "train/ops_kernels.h"
#include "train/parallel.h"

namespace octet::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// Of a convolution that LibTorch takes: the padding is the same at both ends.
struct ConvolutionWindow {
  std::vector<int64_t> strides, padding, dilations;
};

// The symmetric part of `pads` goes to the convolution, the rest into explicit zeros.
std::vector<int64_t> split_padding(at::Tensor& x, const std::vector<int64_t>& pads) {
  const size_t n = pads.size() / 2;
  std::vector<int64_t> symmetric(n), extra(2 * n, 0);
  bool any = false;
  for (size_t i = 0; i < n; ++i) {
    symmetric[i] = std::max<int64_t>(std::min(pads[i], pads[i + n]), 0);
    const size_t at_axis = 2 * (n - 1 - i);  // constant_pad_nd counts from the last axis
    extra[at_axis] = pads[i] - symmetric[i];
    extra[at_axis + 1] = pads[i + n] - symmetric[i];
    any = any || extra[at_axis] != 0 || extra[at_axis + 1] != 0;
  }
  if (any) x = at::constant_pad_nd(x, extra);
  return symmetric;
}

bool all_are(at::IntArrayRef values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

// A strided 1x1 convolution reads some pixels alone: leaves those of `x`, for which a stride of 1 is then right. Where
// such a convolution has fewer channels than a vector of the CPU has lanes, oneDNN writes the gradient of its weights
// past the end of a workspace and corrupts the heap (uxlfoundation/oneDNN issue 6035, found in what LibTorch 2.15 has).
void keep_what_is_read(at::Tensor& x, const at::Tensor& weight, std::vector<int64_t>& strides,
                       const std::vector<int64_t>& padding) {
  constexpr int64_t kMaxLanes = 16;
  if (!at::GradMode::is_enabled() || !x.is_cpu() || x.size(1) >= kMaxLanes) return;
  if (!all_are(weight.sizes().slice(2), 1) || !all_are(padding, 0) || all_are(strides, 1)) return;
  const at::MemoryFormat format = x.suggest_memory_format();
  for (size_t i = 0; i < strides.size(); ++i)
    x = x.slice(static_cast<int64_t>(i) + 2, 0, std::nullopt, std::exchange(strides[i], 1));
  x = x.contiguous(format);
}

// Taps at the ends of a window that see nothing but padding, wherever it stands, change no output: the window is taken
// without them, so `weight`, the padding and, where there is one output along an axis, the stride become smaller. A
// deep network on small images has 5x5 windows on maps of one pixel, for which oneDNN has its slowest kernels alone.
void leave_out_unseen_taps(const at::Tensor& x, at::Tensor& weight, ir::WindowGeometry& g) {
  const size_t n = g.strides.size();
  for (size_t i = 0; i < n; ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t size = x.size(axis), taps = weight.size(axis), stride = g.strides[i], step = g.dilations[i];
    int64_t &begin = g.pads[i], &end = g.pads[i + n];
    const int64_t outputs = ir::window_output(size, taps, stride, step, begin, end, false);
    // The first output at which tap `k` stands on or behind pixel 0, and whether it stands before the image's end
    // there.
    const auto is_seen = [&](int64_t k) {
      const int64_t offset = k * step - begin;
      const int64_t output = offset >= 0 ? 0 : (stride - 1 - offset) / stride;
      return output < outputs && output * stride + offset < size;
    };
    int64_t first = 0, last = taps - 1;
    while (first < last && !is_seen(first)) ++first;
    while (last > first && !is_seen(last)) --last;
    if (last - first + 1 == taps) continue;
    weight = weight.slice(axis, first, last + 1);
    begin -= first * step;
    end -= (taps - 1 - last) * step;
    if (outputs > 1) continue;
    g.strides[i] = 1;
    end = (last - first) * step + 1 - size - begin;
  }
}

// Whether every channel has one weight of its own: then a product of tensors says it all.
bool is_channel_factor(const at::Tensor& x, const at::Tensor& weight, const ir::WindowGeometry& g, int64_t group) {
  return group == x.size(1) && weight.numel() == group && all_are(g.pads, 0) && all_are(g.strides, 1);
}

// A depthwise convolution in NHWC, with a gradient of the weights of our own. oneDNN has a kernel for it only where the
// window is at most three wide and not dilated, and the image larger; windows of 5x5 and 7x7 go to kernels for whole
// groups of channels, which take ten times as long, small images to one matrix product for each channel and image.
struct Depthwise : torch::autograd::Function<Depthwise> {
  static bool applies(const at::Tensor& x, const at::Tensor& weight, int64_t group) {
    return at::GradMode::is_enabled() && weight.requires_grad() && x.is_cpu() && x.dim() == 4 && group == x.size(1) &&
           weight.size(0) == group && x.scalar_type() == weight.scalar_type() &&
           (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) &&
           x.is_contiguous(at::MemoryFormat::ChannelsLast);
  }

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const ConvolutionWindow& w) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["strides"] = w.strides;
    ctx->saved_data["padding"] = w.padding;
    ctx->saved_data["dilations"] = w.dilations;
    ctx->saved_data["bias"] = bias.has_value();
    return at::convolution(x, weight, bias, w.strides, w.padding, w.dilations, false, {0, 0}, x.size(1));
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const at::Tensor grad = grads[0].contiguous(at::MemoryFormat::ChannelsLast);
    const auto ints = [&](const char* name) { return ctx->saved_data[name].toIntVector(); };
    const ConvolutionWindow w{.strides = ints("strides"), .padding = ints("padding"), .dilations = ints("dilations")};
    at::Tensor grad_x, grad_bias;
    if (ctx->needs_input_grad(0))
      grad_x = std::get<0>(at::convolution_backward(grad, x, weight, std::nullopt, w.strides, w.padding, w.dilations,
                                                    false, {0, 0}, x.size(1), {true, false, false}));
    if (ctx->saved_data["bias"].toBool()) grad_bias = grad.sum({0, 2, 3}, false, at::kFloat).to(weight.scalar_type());
    const at::Tensor sums = x.scalar_type() == at::kFloat ? of_weight<float>(x, grad, weight, w)
                                                          : of_weight<kernels::Bf16>(x, grad, weight, w);
    return {grad_x, sums.permute({2, 0, 1}).unsqueeze(1).to(weight.scalar_type()), grad_bias, at::Tensor()};
  }

 private:
  // [rows, columns, channels] of taps. Parts of the batch are summed apart and then together, the same ones for any
  // number of threads.
  template <typename T>
  static at::Tensor of_weight(const at::Tensor& x, const at::Tensor& grad, const at::Tensor& weight,
                              const ConvolutionWindow& w) {
    constexpr int64_t kParts = 8, kChannels = 32;
    const kernels::DepthwiseGradient<T> d{.channels = x.size(1),
                                          .in_h = x.size(2),
                                          .in_w = x.size(3),
                                          .out_h = grad.size(2),
                                          .out_w = grad.size(3),
                                          .kernel_h = weight.size(2),
                                          .kernel_w = weight.size(3),
                                          .stride_h = w.strides[0],
                                          .stride_w = w.strides[1],
                                          .dilation_h = w.dilations[0],
                                          .dilation_w = w.dilations[1],
                                          .pad_top = w.padding[0],
                                          .pad_left = w.padding[1],
                                          .x = static_cast<const T*>(x.const_data_ptr()),
                                          .grad = static_cast<const T*>(grad.const_data_ptr())};
    const int64_t parts = std::clamp<int64_t>(x.size(0), 1, kParts), blocks = (d.channels + kChannels - 1) / kChannels;
    const at::Tensor sums = at::zeros({parts, d.kernel_h, d.kernel_w, d.channels}, x.options().dtype(at::kFloat));
    float* const to = sums.mutable_data_ptr<float>();
    parallel_for(parts * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t part = task / blocks, block = task % blocks;
        kernels::table<T>().depthwise_gradient(d, x.size(0) * part / parts, x.size(0) * (part + 1) / parts,
                                               block * kChannels, std::min(d.channels, (block + 1) * kChannels),
                                               to + part * d.kernel_h * d.kernel_w * d.channels);
      }
    });
    return sums.sum(0);
  }
};

}  // namespace

at::Tensor convolution(at::Tensor x, at::Tensor weight, const at::Tensor& bias, ir::WindowGeometry g, int64_t group) {
  leave_out_unseen_taps(x, weight, g);
  if (is_channel_factor(x, weight, g, group)) {
    const at::Tensor y = x * along_axis(weight.reshape({-1}), 1, x.dim());
    return bias.defined() ? y + along_axis(bias.reshape({-1}), 1, x.dim()) : y;
  }
  const std::optional<at::Tensor> added = bias.defined() ? std::optional(bias) : std::nullopt;
  const ConvolutionWindow w{.strides = g.strides, .padding = split_padding(x, g.pads), .dilations = g.dilations};
  if (Depthwise::applies(x, weight, group)) return Depthwise::apply(x, weight, added, w);
  std::vector<int64_t> strides = w.strides;
  keep_what_is_read(x, weight, strides, w.padding);
  return at::convolution(x, weight, added, strides, w.padding, w.dilations, false,
                         std::vector<int64_t>(w.padding.size(), 0), group);
}

}  // namespace octet::train
