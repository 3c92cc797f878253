// Runs a graph in the plainest way: naive loops over ONNX order, float32 tensors, sums in float64, FakeQuantize by
// numerics/. Shares no code with the engine, so it can judge it. Slow: for small graphs.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "ir/infer.h"
#include "numerics/quantize.h"

namespace octet::testing {

struct Array {
  ir::Shape shape;
  std::vector<float> data;
};

class ReferenceEvaluator {
 public:
  // Every tensor of the graph by name. `inputs` by name.
  static std::map<std::string, Array> run(const ir::Graph& graph, const std::map<std::string, Array>& inputs) {
    ReferenceEvaluator e;
    for (const ir::Value* v : graph.inputs()) e.values_[v] = inputs.at(v->name);
    for (const auto& node : graph.nodes()) e.evaluate(*node);
    std::map<std::string, Array> out;
    for (const auto& [value, array] : e.values_) out[value->name] = array;
    return out;
  }

 private:
  using Ints = std::vector<int64_t>;

  const Array& in(const ir::Node& node, size_t i) {
    const ir::Value* v = node.input(i);
    auto found = values_.find(v);
    if (found == values_.end()) found = values_.emplace(v, Array{v->constant->shape(), v->constant->to_floats()}).first;
    return found->second;
  }
  static Ints strides(const ir::Shape& shape) {
    Ints s(shape.size());
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= shape[i]) s[i] = step;
    return s;
  }
  // Calls use(index) for every index of the shape, row-major.
  template <typename Use>
  static void each(const ir::Shape& shape, Use use) {
    Ints index(shape.size(), 0);
    for (int64_t left = ir::element_count(shape); left > 0; --left) {
      use(index);
      for (size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < shape[d]) break;
        index[d] = 0;
      }
    }
  }
  static int64_t at(const Ints& index, const ir::Shape& shape) {
    int64_t offset = 0;
    for (size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + index[i];
    return offset;
  }
  // Element of `a` for an index of a result that it is broadcast to.
  static float broadcast(const Array& a, const Ints& index) {
    Ints own(a.shape.size());
    for (size_t i = 0; i < own.size(); ++i) own[i] = a.shape[i] == 1 ? 0 : index[index.size() - own.size() + i];
    return a.data[at(own, a.shape)];
  }
  template <typename F>
  Array map(const Array& x, F f) {
    Array y{x.shape, x.data};
    for (float& v : y.data) v = static_cast<float>(f(v));
    return y;
  }
  template <typename F>
  Array zip(const ir::Node& node, F f) {
    Array y{*node.output()->type.shape, {}};
    each(y.shape, [&](const Ints& i) {
      float r = broadcast(in(node, 0), i);
      for (size_t k = 1; k < node.inputs.size(); ++k) r = f(r, broadcast(in(node, k), i));
      y.data.push_back(r);
    });
    return y;
  }

  Array fake_quantize(const ir::Node& node) {
    const Array& x = in(node, 0);
    const std::vector<float> scales = in(node, 1).data, zeros = in(node, 2).data;
    int64_t axis = node.get_int("axis", 1);
    if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
    Array y{x.shape, {}};
    each(x.shape, [&](const Ints& i) {
      const size_t c = scales.size() == 1 ? 0 : static_cast<size_t>(i[axis]);
      const numerics::QuantParams p{.scale = scales[c],
                                    .zero_point = static_cast<int32_t>(zeros[zeros.size() == 1 ? 0 : c]),
                                    .qmin = static_cast<int32_t>(node.get_int("qmin")),
                                    .qmax = static_cast<int32_t>(node.get_int("qmax"))};
      y.data.push_back(numerics::fake_quantize(x.data[y.data.size()], p));
    });
    return y;
  }

  Array conv(const ir::Node& node) {
    const Array &x = in(node, 0), &w = in(node, 1);
    const ir::WindowGeometry g = ir::window_geometry(node, {x.shape[2], x.shape[3]}, {w.shape[2], w.shape[3]});
    Array y{*node.output()->type.shape, {}};
    const int64_t groups = node.get_int("group", 1), per_group = y.shape[1] / groups;
    each(y.shape, [&](const Ints& i) {
      double sum = node.has_input(2) ? in(node, 2).data[i[1]] : 0.0;
      for (int64_t c = 0; c < w.shape[1]; ++c)
        for (int64_t ky = 0; ky < w.shape[2]; ++ky)
          for (int64_t kx = 0; kx < w.shape[3]; ++kx) {
            const int64_t py = i[2] * g.strides[0] - g.pads[0] + ky * g.dilations[0];
            const int64_t px = i[3] * g.strides[1] - g.pads[1] + kx * g.dilations[1];
            if (py < 0 || px < 0 || py >= x.shape[2] || px >= x.shape[3]) continue;
            const int64_t channel = i[1] / per_group * w.shape[1] + c;
            sum += static_cast<double>(x.data[((i[0] * x.shape[1] + channel) * x.shape[2] + py) * x.shape[3] + px]) *
                   w.data[((i[1] * w.shape[1] + c) * w.shape[2] + ky) * w.shape[3] + kx];
          }
      y.data.push_back(static_cast<float>(sum));
    });
    return y;
  }

  Array conv_transpose(const ir::Node& node) {
    const Array &x = in(node, 0), &w = in(node, 1);
    const Ints strides = node.get_ints("strides", {1, 1}), dilations = node.get_ints("dilations", {1, 1}),
               pads = node.get_ints("pads", {0, 0, 0, 0});
    Array y{*node.output()->type.shape, {}};
    const int64_t groups = node.get_int("group", 1), in_group = x.shape[1] / groups;
    std::vector<double> sums(static_cast<size_t>(ir::element_count(y.shape)), 0.0);
    each(x.shape, [&](const Ints& i) {
      const int64_t group = i[1] / in_group;
      for (int64_t o = 0; o < w.shape[1]; ++o)
        for (int64_t ky = 0; ky < w.shape[2]; ++ky)
          for (int64_t kx = 0; kx < w.shape[3]; ++kx) {
            const int64_t py = i[2] * strides[0] - pads[0] + ky * dilations[0];
            const int64_t px = i[3] * strides[1] - pads[1] + kx * dilations[1];
            if (py < 0 || px < 0 || py >= y.shape[2] || px >= y.shape[3]) continue;
            sums[at({i[0], group * w.shape[1] + o, py, px}, y.shape)] +=
                static_cast<double>(x.data[at(i, x.shape)]) * w.data[at({i[1], o, ky, kx}, w.shape)];
          }
    });
    each(y.shape, [&](const Ints& i) {
      y.data.push_back(static_cast<float>(sums[y.data.size()] + (node.has_input(2) ? in(node, 2).data[i[1]] : 0)));
    });
    return y;
  }

  Array gemm(const ir::Node& node) {
    const Array &a = in(node, 0), &b = in(node, 1);
    const bool ta = node.get_int("transA") != 0, tb = node.get_int("transB") != 0;
    Array y{*node.output()->type.shape, {}};
    const int64_t depth = a.shape[ta ? 0 : 1];
    each(y.shape, [&](const Ints& i) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += static_cast<double>(a.data[ta ? at({k, i[0]}, a.shape) : at({i[0], k}, a.shape)]) *
               b.data[tb ? at({i[1], k}, b.shape) : at({k, i[1]}, b.shape)];
      sum *= node.get_float("alpha", 1);
      if (node.has_input(2)) sum += node.get_float("beta", 1) * broadcast(in(node, 2), i);
      y.data.push_back(static_cast<float>(sum));
    });
    return y;
  }

  Array matmul(const ir::Node& node) {
    const Array &a = in(node, 0), &b = in(node, 1);
    Array y{*node.output()->type.shape, {}};
    each(y.shape, [&](const Ints& i) {
      double sum = 0;
      Ints ia = i, ib = i;
      for (int64_t k = 0; k < a.shape.back(); ++k) {
        ia[ia.size() - 1] = k, ib[ib.size() - 2] = k;
        sum += static_cast<double>(broadcast(a, ia)) * broadcast(b, ib);
      }
      y.data.push_back(static_cast<float>(sum));
    });
    return y;
  }

  Array pool(const ir::Node& node) {
    const Array& x = in(node, 0);
    const bool average = node.kind == ir::OpKind::kAveragePool || node.kind == ir::OpKind::kGlobalAveragePool;
    ir::WindowGeometry g{{x.shape[2], x.shape[3]}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
    if (node.kind == ir::OpKind::kMaxPool || node.kind == ir::OpKind::kAveragePool)
      g = ir::window_geometry(node, {x.shape[2], x.shape[3]}, node.get_ints("kernel_shape"));
    Array y{*node.output()->type.shape, {}};
    each(y.shape, [&](const Ints& i) {
      double sum = 0;
      float largest = -std::numeric_limits<float>::infinity();
      int64_t count = 0;
      for (int64_t ky = 0; ky < g.kernel[0]; ++ky)
        for (int64_t kx = 0; kx < g.kernel[1]; ++kx) {
          const int64_t py = i[2] * g.strides[0] - g.pads[0] + ky * g.dilations[0];
          const int64_t px = i[3] * g.strides[1] - g.pads[1] + kx * g.dilations[1];
          const bool inside = py >= 0 && px >= 0 && py < x.shape[2] && px < x.shape[3];
          if (!inside) {
            // Counted where the pads reach, not where ceil_mode lets the window hang over.
            if (node.get_int("count_include_pad") && py < x.shape[2] + g.pads[2] && px < x.shape[3] + g.pads[3])
              ++count;
            continue;
          }
          const float v = x.data[at({i[0], i[1], py, px}, x.shape)];
          sum += v, largest = std::max(largest, v), ++count;
        }
      y.data.push_back(average ? static_cast<float>(sum / static_cast<double>(count)) : largest);
    });
    return y;
  }

  Array batch_norm(const ir::Node& node) {
    const Array& x = in(node, 0);
    Array y{x.shape, {}};
    each(x.shape, [&](const Ints& i) {
      const size_t c = static_cast<size_t>(i[1]);
      const double inverse = 1.0 / std::sqrt(static_cast<double>(in(node, 4).data[c]) + node.get_float("epsilon"));
      y.data.push_back(static_cast<float>((x.data[y.data.size()] - static_cast<double>(in(node, 3).data[c])) * inverse *
                                              in(node, 1).data[c] +
                                          in(node, 2).data[c]));
    });
    return y;
  }

  Array reduce(const ir::Node& node) {
    const Array& x = in(node, 0);
    Ints axes = node.has_input(1) ? node.input(1)->constant->to_ints() : node.get_ints("axes");
    std::vector<bool> reduced(x.shape.size(), axes.empty());
    for (int64_t a : axes) reduced[a < 0 ? a + x.shape.size() : a] = true;
    ir::Shape kept;
    int64_t count = 1;
    for (size_t i = 0; i < x.shape.size(); ++i)
      kept.push_back(reduced[i] ? 1 : x.shape[i]), count *= x.shape[i] / kept[i];
    std::vector<double> sums(ir::element_count(kept), 0.0);
    std::vector<float> largest(sums.size(), -std::numeric_limits<float>::infinity());
    size_t k = 0;
    each(x.shape, [&](const Ints& i) {
      Ints j = i;
      for (size_t d = 0; d < j.size(); ++d)
        if (reduced[d]) j[d] = 0;
      const int64_t o = at(j, kept);
      sums[o] += x.data[k], largest[o] = std::max(largest[o], x.data[k]), ++k;
    });
    Array y{*node.output()->type.shape, {}};
    for (size_t i = 0; i < sums.size(); ++i)
      y.data.push_back(node.kind == ir::OpKind::kReduceMax    ? largest[i]
                       : node.kind == ir::OpKind::kReduceMean ? static_cast<float>(sums[i] / count)
                                                              : static_cast<float>(sums[i]));
    return y;
  }

  Array softmax(const ir::Node& node) {
    const Array& x = in(node, 0);
    int64_t axis = node.get_int("axis", -1);
    if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
    Array y = x;
    ir::Shape lines = x.shape;
    lines[axis] = 1;
    each(lines, [&](const Ints& start) {
      Ints i = start;
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (i[axis] = 0; i[axis] < x.shape[axis]; ++i[axis]) largest = std::max<double>(largest, x.data[at(i, x.shape)]);
      for (i[axis] = 0; i[axis] < x.shape[axis]; ++i[axis]) sum += std::exp(x.data[at(i, x.shape)] - largest);
      for (i[axis] = 0; i[axis] < x.shape[axis]; ++i[axis]) {
        const double shifted = x.data[at(i, x.shape)] - largest;
        y.data[at(i, x.shape)] = static_cast<float>(node.kind == ir::OpKind::kLogSoftmax ? shifted - std::log(sum)
                                                                                         : std::exp(shifted) / sum);
      }
    });
    return y;
  }

  Array transpose(const ir::Node& node) {
    const Array& x = in(node, 0);
    Ints perm = node.get_ints("perm");
    if (perm.empty())
      for (size_t i = x.shape.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
    Array y{*node.output()->type.shape, {}};
    each(y.shape, [&](const Ints& i) {
      Ints j(i.size());
      for (size_t d = 0; d < i.size(); ++d) j[perm[d]] = i[d];
      y.data.push_back(x.data[at(j, x.shape)]);
    });
    return y;
  }

  Array expand(const ir::Node& node) {
    const Array& x = in(node, 0);
    Array y{*node.output()->type.shape, {}};
    each(y.shape, [&](const Ints& i) {
      Ints j(i.end() - static_cast<int64_t>(x.shape.size()), i.end());
      for (size_t d = 0; d < j.size(); ++d) j[d] %= x.shape[d];
      y.data.push_back(x.data[at(j, x.shape)]);
    });
    return y;
  }

  Array depth_to_space(const ir::Node& node) {
    const Array& x = in(node, 0);
    const int64_t block = node.get_int("blocksize");
    const bool dcr = node.get_string("mode", "DCR") == "DCR";
    Array y{*node.output()->type.shape, {}};
    each(y.shape, [&](const Ints& i) {
      const int64_t place = i[2] % block * block + i[3] % block;
      const int64_t channel = dcr ? place * y.shape[1] + i[1] : i[1] * block * block + place;
      y.data.push_back(x.data[at({i[0], channel, i[2] / block, i[3] / block}, x.shape)]);
    });
    return y;
  }

  // Sets all outputs; their shapes say where the input is cut.
  void split(const ir::Node& node) {
    const Array x = in(node, 0);
    int64_t axis = node.get_int("axis"), start = 0;
    if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
    for (const ir::Value* out : node.outputs) {
      Array y{*out->type.shape, {}};
      each(y.shape, [&](Ints i) {
        i[axis] += start;
        y.data.push_back(x.data[at(i, x.shape)]);
      });
      start += y.shape[axis];
      values_[out] = std::move(y);
    }
  }

  Array concat(const ir::Node& node) {
    Array y{*node.output()->type.shape, {}};
    int64_t axis = node.get_int("axis");
    if (axis < 0) axis += static_cast<int64_t>(y.shape.size());
    each(y.shape, [&](const Ints& i) {
      Ints j = i;
      size_t k = 0;
      for (; j[axis] >= in(node, k).shape[axis]; ++k) j[axis] -= in(node, k).shape[axis];
      y.data.push_back(in(node, k).data[at(j, in(node, k).shape)]);
    });
    return y;
  }

  Array pad(const ir::Node& node) {
    const Array& x = in(node, 0);
    const Ints pads = node.input(1)->constant->to_ints();
    Array y{*node.output()->type.shape, {}};
    each(y.shape, [&](const Ints& i) {
      Ints j = i;
      bool inside = true;
      for (size_t d = 0; d < j.size(); ++d) j[d] -= pads[d], inside = inside && j[d] >= 0 && j[d] < x.shape[d];
      y.data.push_back(inside ? x.data[at(j, x.shape)] : node.has_input(2) ? in(node, 2).data[0] : 0.0f);
    });
    return y;
  }

  Array slice(const ir::Node& node) {
    const Array& x = in(node, 0);
    const Ints starts = node.input(1)->constant->to_ints();
    Ints axes, steps(starts.size(), 1);
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    if (node.has_input(3)) axes = node.input(3)->constant->to_ints();
    if (node.has_input(4)) steps = node.input(4)->constant->to_ints();
    Array y{*node.output()->type.shape, {}};
    each(y.shape, [&](const Ints& i) {
      Ints j = i;
      for (size_t k = 0; k < axes.size(); ++k) {
        const int64_t a = axes[k] < 0 ? axes[k] + static_cast<int64_t>(j.size()) : axes[k];
        const int64_t start = starts[k] < 0 ? starts[k] + x.shape[a] : std::min(starts[k], x.shape[a] - (steps[k] < 0));
        j[a] = start + i[a] * steps[k];
      }
      y.data.push_back(x.data[at(j, x.shape)]);
    });
    return y;
  }

  // Nearest (round_prefer_floor or floor) and linear, half_pixel or asymmetric, over the two image axes.
  Array resize(const ir::Node& node) {
    const Array& x = in(node, 0);
    Array y{*node.output()->type.shape, {}};
    const bool linear = node.get_string("mode") == "linear";
    const auto source = [&](int64_t i, size_t d) {
      const double scale = static_cast<double>(y.shape[d]) / static_cast<double>(x.shape[d]);
      return node.get_string("coordinate_transformation_mode") == "asymmetric" ? i / scale : (i + 0.5) / scale - 0.5;
    };
    const auto clamp = [&](double p, size_t d) {
      return static_cast<int64_t>(std::clamp(p, 0.0, static_cast<double>(x.shape[d] - 1)));
    };
    each(y.shape, [&](const Ints& i) {
      const double py = source(i[2], 2), px = source(i[3], 3);
      if (!linear) {
        const bool floor = node.get_string("nearest_mode") == "floor";
        const auto near = [&](double p) { return floor ? std::floor(p) : std::ceil(p - 0.5); };
        y.data.push_back(x.data[at({i[0], i[1], clamp(near(py), 2), clamp(near(px), 3)}, x.shape)]);
        return;
      }
      const double cy = std::clamp(py, 0.0, x.shape[2] - 1.0), cx = std::clamp(px, 0.0, x.shape[3] - 1.0);
      const double fy = cy - std::floor(cy), fx = cx - std::floor(cx);
      double sum = 0;
      for (int dy = 0; dy < 2; ++dy)
        for (int dx = 0; dx < 2; ++dx)
          sum += (dy ? fy : 1 - fy) * (dx ? fx : 1 - fx) *
                 x.data[at({i[0], i[1], clamp(std::floor(cy) + dy, 2), clamp(std::floor(cx) + dx, 3)}, x.shape)];
      y.data.push_back(static_cast<float>(sum));
    });
    return y;
  }

  void evaluate(const ir::Node& node) {
    using K = ir::OpKind;
    const auto unary = [&](auto f) { values_[node.output()] = map(in(node, 0), f); };
    const auto set = [&](Array a) { values_[node.output()] = std::move(a); };
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    switch (node.kind) {
      case K::kConv:
        return set(conv(node));
      case K::kConvTranspose:
        return set(conv_transpose(node));
      case K::kGemm:
        return set(gemm(node));
      case K::kMatMul:
        return set(matmul(node));
      case K::kFakeQuantize:
        return set(fake_quantize(node));
      case K::kBatchNormalization:
        return set(batch_norm(node));
      case K::kRelu:
        return unary([](float v) { return std::max(v, 0.0f); });
      case K::kClip: {
        const float low = node.has_input(1) ? in(node, 1).data[0] : -INFINITY;
        const float high = node.has_input(2) ? in(node, 2).data[0] : INFINITY;
        return unary([=](float v) { return std::min(std::max(v, low), high); });
      }
      case K::kLeakyRelu:
        return unary([&](float v) { return v < 0 ? v * node.get_float("alpha") : v; });
      case K::kSigmoid:
        return unary(sigmoid);
      case K::kHardSigmoid:
        return unary(
            [&](float v) { return std::clamp(node.get_float("alpha") * v + node.get_float("beta"), 0.0f, 1.0f); });
      case K::kHardSwish:
        return unary([](double v) { return v * std::clamp(v / 6 + 0.5, 0.0, 1.0); });
      case K::kTanh:
        return unary([](double v) { return std::tanh(v); });
      case K::kElu:
        return unary([&](double v) { return v < 0 ? node.get_float("alpha") * std::expm1(v) : v; });
      case K::kSoftplus:
        return unary([](double v) { return std::max(v, 0.0) + std::log1p(std::exp(-std::abs(v))); });
      case K::kGelu:
        return unary([](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); });
      case K::kMish:
        return unary([](double v) { return v * std::tanh(std::max(v, 0.0) + std::log1p(std::exp(-std::abs(v)))); });
      case K::kErf:
        return unary([](double v) { return std::erf(v); });
      case K::kExp:
        return unary([](double v) { return std::exp(v); });
      case K::kLog:
        return unary([](double v) { return std::log(v); });
      case K::kFloor:
        return unary([](float v) { return std::floor(v); });
      case K::kNeg:
        return unary([](float v) { return -v; });
      case K::kAbs:
        return unary([](float v) { return std::abs(v); });
      case K::kSqrt:
        return unary([](double v) { return std::sqrt(v); });
      case K::kAdd:
        return set(zip(node, [](float a, float b) { return a + b; }));
      case K::kSub:
        return set(zip(node, [](float a, float b) { return a - b; }));
      case K::kMul:
        return set(zip(node, [](float a, float b) { return a * b; }));
      case K::kDiv:
        return set(zip(node, [](float a, float b) { return a / b; }));
      case K::kPow:
        return set(zip(node, [](float a, float b) { return std::pow(a, b); }));
      case K::kMin:
        return set(zip(node, [](float a, float b) { return std::min(a, b); }));
      case K::kMax:
        return set(zip(node, [](float a, float b) { return std::max(a, b); }));
      case K::kPRelu:
        return set(zip(node, [](float a, float b) { return a < 0 ? a * b : a; }));
      case K::kMaxPool:
      case K::kAveragePool:
      case K::kGlobalAveragePool:
      case K::kGlobalMaxPool:
        return set(pool(node));
      case K::kReduceMean:
      case K::kReduceSum:
      case K::kReduceMax:
        return set(reduce(node));
      case K::kSoftmax:
      case K::kLogSoftmax:
        return set(softmax(node));
      case K::kTranspose:
        return set(transpose(node));
      case K::kExpand:
        return set(expand(node));
      case K::kDepthToSpace:
        return set(depth_to_space(node));
      case K::kConcat:
        return set(concat(node));
      case K::kPad:
        return set(pad(node));
      case K::kSplit:
        return split(node);
      case K::kSlice:
        return set(slice(node));
      case K::kResize:
        return set(resize(node));
      case K::kIdentity:
      case K::kDropout:
      case K::kReshape:
      case K::kFlatten:
      case K::kSqueeze:
      case K::kUnsqueeze:
        return set({*node.output()->type.shape, in(node, 0).data});
      default:
        fail("the reference evaluator has no ", node.info().name);
    }
  }

  std::map<const ir::Value*, Array> values_;
};

}  // namespace octet::testing
