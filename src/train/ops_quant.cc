// QuantizeLinear, DequantizeLinear and FakeQuantize as nodes of their own.
#include <algorithm>

#include "ir/data_type_codes.h"
#include "numerics/quantize.h"
#include "train/constants.h"
#include "train/fake_quant.h"
#include "train/ops_common.h"
#include "train/precision.h"

namespace octet::train {
namespace {

struct CodeRange {
  at::ScalarType type;
  double low, high;
};

CodeRange code_range(const ir::Node& node, at::ScalarType type) {
  switch (type) {
    case at::kChar:
      return {type, -128, 127};
    case at::kByte:
      return {type, 0, 255};
    case at::kInt:
      return {type, -2147483648.0, 2147483647.0};
    default:
      break;
  }
  fail(node_text(node), ": codes of type ", at::toString(type), " cannot be executed; int8, uint8 and int32 can");
}

StepFunction quantize_linear(const ir::Node& node, const Wiring& w) {
  at::ScalarType type = at::kByte;
  if (node.has_input(2)) {
    type = scalar_type_of(node.input(2)->type.data_type);
  } else if (node.get_int("output_dtype") != 0) {
    type = scalar_type_of(ir::data_type_from_onnx(node.get_int("output_dtype")));
  }
  const CodeRange range = code_range(node, type);
  const int64_t axis = node.get_int("axis");
  return [=](Run& run) {
    const at::Tensor x = run.precise(w.in[0]).to(at::kFloat);
    const int64_t along = axis < 0 ? axis + x.dim() : axis;
    const at::Tensor ratio = x / along_axis(run.plain(w.in[1]).to(at::kFloat).reshape({-1}), along, x.dim());
    const int zero_slot = w.in.size() > 2 ? w.in[2] : -1;
    const at::Tensor zero = zero_slot < 0 ? at::zeros({}, x.options()) : run.plain(zero_slot).to(at::kFloat);
    const at::Tensor moved = at::nan_to_num(at::round(ratio), 0) + along_axis(zero.reshape({-1}), along, x.dim());
    run.set(w.out[0], at::clamp(moved, range.low, range.high).to(range.type));
  };
}

StepFunction dequantize_linear(const ir::Node& node, const Wiring& w) {
  const int64_t axis = node.get_int("axis");
  return [=](Run& run) {
    const at::Tensor q = run.plain(w.in[0]);
    const int64_t along = axis < 0 ? axis + q.dim() : axis;
    const int zero_slot = w.in.size() > 2 ? w.in[2] : -1;
    at::Tensor codes = q.to(at::kInt);
    if (zero_slot >= 0) codes = codes - along_axis(run.plain(zero_slot).to(at::kInt).reshape({-1}), along, q.dim());
    const at::Tensor scale = run.plain(w.in[1]).to(run.master).reshape({-1});
    run.set(w.out[0], codes.to(run.master) * along_axis(scale, along, q.dim()));
  };
}

StepFunction fake_quantize(const ir::Node& node, const Wiring& w) {
  const std::string state = node.get_string("state");
  require(std::find(ir::kQuantizerStates.begin(), ir::kQuantizerStates.end(), state) != ir::kQuantizerStates.end(),
          node_text(node), ": state '", state, "' is not known; use observing, frozen, learned, offset or clip");
  FakeQuantOptions fixed;
  fixed.qmin = static_cast<int32_t>(node.get_int("qmin"));
  fixed.qmax = static_cast<int32_t>(node.get_int("qmax"));
  require(fixed.qmin < fixed.qmax && fixed.qmax - fixed.qmin <= 255, node_text(node), ": codes from ", fixed.qmin,
          " to ", fixed.qmax, " are not 8 bits");
  fixed.gradient = state == ir::kLearned         ? quant::ScaleGradient::kLsq
                   : state == ir::kLearnedOffset ? quant::ScaleGradient::kLsqPlus
                   : state == ir::kLearnedClip   ? quant::ScaleGradient::kPact
                                                 : quant::ScaleGradient::kNo;
  const bool learned = fixed.gradient != quant::ScaleGradient::kNo;
  if (state == ir::kObserving) return [w](Run& run) { run.slots[w.out[0]] = run.slots[w.in[0]]; };
  const int64_t axis = node.get_int("axis");
  const bool of_weights = node.input(0)->is_constant();
  return [=](Run& run) {
    // Parameters are quantized from their float32 masters, activations from what flows.
    const at::Tensor x = run.plain(w.in[0]);
    const at::Tensor zero = run.plain(w.in[2]);  // or the offset, which learns
    at::Tensor scale = run.plain(w.in[1]);
    FakeQuantOptions o = fixed;
    o.axis = axis < 0 ? axis + x.dim() : axis;
    (fixed.gradient == quant::ScaleGradient::kLsqPlus ? o.offset : o.zero_point) = zero;
    const float c = of_weights ? run.weight_constant : run.activation_constant;
    if (run.training && c > 0 && !learned) update_scale(scale, x, o, c);
    if (learned) scale = usable_scale(scale);
    o.codes = run.codes;
    const at::Tensor y = fake_quantize(x, scale, o, run.compute);
    if (o.codes) {
      // The whole gradient of a learned scale goes through the quantizer.
      run.slots[w.out[0]] = {.value = y,
                             .form = Slot::Form::kCodes,
                             .scale = learned ? scale.detach() : run.step_scale(w.in[1]),
                             .axis = o.axis};
    } else {
      run.set(w.out[0], y);
    }
  };
}

}  // namespace

StepFunction compile_quantize(const ir::Node& node, const Wiring& w) {
  if (node.kind != ir::OpKind::kFakeQuantize)
    require(node.get_int("block_size") == 0, node_text(node), ": block_size ", node.get_int("block_size"),
            " cannot be executed; only one scale a tensor or a channel can");
  switch (node.kind) {
    case ir::OpKind::kQuantizeLinear:
      return quantize_linear(node, w);
    case ir::OpKind::kDequantizeLinear:
      return dequantize_linear(node, w);
    case ir::OpKind::kFakeQuantize:
      return fake_quantize(node, w);
    default:
      break;
  }
  OCTET_CHECK(false, node_text(node), " does not quantize");
}

}  // namespace octet::train
