// Operators that move elements without computing.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/padded_place.h"
#include "train/ops_common.h"
#include "train/precision.h"

namespace octet::train {
namespace {

using ir::OpKind;

at::Tensor index_tensor(const std::vector<int64_t>& values, const at::Tensor& like) {
  return at::tensor(values, at::TensorOptions().dtype(at::kLong)).to(like.device());
}

// Applies `f` to the number in a slot.
template <typename F>
StepFunction moved(const Wiring& w, F f) {
  return [in = w.in.at(0), out = w.out.at(0), f](Run& run) { run.set(out, f(run.plain(in))); };
}

// The same where what has one scale can keep it: codes, and sums of codes that are still to be divided (a pool's).
template <typename F>
StepFunction moved_codes(const Wiring& w, F f) {
  return [in = w.in.at(0), out = w.out.at(0), f](Run& run) {
    Slot s = run.slots[in];
    const bool pending = s.form == Slot::Form::kPending && s.scale.numel() == 1 && !s.offset.defined();
    if (!s.is_tensor_codes() && !pending) s = Slot{.value = run.plain(in)};
    s.value = f(s.value);
    run.slots[out] = std::move(s);
  };
}

// Where sums are integers; in training, numbers are joined.
bool are_codes_of_one_scale(const Run& run, const std::vector<int>& slots) {
  return run.integer_sums && std::ranges::all_of(slots, [&](int slot) {
           const Slot& s = run.slots[slot];
           const Slot& first = run.slots[slots[0]];
           return s.is_tensor_codes() && first.is_tensor_codes() && s.scale.item<float>() == first.scale.item<float>();
         });
}

StepFunction concat(const ir::Node& node, const Wiring& w) {
  const int64_t axis = node.get_int("axis");
  return [=](Run& run) {
    if (are_codes_of_one_scale(run, w.in)) {
      std::vector<at::Tensor> codes;
      for (const int slot : w.in) codes.push_back(run.slots[slot].value);
      Slot joined = run.slots[w.in[0]];
      joined.value = at::cat(codes, axis);
      run.slots[w.out[0]] = std::move(joined);
      return;
    }
    std::vector<at::Tensor> parts;
    for (const int slot : w.in) parts.push_back(run.plain(slot));
    const bool low = std::any_of(parts.begin(), parts.end(), [](const auto& t) { return is_low(t.scalar_type()); });
    if (low)
      for (auto& part : parts) part = run.flow(part);
    run.set(w.out[0], at::cat(parts, axis));
  };
}

StepFunction split(const ir::Node& node, const Wiring& w) {
  const int64_t axis = node.get_int("axis"), parts = static_cast<int64_t>(w.out.size());
  const std::vector<int64_t> given = constant_ints(node, 1);
  return [=](Run& run) {
    const at::Tensor x = run.plain(w.in[0]);
    std::vector<int64_t> sizes = given;
    if (sizes.empty()) {
      const int64_t size = x.size(axis), chunk = (size + parts - 1) / parts;  // the last may be smaller
      sizes.assign(parts, chunk);
      sizes.back() = size - chunk * (parts - 1);
    }
    const std::vector<at::Tensor> pieces = at::split_with_sizes(x, sizes, axis);
    for (size_t i = 0; i < w.out.size(); ++i) run.set(w.out[i], pieces[i]);
  };
}

at::Tensor slice_axis(const at::Tensor& x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  const int64_t size = x.size(axis);
  if (start < 0) start = start < -size ? -1 : start + size;  // ONNX: negative counts from the end, then clamps
  if (end < 0) end = end < -size ? -1 : end + size;
  if (step > 0) return at::slice(x, axis, std::clamp<int64_t>(start, 0, size), std::clamp<int64_t>(end, 0, size), step);
  std::vector<int64_t> indices;
  for (int64_t i = std::min(start, size - 1); i > end && i >= 0; i += step) indices.push_back(i);
  return at::index_select(x, axis, index_tensor(indices, x));
}

StepFunction slice(const ir::Node& node, const Wiring& w) {
  const auto starts = constant_ints(node, 1), ends = constant_ints(node, 2);
  auto axes = constant_ints(node, 3), steps = constant_ints(node, 4);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  require(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
          node_text(node), ": starts, ends, axes and steps have different lengths");
  require(std::count(steps.begin(), steps.end(), 0) == 0, node_text(node), ": a step is 0");
  return moved_codes(w, [=](at::Tensor x) {
    for (size_t i = 0; i < starts.size(); ++i) x = slice_axis(x, axes[i], starts[i], ends[i], steps[i]);
    return x;
  });
}

StepFunction pad(const ir::Node& node, const Wiring& w) {
  const std::string mode = node.get_string("mode");
  require(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap", node_text(node), ": mode '",
          mode, "' is not known; use constant, reflect, edge or wrap");
  const std::vector<int64_t> pads = constant_ints(node, 1);
  const std::vector<float> fill = constant_floats(node, 2);
  std::vector<int64_t> axes = constant_ints(node, 3);
  if (axes.empty()) {
    axes.resize(pads.size() / 2);
    std::iota(axes.begin(), axes.end(), 0);
  }
  require(pads.size() == 2 * axes.size(), node_text(node), ": ", pads.size(), " pads for ", axes.size(), " axes");
  const std::string text = node_text(node);
  return moved(w, [=](at::Tensor x) {
    std::vector<int64_t> constant(2 * x.dim(), 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + x.dim() : axes[i];
      const int64_t before = pads[i], after = pads[i + axes.size()], size = x.size(axis);
      if (mode == "constant") {
        constant[2 * (x.dim() - 1 - axis)] = before;
        constant[2 * (x.dim() - 1 - axis) + 1] = after;
      } else if (before != 0 || after != 0) {
        require(size > 0, text, ": axis ", axis, " is empty and cannot be padded in mode ", mode);
        std::vector<int64_t> indices;
        for (int64_t j = -before; j < size + after; ++j) indices.push_back(*padded_place(j, size, mode));
        x = at::index_select(x, axis, index_tensor(indices, x));
      }
    }
    return mode == "constant" ? at::constant_pad_nd(x, constant, fill.empty() ? 0.0f : fill[0]) : x;
  });
}

StepFunction reshape(const ir::Node& node, const Wiring& w) {
  const std::vector<int64_t> wanted = constant_ints(node, 1);
  const bool allow_zero = node.get_int("allowzero") != 0;
  return moved_codes(w, [=, text = node_text(node)](const at::Tensor& x) {
    std::vector<int64_t> shape = wanted;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != 0 || allow_zero) continue;
      require(static_cast<int64_t>(i) < x.dim(), text, ": dimension ", i, " copies one that the input does not have");
      shape[i] = x.size(i);
    }
    return x.reshape(shape);
  });
}

at::Tensor flatten_at(const at::Tensor& x, int64_t axis) {
  if (axis < 0) axis += x.dim();
  int64_t rows = 1;
  for (int64_t i = 0; i < axis; ++i) rows *= x.size(i);
  return x.reshape({rows, rows == 0 ? 0 : x.numel() / rows});
}

at::Tensor squeeze_axes(const at::Tensor& x, std::vector<int64_t> axes, const std::string& text) {
  if (axes.empty()) return x.squeeze();
  for (const int64_t axis : axes)
    require(x.size(axis) == 1, text, ": axis ", axis, " has ", x.size(axis), " elements, expected 1");
  return x.squeeze(axes);
}

at::Tensor unsqueeze_axes(at::Tensor x, std::vector<int64_t> axes) {
  const int64_t rank = x.dim() + static_cast<int64_t>(axes.size());
  for (int64_t& axis : axes)
    if (axis < 0) axis += rank;
  std::sort(axes.begin(), axes.end());
  for (const int64_t axis : axes) x = x.unsqueeze(axis);
  return x;
}

at::Tensor expand_to(const at::Tensor& x, const std::vector<int64_t>& wanted) {
  return x.expand(at::infer_size(x.sizes(), wanted));  // both broadcast, as ONNX has it
}

at::Tensor depth_to_space(const at::Tensor& x, int64_t block, bool crd) {
  if (crd) return at::pixel_shuffle(x, block);
  const int64_t n = x.size(0), c = x.size(1) / (block * block), h = x.size(2), w = x.size(3);
  return x.reshape({n, block, block, c, h, w}).permute({0, 3, 4, 1, 5, 2}).reshape({n, c, h * block, w * block});
}

}  // namespace

StepFunction compile_shape(const ir::Node& node, const Wiring& w) {
  using T = const at::Tensor&;
  const std::string text = node_text(node);
  switch (node.kind) {
    case OpKind::kConcat:
      return concat(node, w);
    case OpKind::kSplit:
      return split(node, w);
    case OpKind::kSlice:
      return slice(node, w);
    case OpKind::kPad:
      return pad(node, w);
    case OpKind::kReshape:
      return reshape(node, w);
    case OpKind::kFlatten:
      return moved_codes(w, [axis = node.get_int("axis")](T x) { return flatten_at(x, axis); });
    case OpKind::kSqueeze:
      return moved_codes(w, [=, axes = constant_ints(node, 1)](T x) { return squeeze_axes(x, axes, text); });
    case OpKind::kUnsqueeze:
      return moved_codes(w, [axes = constant_ints(node, 1)](T x) { return unsqueeze_axes(x, axes); });
    case OpKind::kTranspose:
      return moved_codes(w, [perm = node.get_ints("perm")](T x) {
        std::vector<int64_t> order = perm;
        for (int64_t i = x.dim() - 1; perm.empty() && i >= 0; --i) order.push_back(i);
        return x.permute(order);
      });
    case OpKind::kExpand:
      return moved_codes(w, [shape = constant_ints(node, 1)](T x) { return expand_to(x, shape); });
    case OpKind::kDepthToSpace: {
      const int64_t block = node.get_int("blocksize");
      require(block >= 1, text, ": blocksize is ", block, ", expected 1 or more");
      const bool crd = node.get_string("mode") == "CRD";
      return moved_codes(w, [=](T x) { return depth_to_space(x, block, crd); });
    }
    case OpKind::kIdentity:
      return [w](Run& run) { run.slots[w.out[0]] = run.slots[w.in[0]]; };
    default:
      break;
  }
  OCTET_CHECK(false, text, " does not move elements");
}

}  // namespace octet::train
