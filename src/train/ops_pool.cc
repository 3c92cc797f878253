// Pooling, reductions and ArgMax.
#include <algorithm>
#include <limits>

#include "ir/infer.h"
#include "train/ops_common.h"

namespace octet::train {
namespace {

using ir::OpKind;

// A window over two spatial axes; what ceil_mode adds at the end is kept apart, since averages never count it.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, begin, end, ceil_extra;
  bool symmetric() const {
    for (size_t i = 0; i < kernel.size(); ++i)
      if (begin[i] != end[i] || ceil_extra[i] != 0 || 2 * begin[i] > kernel[i]) return false;
    return true;
  }
  bool dilated() const {
    return std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; });
  }
  // For constant_pad_nd, which counts from the last axis.
  std::vector<int64_t> padding(bool with_pads, bool with_extra) const {
    const size_t n = kernel.size();
    std::vector<int64_t> pad(2 * n);
    for (size_t i = 0; i < n; ++i) {
      pad[2 * (n - 1 - i)] = with_pads ? begin[i] : 0;
      pad[2 * (n - 1 - i) + 1] = (with_pads ? end[i] : 0) + (with_extra ? ceil_extra[i] : 0);
    }
    return pad;
  }
};

Window window(const ir::Node& node, const std::vector<int64_t>& spatial) {
  const ir::WindowGeometry g = ir::window_geometry(node, spatial, node.get_ints("kernel_shape"));
  const size_t n = spatial.size();
  Window w{g.kernel,
           g.strides,
           g.dilations,
           {g.pads.begin(), g.pads.begin() + n},
           {g.pads.begin() + n, g.pads.end()},
           std::vector<int64_t>(n, 0)};
  for (size_t i = 0; i < n; ++i) {
    const int64_t out = ir::window_output(spatial[i], g.kernel[i], g.strides[i], g.dilations[i], w.begin[i], w.end[i],
                                          node.get_int("ceil_mode") != 0);
    const int64_t covered = (out - 1) * g.strides[i] + (g.kernel[i] - 1) * g.dilations[i] + 1;
    w.ceil_extra[i] = std::max<int64_t>(covered - (spatial[i] + w.begin[i] + w.end[i]), 0);
  }
  return w;
}

at::Tensor max_pool(const ir::Node& node, const at::Tensor& x, const Window& w) {
  if (w.symmetric()) return at::max_pool2d(x, w.kernel, w.strides, w.begin, w.dilations);
  const at::Tensor padded = at::constant_pad_nd(x, w.padding(true, true), -std::numeric_limits<double>::infinity());
  return at::max_pool2d(padded, w.kernel, w.strides, {0, 0}, w.dilations);
}

at::Tensor window_sum(const at::Tensor& padded, const Window& w) {
  if (!w.dilated()) return at::avg_pool2d(padded, w.kernel, w.strides, {0, 0}, false, true, 1);
  const int64_t channels = padded.size(1);
  const at::Tensor ones = at::ones({channels, 1, w.kernel[0], w.kernel[1]}, padded.options());
  return at::convolution(padded, ones, std::nullopt, w.strides, std::vector<int64_t>{0, 0}, w.dilations, false,
                         std::vector<int64_t>{0, 0}, channels);
}

at::Tensor average_pool(const ir::Node& node, const at::Tensor& x, const Window& w) {
  const bool include_pad = node.get_int("count_include_pad") != 0;
  if (w.symmetric() && !w.dilated()) return at::avg_pool2d(x, w.kernel, w.strides, w.begin, false, include_pad);
  at::Tensor counted = at::ones({1, 1, x.size(2), x.size(3)}, x.options().dtype(at::kFloat));
  counted = at::constant_pad_nd(counted, w.padding(true, false), include_pad ? 1 : 0);
  counted = at::constant_pad_nd(counted, w.padding(false, true));
  const at::Tensor sum = window_sum(at::constant_pad_nd(x, w.padding(true, true)), w);
  return sum / window_sum(counted, w).to(x.scalar_type());
}

// The sum of codes, which is exact, and what it still has to be multiplied and divided by.
Slot pending_mean(const at::Tensor& sum, const at::Tensor& scale, int64_t count) {
  return {.value = sum, .form = Slot::Form::kPending, .scale = scale, .axis = 1, .count = count};
}

bool is_integer_sum(const Run& run, const Slot& s) {
  return run.integer_sums && s.form == Slot::Form::kPending && !s.offset.defined() && s.count == 1;
}

// Pools over one or two spatial axes; one becomes two with a window of 1.
StepFunction pool(const ir::Node& node, const Wiring& w) {
  const size_t n = node.get_ints("kernel_shape").size();
  require(n == 1 || n == 2, node_text(node), ": pooling over ", n, " spatial axes cannot be executed; 1 or 2 can");
  const bool maximum = node.kind == OpKind::kMaxPool;
  return [w, n, maximum, node = &node](Run& run) {
    Slot s = run.slots[w.in[0]];
    if (!maximum || !(s.is_tensor_codes() || is_integer_sum(run, s))) s = Slot{.value = run.plain(w.in[0])};
    at::Tensor x = s.value;
    Window win = window(*node, {x.sizes().begin() + 2, x.sizes().end()});
    if (n == 1) {
      x = x.unsqueeze(-1);
      for (auto* v : {&win.kernel, &win.strides, &win.dilations}) v->push_back(1);
      for (auto* v : {&win.begin, &win.end, &win.ceil_extra}) v->push_back(0);
    }
    at::Tensor y = maximum ? max_pool(*node, x, win) : average_pool(*node, x, win);
    s.value = n == 1 ? y.squeeze(-1) : y;  // the largest code is the code of the largest; so it is of sums
    run.slots[w.out[0]] = s;
  };
}

std::vector<int64_t> spatial_axes(const at::Tensor& x) {
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < x.dim(); ++i) axes.push_back(i);
  return axes;
}

StepFunction reduce(const ir::Node& node, const Wiring& w) {
  const std::vector<int64_t> given = constant_ints(node, 1, "axes");
  const bool keep = node.get_int("keepdims") != 0, noop = node.get_int("noop_with_empty_axes") != 0;
  return [=, kind = node.kind](Run& run) {
    std::vector<int64_t> axes = given;
    const at::Tensor x = kind == OpKind::kReduceMax ? run.plain(w.in[0]) : run.precise(w.in[0]);
    if (axes.empty() && noop) return run.set(w.out[0], x);
    for (int64_t i = 0; axes.size() < static_cast<size_t>(x.dim()) && given.empty(); ++i) axes.push_back(i);
    run.set(w.out[0], kind == OpKind::kReduceMax    ? at::amax(x, axes, keep)
                      : kind == OpKind::kReduceMean ? at::mean(x, axes, keep)
                                                    : at::sum(x, axes, keep));
  };
}

StepFunction arg_max(const ir::Node& node, const Wiring& w) {
  const int64_t axis = node.get_int("axis");
  const bool keep = node.get_int("keepdims") != 0, last = node.get_int("select_last_index") != 0;
  return [=](Run& run) {
    const at::Tensor x = run.plain(w.in[0]);
    // argmax of LibTorch does not promise which of equal elements it takes, so the position decides: the first maximum
    // is the one with the largest count of elements from it to the end.
    const at::Tensor is_max = x == at::amax(x, {axis}, true);
    at::Tensor rank = at::arange(x.size(axis), at::TensorOptions().dtype(at::kLong).device(x.device()));
    rank = last ? rank + 1 : x.size(axis) - rank;
    rank = along_axis(rank, axis < 0 ? axis + x.dim() : axis, x.dim());
    const at::Tensor found = at::amax(is_max.to(at::kLong) * rank, {axis}, keep);
    run.set(w.out[0], last ? found - 1 : x.size(axis) - found);
  };
}

}  // namespace

StepFunction compile_pool(const ir::Node& node, const Wiring& w) {
  switch (node.kind) {
    case OpKind::kMaxPool:
    case OpKind::kAveragePool:
      return pool(node, w);
    case OpKind::kGlobalAveragePool:
      return [w](Run& run) {
        if (const Slot& s = run.slots[w.in[0]]; run.integer_sums && s.is_tensor_codes()) {
          const at::Tensor sum = at::sum(s.value, spatial_axes(s.value), true);
          run.slots[w.out[0]] = pending_mean(sum, s.scale, s.value.numel() / sum.numel());
          return;
        }
        const at::Tensor x = run.precise(w.in[0]);
        run.set(w.out[0], at::mean(x, spatial_axes(x), true));
      };
    case OpKind::kGlobalMaxPool:
      return [w](Run& run) {
        const at::Tensor x = run.plain(w.in[0]);
        run.set(w.out[0], at::amax(x, spatial_axes(x), true));
      };
    case OpKind::kReduceMean:
    case OpKind::kReduceSum:
    case OpKind::kReduceMax:
      return reduce(node, w);
    case OpKind::kArgMax:
      return arg_max(node, w);
    default:
      break;
  }
  OCTET_CHECK(false, node_text(node), " is not a pooling or a reduction");
}

}  // namespace octet::train
