#include "train/fake_quant.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "numerics/quantize.h"
#include "train/ops_common.h"
#include "train/ops_fused.h"
#include "train/ops_kernels.h"
#include "train/parallel.h"

namespace octet::train {
namespace {

using quant::ScaleGradient;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct Bounds {
  at::Tensor low, high;  // of code - zero_point, float32, broadcast against x
};

Bounds bounds(const at::Tensor& x, const FakeQuantOptions& o) {
  const at::Tensor zero = o.zero_point.defined()
                              ? o.zero_point.to(x.device(), at::kFloat)
                              : at::zeros({}, at::TensorOptions().dtype(at::kFloat).device(x.device()));
  const at::Tensor z = along_axis(zero.reshape({-1}), o.axis, x.dim());
  return {static_cast<double>(o.qmin) - z, static_cast<double>(o.qmax) - z};
}

// Any device, any scale: the formula of numerics::fake_quantize in ATen operations.
struct Generic : torch::autograd::Function<Generic> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& scale,
                            const std::optional<at::Tensor>& offset, FakeQuantOptions o, at::ScalarType result) {
    if (offset) o.zero_point = zero_point_of(offset->detach(), scale.detach(), o);
    const Bounds b = bounds(x, o);
    const at::Tensor s = along_axis(scale.detach().reshape({-1}), o.axis, x.dim());
    const at::Tensor ratio = x.to(at::kFloat) / s, rounded = at::round(ratio);
    const bool pact = o.gradient == ScaleGradient::kPact, learned = o.gradient != ScaleGradient::kNo;
    const at::Tensor inside =
        pact ? (ratio > b.low).logical_and_(ratio < b.high) : (rounded >= b.low).logical_and_(rounded <= b.high);
    // + 0: a code has no negative zero.
    const at::Tensor codes = at::nan_to_num(at::minimum(at::maximum(rounded, b.low), b.high), 0) + 0;
    ctx->save_for_backward({inside, scale.detach().clone(), learned ? ratio : at::Tensor(),
                            learned ? codes : at::Tensor(), offset ? o.zero_point : at::Tensor()});
    ctx->saved_data["axis"] = o.axis;
    ctx->saved_data["codes"] = o.codes;
    ctx->saved_data["gradient"] = static_cast<int64_t>(o.gradient);
    ctx->saved_data["qmax"] = static_cast<int64_t>(o.qmax);
    ctx->saved_data["type"] = static_cast<int64_t>(x.scalar_type());
    return (o.codes ? codes : codes * s).to(result);
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &inside = saved[0], &scale = saved[1];
    const int64_t axis = ctx->saved_data["axis"].toInt();
    const at::Tensor s = along_axis(scale.detach().reshape({-1}), axis, inside.dim());
    const auto type = static_cast<at::ScalarType>(ctx->saved_data["type"].toInt());
    const at::ScalarType math = type == at::kDouble ? at::kDouble : at::kFloat;
    const bool codes = ctx->saved_data["codes"].toBool();
    const auto kind = static_cast<ScaleGradient>(ctx->saved_data["gradient"].toInt());
    const at::Tensor upstream = grads[0].to(math), g = codes ? upstream / s : upstream;
    at::Tensor grad_x = at::where(inside, g, 0).to(type), grad_scale, grad_offset;
    if (kind != ScaleGradient::kNo) {
      const at::Tensor &ratio = saved[2], &code = saved[3];
      // That of the number, also where codes are asked for: whoever multiplies them takes the scale as a constant.
      const at::Tensor of_inside = kind == ScaleGradient::kPact ? at::zeros({}, code.options()) : code - ratio;
      const at::Tensor of_clipped =
          kind == ScaleGradient::kLsqPlus ? code + along_axis(saved[4].reshape({-1}), axis, inside.dim()) : code;
      const double per_scale = static_cast<double>(inside.numel()) / static_cast<double>(scale.numel());
      const double qmax = static_cast<double>(ctx->saved_data["qmax"].toInt());
      const double factor = kind == ScaleGradient::kPact ? 1 / (qmax * qmax) : 1 / std::sqrt(per_scale * qmax);
      const auto of_each_scale = [&](const at::Tensor& local) {
        std::vector<int64_t> others;
        for (int64_t i = 0; i < inside.dim(); ++i)
          if (scale.numel() == 1 || i != axis) others.push_back(i);
        const at::Tensor sum = others.empty() ? local : local.sum(others);
        return (sum.reshape(scale.sizes()) * factor).to(scale.scalar_type());
      };
      grad_scale = of_each_scale(at::where(inside, of_inside, of_clipped) * g);
      if (kind == ScaleGradient::kLsqPlus) grad_offset = of_each_scale(at::where(inside, 0, g));
    }
    return {grad_x, grad_scale, grad_offset, {}, {}};
  }
};

// Rows of a dense tensor, each with its own scale (weights), or one row for the whole tensor. Float32 on the CPU.
struct Rows : torch::autograd::Function<Rows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& scale, FakeQuantOptions o,
                            at::ScalarType result) {
    const int64_t rows = scale.numel(), columns = x.numel() / rows, words = kernels::mask_words(columns);
    at::Tensor out = at::empty_like(x), mask = at::empty({rows, words}, at::kShort);
    const float* scales = scale.const_data_ptr<float>();
    const float zero = o.zero_point.defined() ? o.zero_point.to(at::kFloat).item<float>() : 0;
    parallel_for(rows, 1 + 32768 / (columns + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        kernels::Forward<float> f;
        f.channels = columns;
        f.x = x.const_data_ptr<float>() + row * columns;
        f.quantize = true;
        f.scale = scales[row];
        f.low = static_cast<float>(o.qmin) - zero;
        f.high = static_cast<float>(o.qmax) - zero;
        f.out_scale = o.codes ? 1 : f.scale;
        f.out = out.mutable_data_ptr<float>() + row * columns;
        f.mask = reinterpret_cast<uint16_t*>(mask.mutable_data_ptr<int16_t>()) + row * words;
        kernels::table<float>().forward(f, 0, 1);
      }
    });
    ctx->save_for_backward({mask, scale.detach().clone()});
    ctx->saved_data["codes"] = o.codes;
    ctx->saved_data["format"] = static_cast<int64_t>(x.suggest_memory_format());
    return out.to(result);
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &mask = saved[0], &scale = saved[1];
    const auto format = static_cast<at::MemoryFormat>(ctx->saved_data["format"].toInt());
    const at::Tensor g = grads[0].to(at::kFloat).contiguous(format);
    const int64_t rows = scale.numel(), columns = g.numel() / rows, words = mask.size(1);
    at::Tensor grad_x = at::empty_like(g);
    const float* scales = scale.const_data_ptr<float>();
    const bool codes = ctx->saved_data["codes"].toBool();
    parallel_for(rows, 1 + 32768 / (columns + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        kernels::Backward<float> b;
        b.channels = columns;
        b.grad = g.const_data_ptr<float>() + row * columns;
        b.mask = reinterpret_cast<const uint16_t*>(mask.const_data_ptr<int16_t>()) + row * words;
        b.factor = codes ? 1 / scales[row] : 1;
        b.grad_x = grad_x.mutable_data_ptr<float>() + row * columns;
        kernels::table<float>().backward(b, 0, 1);
      }
    });
    return {grad_x, {}, {}, {}};
  }
};

bool dense_from_axis_0(const at::Tensor& x) {
  return x.is_contiguous() || (x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast));
}

}  // namespace

at::Tensor fake_quantize(const at::Tensor& x, const at::Tensor& scale, const FakeQuantOptions& o,
                         at::ScalarType result) {
  const bool one_zero = !o.zero_point.defined() || o.zero_point.numel() == 1;
  const bool simple = x.device().is_cpu() && one_zero && o.gradient == ScaleGradient::kNo && x.numel() > 0;
  if (simple && scale.numel() > 1 && o.axis == 0 && x.scalar_type() == at::kFloat && dense_from_axis_0(x))
    return Rows::apply(x, scale, o, result);
  const bool has_kernels = has_pointwise(x.device(), x.scalar_type()) && has_pointwise(x.device(), result);
  if (simple && scale.numel() == 1 && has_kernels) {
    PointwiseOptions p;
    p.quantize = true;
    p.codes = o.codes;
    p.scale = scale.item<float>();
    const float zero = o.zero_point.defined() ? o.zero_point.to(at::kFloat).item<float>() : 0;
    p.low = static_cast<float>(o.qmin) - zero;
    p.high = static_cast<float>(o.qmax) - zero;
    // In bf16 a number is rounded twice; codes and float32 are exact.
    return pointwise(o.codes || x.scalar_type() == result ? x : x.to(result), p).to(result);
  }
  OCTET_CHECK(o.offset.defined() == (o.gradient == ScaleGradient::kLsqPlus));
  return Generic::apply(x, scale, o.offset.defined() ? std::optional(o.offset) : std::nullopt, o, result);
}

at::Tensor zero_point_of(const at::Tensor& offset, const at::Tensor& scale, const FakeQuantOptions& o) {
  return at::clamp(at::round(-offset / scale), o.qmin, o.qmax);
}

at::Tensor offset_of(const at::Tensor& zero_point, const at::Tensor& scale) {
  return -zero_point.to(at::kFloat) * scale;
}

at::Tensor usable_scale(const at::Tensor& scale) {
  return at::clamp_min(at::abs(scale), static_cast<double>(numerics::kMinScale));
}

at::Tensor current_scale(const at::Tensor& x, const at::Tensor& like, const FakeQuantOptions& o) {
  const at::NoGradGuard guard;
  const at::Tensor zero = o.zero_point.defined()
                              ? o.zero_point.to(x.device(), at::kFloat).reshape({-1})
                              : at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(x.device()));
  at::Tensor smallest, largest;
  if (like.numel() == 1) {
    std::tie(smallest, largest) = at::aminmax(x.detach());
  } else {
    at::Tensor rows = x.detach();
    if (o.axis == 0 && rows.dim() == 4) rows = rows.permute({0, 2, 3, 1});  // no copy where weights lie in NHWC order
    std::tie(smallest, largest) = at::aminmax(rows.movedim(o.axis, 0).flatten(1), 1);
  }
  const at::Tensor positive = static_cast<double>(o.qmax) - zero;
  at::Tensor negative = zero - static_cast<double>(o.qmin);
  // -128 has no counterpart: a symmetric range is divided by 127 on both sides.
  negative = at::where(negative == positive + 1, positive, negative);
  const auto share = [](const at::Tensor& magnitude, const at::Tensor& levels) {
    return at::where(levels > 0, at::clamp_min(magnitude, 0) / levels, 0);
  };
  const at::Tensor scale = at::maximum(share(largest.to(at::kFloat).reshape({-1}), positive),
                                       share(-smallest.to(at::kFloat).reshape({-1}), negative));
  return at::clamp_min(scale, static_cast<double>(numerics::kMinScale)).reshape(like.sizes());
}

void update_scale(const at::Tensor& scale, const at::Tensor& x, const FakeQuantOptions& o, float c) {
  const at::NoGradGuard guard;
  at::Tensor current = current_scale(x, scale, o);
  // Without a wait for the device.
  const at::Tensor largest = current.numel() > 1 ? current.max() : current;
  if (current.numel() > 1) current = at::maximum(current, largest * static_cast<double>(numerics::kLeastChannelScale));
  current = at::where(largest > static_cast<double>(numerics::kMinScale), current, scale);
  if (c == 1) {
    scale.copy_(current);
  } else {
    scale.copy_(scale * (1 - c) + current * c);
  }
}

}  // namespace octet::train
