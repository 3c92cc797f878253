// Float steps that move data, and the coordinates of Resize.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/axes.h"
#include "ir/query.h"
#include "ir/traits.h"
#include "lower/emit_float.h"
#include "lower/moves.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;

// The layout of what lands in one of several outputs of rank 4, or is made of several inputs.
bool any_nhwc(const PlanBuilder& b, const Node& node) {
  for (size_t i = 0; i < ir::data_inputs(node); ++i)
    if (node.has_input(i) && b.is_nhwc(node.input(i))) return true;
  return false;
}

void emit_boxes(PlanBuilder& b, const Node& node, const BoxMoves& boxes) {
  std::vector<int> outputs(node.outputs.size(), -1);
  const bool nhwc = any_nhwc(b, node);
  const auto output = [&](size_t i) {
    if (outputs[i] >= 0) return outputs[i];
    const Value* result = node.output(i);
    outputs[i] = b.define_real_as(result, nhwc);
    if (boxes.fill) {
      const auto value = b.constant(std::vector<float>{*boxes.fill});
      engine::Step& s = b.step("strided_copy", node, {}, {outputs[i]});
      s.ints["rank"] = 1;
      s.lists["dims"] = {ir::element_count(shape_of(result))};
      s.lists["in_strides"] = {0}, s.lists["out_strides"] = {1};
      s.constants["value"] = value;
    }
    return outputs[i];
  };
  if (boxes.moves.empty()) output(0);  // a Pad that cuts all off but what it fills
  for (const BoxMove& move : boxes.moves) {
    if (!b.is_read(node.output(move.output))) continue;  // a piece of a Split that others read where it lies
    const int in = b.real_as(node.input(move.input), nhwc), out = output(move.output);
    const Value* result = node.output(move.output);
    PlanBuilder::Walk walk{.dims = move.size,
                           .in_strides = float_strides(shape_of(node.input(move.input)), nhwc),
                           .out_strides = float_strides(shape_of(result), nhwc)};
    for (size_t i = 0; i < walk.dims.size(); ++i) {
      walk.in_offset += move.from[i] * walk.in_strides[i], walk.out_offset += move.to[i] * walk.out_strides[i];
      walk.in_strides[i] *= move.step[i];
    }
    if (nhwc)  // channels innermost, as in memory
      for (auto* v : {&walk.dims, &walk.in_strides, &walk.out_strides}) *v = {(*v)[0], (*v)[2], (*v)[3], (*v)[1]};
    b.copy(node, in, out, walk);
  }
}

void emit_transpose(PlanBuilder& b, const Node& node) {
  const ir::Shape &in = shape_of(node.input(0)), &out = shape_of(node.output());
  const std::vector<int64_t> order = ir::permutation_of(node, in.size());
  bool nhwc = false;
  const int x = b.any_real(node.input(0), &nhwc);
  // An image with its channels last is the memory of the image, both ways.
  if (nhwc && order == std::vector<int64_t>{0, 2, 3, 1}) return b.same_dense(node.output(), x);
  if (!nhwc && order == std::vector<int64_t>{0, 3, 1, 2}) return b.same_nhwc(node.output(), x);
  const bool image = read_as_image(node.output());
  const auto own = float_strides(in, nhwc);
  PlanBuilder::Walk walk{.dims = out, .out_strides = float_strides(out, image)};
  for (int64_t p : order) walk.in_strides.push_back(own[p]);
  if (image)  // channels innermost, as in memory
    for (auto* v : {&walk.dims, &walk.in_strides, &walk.out_strides}) *v = {(*v)[0], (*v)[2], (*v)[3], (*v)[1]};
  b.copy(node, x, b.define_real_as(node.output(), image), walk);
}

void emit_expand(PlanBuilder& b, const Node& node) {
  const ir::Shape &in = shape_of(node.input(0)), &out = shape_of(node.output());
  bool in_nhwc = false;
  const int x = b.any_real(node.input(0), &in_nhwc);
  const bool nhwc = in_nhwc && out.size() == 4;
  const auto own = float_strides(in, in_nhwc);
  PlanBuilder::Walk walk{
      .dims = out, .in_strides = std::vector<int64_t>(out.size(), 0), .out_strides = float_strides(out, nhwc)};
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] != 1) walk.in_strides[out.size() - in.size() + i] = own[i];
  b.copy(node, x, b.define_real_as(node.output(), nhwc), walk);
}

void emit_depth_to_space(PlanBuilder& b, const Node& node) {
  const ir::Shape &in = shape_of(node.input(0)), &out = shape_of(node.output());
  const int64_t block = node.get_int("blocksize"), n = in[0], c = out[1], h = in[2], w = in[3];
  const auto i = nhwc_strides(in), o = nhwc_strides(out);
  // Input channel: (y, x, c) with DCR, (c, y, x) with CRD.
  const bool dcr = node.get_string("mode", "DCR") == "DCR";
  const int64_t step_y = dcr ? block * c : block, step_x = dcr ? c : 1, step_c = dcr ? 1 : block * block;
  const int x = b.nhwc(node.input(0)), y = b.define_real(node.output());
  b.copy(node, x, y,
         {.dims = {n, h, w, block, block, c},
          .in_strides = {i[0], i[2], i[3], step_y * i[1], step_x * i[1], step_c * i[1]},
          .out_strides = {o[0], o[2] * block, o[3] * block, o[2], o[3], o[1]}});
}

}  // namespace

bool emit_float_move(PlanBuilder& b, const Node& node) {
  if (node.info().has(ir::trait::kReshapes)) {
    b.same_dense(node.output(), b.dense(node.input(0)));
    return true;
  }
  switch (node.kind) {
    case OpKind::kTranspose:
      emit_transpose(b, node);
      return true;
    case OpKind::kExpand:
      emit_expand(b, node);
      return true;
    case OpKind::kDepthToSpace:
      emit_depth_to_space(b, node);
      return true;
    default:
      break;
  }
  const auto boxes = box_moves(node);
  if (!boxes) return false;
  emit_boxes(b, node, *boxes);
  return true;
}

void check_resize(const Node& node) {
  const ir::Shape &in = shape_of(node.input(0)), &out = shape_of(node.output());
  const std::string mode = node.get_string("mode"), coordinates = node.get_string("coordinate_transformation_mode");
  const auto refuse = [&](const std::string& what) {
    fail("Resize '", node.name, "': ", what, " is not supported by the engine");
  };
  if (in.size() != 4 || in[0] != out[0] || in[1] != out[1]) refuse("resizing anything but the two image axes");
  if (mode != "nearest" && mode != "linear" && mode != "cubic") refuse("mode '" + mode + "'");
  if (coordinates != "half_pixel" && coordinates != "asymmetric" && coordinates != "align_corners" &&
      coordinates != "pytorch_half_pixel" && coordinates != "half_pixel_symmetric" &&
      coordinates != "tf_crop_and_resize")
    refuse("coordinate_transformation_mode '" + coordinates + "'");
  if (node.get_int("antialias") != 0) refuse("antialias");
  if (coordinates == "tf_crop_and_resize" && !(node.has_input(1) && node.input(1)->is_constant()))
    refuse("a region of interest that is no constant");
  // Positions are floats, which tell neighbors apart up to here.
  constexpr int64_t kLongest = int64_t{1} << 24;
  if (const int64_t longest = std::max({in[2], in[3], out[2], out[3]}); longest > kLongest)
    refuse(str("an image axis of ", longest, " pixels (more than ", kLongest, ")"));
}

namespace {

// Where each row or column of the output lies among those of the input.
std::vector<float> resize_positions(const Node& node, size_t dimension) {
  const int64_t in = shape_of(node.input(0))[dimension], out = shape_of(node.output())[dimension];
  const std::string coordinates = node.get_string("coordinate_transformation_mode");
  const auto axes = node.get_ints("axes");
  // The given number for this dimension of a list over `axes` or all dimensions; `at`: which half of a list.
  const auto of_dimension = [&](const std::vector<float>& values, size_t half) {
    const size_t count = axes.empty() ? 4 : axes.size();
    for (size_t i = 0; i < count; ++i)
      if ((axes.empty() ? i : ir::normal_axis(node, axes[i], 4)) == dimension && half * count + i < values.size())
        return std::optional(values[half * count + i]);
    return std::optional<float>();
  };
  // ONNX uses the given scale where there is one, else the quotient of the sizes.
  float scale = static_cast<float>(out) / static_cast<float>(in);
  const std::string policy = node.get_string("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && node.has_input(3) && node.input(3)->is_constant()) {
    // Both axes have the scale of the one that fits.
    const std::vector<float> sizes = node.input(3)->constant->to_floats();
    const size_t first = axes.empty() && sizes.size() == 4 ? 2 : 0;
    std::optional<float> kept;
    for (size_t i = first; i < sizes.size(); ++i) {
      const size_t d = axes.empty() ? i : ir::normal_axis(node, axes[i], 4);
      const float s = sizes[i] / static_cast<float>(shape_of(node.input(0))[d]);
      kept = !kept ? s : policy == "not_larger" ? std::min(*kept, s) : std::max(*kept, s);
    }
    scale = kept.value_or(scale);
  }
  if (node.has_input(2) && node.input(2)->is_constant() && node.input(2)->constant->size() > 0) {
    const std::vector<float> scales = node.input(2)->constant->to_floats();
    scale = of_dimension(scales, 0).value_or(scale);
  }
  float start = 0, end = 1;
  if (coordinates == "tf_crop_and_resize") {
    const std::vector<float> region = node.input(1)->constant->to_floats();
    start = of_dimension(region, 0).value_or(0.0f), end = of_dimension(region, 1).value_or(1.0f);
  }
  // Half of what rounding the size cut off lies on each side.
  const float exact_out = scale * static_cast<float>(in), middle = static_cast<float>(in) / 2;
  const float offset =
      coordinates == "half_pixel_symmetric" ? middle * (1 - static_cast<float>(out) / exact_out) : 0.0f;
  std::vector<float> positions;
  for (int64_t i = 0; i < out; ++i) {
    const float x = static_cast<float>(i);
    float at = 0;
    if (coordinates == "asymmetric")
      at = x / scale;
    else if (coordinates == "align_corners")
      at = out == 1 ? 0 : x * static_cast<float>(in - 1) / static_cast<float>(out - 1);
    else if (coordinates == "tf_crop_and_resize")
      at = out == 1 ? 0.5f * (start + end) * static_cast<float>(in - 1)
                    : start * static_cast<float>(in - 1) +
                          x * (end - start) * static_cast<float>(in - 1) / static_cast<float>(out - 1);
    else
      at = coordinates == "pytorch_half_pixel" && out == 1 ? 0 : offset + (x + 0.5f) / scale - 0.5f;
    if (coordinates == "tf_crop_and_resize" && (at < 0 || at > static_cast<float>(in - 1)))
      fail("Resize '", node.name, "': its region of interest leaves the image, where the engine has no values");
    positions.push_back(at);
  }
  return positions;
}

}  // namespace

ResizeAxis resize_axis(const Node& node, size_t dimension) {
  const int64_t in = shape_of(node.input(0))[dimension];
  const std::string mode = node.get_string("mode"), rounding = node.get_string("nearest_mode");
  const auto inside = [&](float v) { return static_cast<int32_t>(std::clamp(v, 0.0f, static_cast<float>(in - 1))); };
  ResizeAxis axis;
  for (const float at : resize_positions(node, dimension)) {
    if (mode == "nearest") {
      float nearest = std::ceil(at - 0.5f);  // round_prefer_floor
      if (rounding == "floor") nearest = std::floor(at);
      if (rounding == "ceil") nearest = std::ceil(at);
      if (rounding == "round_prefer_ceil") nearest = std::floor(at + 0.5f);
      axis.low.push_back(inside(nearest)), axis.high.push_back(inside(nearest)), axis.weight.push_back(0);
    } else {
      const float clamped = std::clamp(at, 0.0f, static_cast<float>(in - 1)), low = std::floor(clamped);
      axis.low.push_back(inside(low)), axis.high.push_back(inside(low + 1)), axis.weight.push_back(clamped - low);
    }
  }
  return axis;
}

CubicAxis cubic_axis(const Node& node, size_t dimension) {
  const int64_t in = shape_of(node.input(0))[dimension];
  const double a = node.get_float("cubic_coeff_a");
  const bool on_image_only = node.get_int("exclude_outside") != 0;
  const auto weight_of = [&](double d) {
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  };
  CubicAxis axis;
  for (const float at : resize_positions(node, dimension)) {
    const double place = at, base = std::floor(place), last = static_cast<double>(in - 1);
    double weights[kCubicTaps], sum = 0;
    for (int64_t k = 0; k < kCubicTaps; ++k) {
      const double tap = base - 1 + static_cast<double>(k);
      weights[k] = on_image_only && (tap < 0 || tap > last) ? 0 : weight_of(std::abs(place - tap));
      sum += weights[k];
      axis.index.push_back(static_cast<int32_t>(std::clamp(tap, 0.0, last)));
    }
    for (const double w : weights) axis.weight.push_back(static_cast<float>(on_image_only ? w / sum : w));
  }
  return axis;
}

}  // namespace octet::lower
