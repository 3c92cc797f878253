// Chains of nodes, and products of codes, as calls of pointwise().
#include <ATen/ATen.h>

#include <utility>

#include "train/fake_quant.h"
#include "train/ops_fused.h"
#include "train/precision.h"

namespace octet::train {

at::Tensor finish_pending(const Run& run, const Slot& s) {
  const bool kernel = has_pointwise(s.value.device(), s.value.scalar_type()) && !s.scale.requires_grad();
  if (kernel) {
    PointwiseOptions o;
    o.scale_x = s.scale.reshape({-1});
    if (s.count > 1) o.scale_x = o.scale_x / static_cast<double>(s.count);
    o.offset = s.offset;
    return pointwise(s.value, o);
  }
  OCTET_CHECK(s.count == 1);  // only with integer sums, which the kernel takes
  at::Tensor y = s.value.to(run.master) * along_axis(s.scale.reshape({-1}), 1, s.value.dim());
  if (s.offset.defined()) y = y + along_axis(s.offset, 1, s.value.dim());
  return run.flow(y);
}

namespace {

// The first operand, and what it still has to be multiplied by.
at::Tensor chain_input(Run& run, int slot, PointwiseOptions* o) {
  const Slot& s = run.slots[slot];
  if (s.form == Slot::Form::kNumber || s.scale.requires_grad() || (s.is_codes() && !s.is_tensor_codes()))
    return run.flow(run.plain(slot));
  o->scale_x = s.scale.reshape({-1});
  o->offset = s.offset;
  return s.value;
}

void chain_residual(Run& run, int slot, PointwiseOptions* o) {
  const Slot& s = run.slots[slot];
  if (s.is_tensor_codes() && !s.scale.requires_grad()) {
    o->residual = s.value;
    o->residual_scale = s.scale.item<float>();
  } else {
    o->residual = run.plain(slot);
  }
}

// Whether the chain begins with a sum of codes, or adds two quantized tensors, and nothing but a clamp lies between
// that and the quantizer.
bool is_sum_of_codes(const Run& run, const ChainWiring& w) {
  if (!run.integer_sums || w.scale < 0 || w.gamma >= 0) return false;
  const Slot& x = run.slots[w.x];
  if (x.form == Slot::Form::kNumber || x.offset.defined() || (x.is_codes() && !x.is_tensor_codes())) return false;
  return w.residual < 0 ? !x.is_codes() : x.count == 1 && run.slots[w.residual].is_tensor_codes();
}

// Takes everything in units of the result, as numerics::requantize, requantize_with_residual, add_quantized and
// average_multiplier do: the one rounding is then of x * m, or of x * m + residual * r.
void count_in_steps_of_the_result(const Slot& x, PointwiseOptions* o) {
  const float step = std::exchange(o->scale, 1.0f);
  o->scale_x = o->scale_x / at::full({1}, static_cast<float>(x.count) * step);
  o->residual_scale /= step;
  o->lower /= step, o->upper /= step;
}

}  // namespace

StepFunction compile_chain(const Chain& chain, const ChainWiring& w, at::Tensor zero_point) {
  PointwiseOptions fixed;
  const bool learns_statistics = chain.batch_norm && !keeps_statistics(*chain.batch_norm);
  if (chain.batch_norm) {
    fixed.epsilon = chain.batch_norm->get_float("epsilon");
    fixed.momentum = 1.0 - static_cast<double>(chain.batch_norm->get_float("momentum"));
  }
  if (chain.clamp) {
    fixed.clamp = true;
    if (chain.clamp->kind == ir::OpKind::kRelu) {
      fixed.lower = 0;
    } else {
      const auto low = constant_floats(*chain.clamp, 1), high = constant_floats(*chain.clamp, 2);
      if (!low.empty()) fixed.lower = low[0];
      if (!high.empty()) fixed.upper = high[0];
    }
  }
  FakeQuantOptions quant;
  if (chain.quantize) {
    quant.qmin = static_cast<int32_t>(chain.quantize->get_int("qmin"));
    quant.qmax = static_cast<int32_t>(chain.quantize->get_int("qmax"));
    quant.zero_point = zero_point;
    const float zero = zero_point.defined() ? zero_point.to(at::kFloat).item<float>() : 0;
    fixed.low = static_cast<float>(quant.qmin) - zero;
    fixed.high = static_cast<float>(quant.qmax) - zero;
  }
  return [=](Run& run) {
    PointwiseOptions o = fixed;
    const bool of_codes = is_sum_of_codes(run, w);
    const at::Tensor x = chain_input(run, w.x, &o);
    if (w.gamma >= 0) {
      o.gamma = run.plain(w.gamma);
      o.beta = run.plain(w.beta);
      o.running_mean = run.plain(w.mean);
      o.running_variance = run.plain(w.variance);
      o.batch_statistics = run.training && !run.batch_norm_frozen && learns_statistics;
      o.ranks = run.statistics;
    }
    if (w.residual >= 0) chain_residual(run, w.residual, &o);
    if (w.scale < 0) return run.set(w.out, pointwise(x, o));
    const at::Tensor scale = run.plain(w.scale);
    const bool codes = run.codes;
    Slot result{.form = codes ? Slot::Form::kCodes : Slot::Form::kNumber};
    if (run.training && run.activation_constant > 0) {  // the scale follows what stands before it
      const at::Tensor y = pointwise(x, o);
      update_scale(scale, y, quant, run.activation_constant);
      FakeQuantOptions q = quant;
      q.codes = codes;
      result.value = fake_quantize(y, scale, q, y.scalar_type());
    } else {
      o.quantize = true;
      o.codes = codes;
      o.scale = scale.item<float>();
      if (of_codes) count_in_steps_of_the_result(run.slots[w.x], &o);
      result.value = pointwise(x, o);
    }
    if (codes) result.scale = run.step_scale(w.scale);
    run.slots[w.out] = std::move(result);
  };
}

}  // namespace octet::train
