// A slow, plain interpreter for the few operators that the tests of rewriting passes use: a pass must not change what a
// graph computes. float64 throughout.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/infer.h"

namespace octet::passes {

class Evaluator {
 public:
  using Values = std::vector<double>;

  // The graph's outputs for one input of deterministic values between -1 and 1.
  static std::vector<Values> outputs(ir::Graph& graph) {
    ir::infer_shapes(graph);
    Evaluator e;
    for (const ir::Value* v : graph.inputs()) {
      Values& x = e.values_[v];
      for (int64_t i = 0; i < ir::element_count(*v->type.shape); ++i) x.push_back(std::sin(1.7 * double(i) + 0.3));
    }
    for (const ir::Value* v : graph.constants()) {
      const auto f = v->constant->to_floats();
      e.values_[v] = Values(f.begin(), f.end());
    }
    for (const auto& node : graph.nodes()) e.values_[node->output()] = e.run(*node);
    std::vector<Values> out;
    for (const ir::Value* v : graph.outputs()) out.push_back(e.values_.at(v));
    return out;
  }

  // Largest difference over all outputs, relative to the largest magnitude there.
  static double difference(const std::vector<Values>& a, const std::vector<Values>& b) {
    if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
    double worst = 0;
    for (size_t k = 0; k < a.size(); ++k) {
      if (a[k].size() != b[k].size()) return std::numeric_limits<double>::infinity();
      double scale = 1e-30, diff = 0;
      for (size_t i = 0; i < a[k].size(); ++i) {
        scale = std::max(scale, std::fabs(a[k][i]));
        diff = std::max(diff, std::fabs(a[k][i] - b[k][i]));
      }
      worst = std::max(worst, diff / scale);
    }
    return worst;
  }

 private:
  using Index = std::vector<int64_t>;

  static int64_t offset(const ir::Shape& shape, const Index& index) {
    // Numpy broadcasting: trailing axes are aligned.
    int64_t at = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      at = at * shape[d] + (shape[d] == 1 ? 0 : index[index.size() - shape.size() + d]);
    return at;
  }
  static void each(const ir::Shape& shape, const std::function<void(const Index&)>& visit) {
    Index index(shape.size(), 0);
    for (int64_t n = ir::element_count(shape); n > 0; --n) {
      visit(index);
      for (size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < shape[d]) break;
        index[d] = 0;
      }
    }
  }
  static const ir::Shape& shape(const ir::Value* v) { return *v->type.shape; }
  const Values& in(const ir::Node& n, size_t i) const { return values_.at(n.input(i)); }
  double at(const ir::Node& n, size_t i, const Index& index) const {
    return in(n, i)[static_cast<size_t>(offset(shape(n.input(i)), index))];
  }

  Values run(const ir::Node& n) const {
    using K = ir::OpKind;
    const ir::Shape& out = shape(n.output());
    Values y;
    const auto map = [&](auto&& f) { each(out, [&](const Index& i) { y.push_back(f(i)); }); };
    switch (n.kind) {
      case K::kRelu:
        map([&](const Index& i) { return std::max(0.0, at(n, 0, i)); });
        break;
      case K::kSigmoid:
        map([&](const Index& i) { return 1 / (1 + std::exp(-at(n, 0, i))); });
        break;
      case K::kIdentity:
      case K::kDropout:
      case K::kCast:
      case K::kFlatten:
      case K::kReshape:
        return in(n, 0);
      case K::kClip:
        map([&](const Index& i) {
          double v = at(n, 0, i);
          if (n.has_input(1)) v = std::max(v, in(n, 1)[0]);
          return n.has_input(2) ? std::min(v, in(n, 2)[0]) : v;
        });
        break;
      case K::kAdd:
        map([&](const Index& i) { return at(n, 0, i) + at(n, 1, i); });
        break;
      case K::kSub:
        map([&](const Index& i) { return at(n, 0, i) - at(n, 1, i); });
        break;
      case K::kMul:
        map([&](const Index& i) { return at(n, 0, i) * at(n, 1, i); });
        break;
      case K::kPRelu:
        map([&](const Index& i) { return at(n, 0, i) < 0 ? at(n, 0, i) * at(n, 1, i) : at(n, 0, i); });
        break;
      case K::kDiv:
        map([&](const Index& i) { return at(n, 0, i) / at(n, 1, i); });
        break;
      case K::kMax:
        map([&](const Index& i) { return std::max(at(n, 0, i), at(n, 1, i)); });
        break;
      case K::kMin:
        map([&](const Index& i) { return std::min(at(n, 0, i), at(n, 1, i)); });
        break;
      case K::kBatchNormalization:
        map([&](const Index& i) {
          const size_t c = static_cast<size_t>(i[1]);
          return (at(n, 0, i) - in(n, 3)[c]) / std::sqrt(in(n, 4)[c] + n.get_float("epsilon")) * in(n, 1)[c] +
                 in(n, 2)[c];
        });
        break;
      case K::kTranspose:
        map([&](const Index& i) {
          Index source(i.size());
          const auto perm = n.get_ints("perm");
          for (size_t d = 0; d < i.size(); ++d) source[static_cast<size_t>(perm[d])] = i[d];
          return at(n, 0, source);
        });
        break;
      case K::kPad: {
        const auto pads = n.input(1)->constant->to_ints();
        map([&](const Index& i) {
          Index source = i;
          for (size_t d = 0; d < i.size(); ++d) {
            source[d] -= pads[d];
            if (source[d] < 0 || source[d] >= shape(n.input(0))[d]) return 0.0;
          }
          return at(n, 0, source);
        });
        break;
      }
      case K::kConcat:
        map([&](const Index& i) {
          Index source = i;
          const size_t axis = static_cast<size_t>(n.get_int("axis"));
          size_t part = 0;
          while (source[axis] >= shape(n.input(part))[axis]) source[axis] -= shape(n.input(part++))[axis];
          return at(n, part, source);
        });
        break;
      case K::kMatMul:
      case K::kGemm:
        map([&](const Index& i) {
          double sum = n.has_input(2) ? at(n, 2, i) : 0;
          for (int64_t k = 0; k < shape(n.input(0))[1]; ++k)
            sum += at(n, 0, {i[0], k}) * (n.get_int("transB") ? at(n, 1, {i[1], k}) : at(n, 1, {k, i[1]}));
          return sum;
        });
        break;
      case K::kConv:
        map([&](const Index& i) { return window(n, i); });
        break;
      case K::kMaxPool:
      case K::kAveragePool:
        map([&](const Index& i) { return window(n, i); });
        break;
      default:
        ADD_FAILURE() << "the test's interpreter lacks " << n.info().name;
    }
    return y;
  }

  // One output of a Conv (group 1) or a pool in two dimensions.
  double window(const ir::Node& n, const Index& i) const {
    const ir::Shape& x = shape(n.input(0));
    const bool conv = n.kind == ir::OpKind::kConv;
    const auto pads = n.get_ints("pads", {0, 0, 0, 0}), strides = n.get_ints("strides", {1, 1});
    const Index kernel = conv ? Index{shape(n.input(1))[2], shape(n.input(1))[3]} : n.get_ints("kernel_shape");
    double sum = conv && n.has_input(2) ? in(n, 2)[static_cast<size_t>(i[1])] : 0;
    double largest = -std::numeric_limits<double>::infinity();
    int64_t inside = 0;
    for (int64_t c = conv ? 0 : i[1]; c < (conv ? x[1] : i[1] + 1); ++c)
      for (int64_t r = 0; r < kernel[0]; ++r)
        for (int64_t s = 0; s < kernel[1]; ++s) {
          const int64_t h = i[2] * strides[0] - pads[0] + r, w = i[3] * strides[1] - pads[1] + s;
          if (h < 0 || h >= x[2] || w < 0 || w >= x[3]) continue;
          const double v = at(n, 0, {i[0], c, h, w});
          ++inside;
          largest = std::max(largest, v);
          sum += conv ? v * at(n, 1, {i[1], c, r, s}) : v;
        }
    if (conv) return sum;
    if (n.kind == ir::OpKind::kMaxPool) return largest;
    return sum / static_cast<double>(n.get_int("count_include_pad") ? kernel[0] * kernel[1] : inside);
  }

  std::map<const ir::Value*, Values> values_;
};

}  // namespace octet::passes
