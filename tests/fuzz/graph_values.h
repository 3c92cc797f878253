// Inputs, constants and attributes of a network from the bytes of a fuzzer: mostly of sensible sizes and numbers.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "byte_source.h"
#include "ir/graph.h"

namespace octet::testing {

class GraphValues {
 protected:
  using Ints = std::vector<int64_t>;

  explicit GraphValues(ByteSource& bytes) : bytes_(bytes) {}

  void add_input() {
    const Ints shapes[] = {{1, 4, 6, 6},
                           {ir::kDynamic, 3, 8, 8},
                           {2, 16, 5, 7},
                           {1, 17, 4, 4},
                           {3, 10},
                           {2, 3, 9},
                           {1, 2, 3, 4, 5},
                           {7},
                           {},
                           {1, 64, 1, 1}};
    Ints shape = bytes_.pick(shapes);
    for (int64_t& d : shape)
      if (bytes_.chance(4)) d = std::clamp<int64_t>(bytes_.number(bytes_.between(-1, 20)), -1, 1LL << 40);
    live_.push_back(graph_.add_input("", {ir::DataType::kFloat32, shape}));
  }
  ir::Value* value() {
    // Mostly the newest, so that long chains come about.
    const size_t back = bytes_.chance(60) ? 0 : bytes_.byte() % live_.size();
    return live_[live_.size() - 1 - back];
  }
  static Ints shape_of(const ir::Value* v) { return v->type.shape.value_or(Ints{}); }
  static int64_t size_at(const Ints& shape, size_t axis) {
    return axis < shape.size() ? std::clamp<int64_t>(shape[axis], 1, 64) : 1;
  }
  ir::Value* constant(ir::Tensor tensor) { return graph_.add_constant("", std::move(tensor)); }
  ir::Value* scalar(float v) { return constant(ir::Tensor::scalar(v)); }
  ir::Value* ints(const Ints& v) { return constant(ir::Tensor::of<int64_t>({std::ssize(v)}, v)); }
  // Numbers between -1 and 1, or one of the families that arithmetic trips over.
  ir::Value* floats(Ints shape) {
    for (int64_t& d : shape) d = std::clamp<int64_t>(d, 0, 64);
    while (ir::element_count(shape) > 4096) *std::max_element(shape.begin(), shape.end()) = 1;
    const uint8_t family = bytes_.byte();
    uint32_t state = family;
    std::vector<float> out(static_cast<size_t>(ir::element_count(shape)));
    for (float& v : out) {
      state = state * 1664525u + 1013904223u;
      v = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
      if (family >= 252) v *= 1e30f;
      if (family >= 248 && family < 252) v *= 1e-30f;
      if (family >= 244 && family < 248) v = 0;
      if (family >= 236 && family < 244) v = std::round(v * 3);
      if (family >= 228 && family < 236) v = std::fabs(v);
    }
    if (family == 227 && !out.empty()) out[state % out.size()] = NAN;
    if (family == 226 && !out.empty()) out[state % out.size()] = INFINITY;
    return constant(ir::Tensor::of<float>(shape, out));
  }
  float real() {
    static constexpr float kReals[] = {0.5f, 0.01f, 1, 6, 3, -1, 0, 1e-5f, 2, 1e30f, 1e-30f, -1e30f, 1e-45f, 255, 100};
    return bytes_.pick(kReals);
  }
  ir::Value* zero_point(Ints shape, bool is_unsigned, int64_t value) {
    const auto count = static_cast<size_t>(ir::element_count(shape));
    if (is_unsigned)
      return constant(ir::Tensor::of<uint8_t>(shape, std::vector<uint8_t>(count, static_cast<uint8_t>(value))));
    return constant(ir::Tensor::of<int8_t>(shape, std::vector<int8_t>(count, static_cast<int8_t>(value))));
  }

  // --- attributes
  Ints list(size_t count, int64_t first, int64_t last) {
    if (bytes_.chance(2)) count = static_cast<size_t>(bytes_.between(0, 6));
    Ints out;
    for (size_t i = 0; i < count; ++i) out.push_back(bytes_.number(bytes_.between(first, last)));
    return out;
  }
  int64_t axis(const Ints& shape) {
    const int64_t rank = std::max<int64_t>(std::ssize(shape), 1);
    return bytes_.number(bytes_.between(-rank, rank - 1));
  }
  Ints permutation(size_t rank) {
    Ints perm(rank);
    for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
    for (size_t i = rank; i > 1; --i) std::swap(perm[i - 1], perm[bytes_.byte() % i]);
    for (int64_t& p : perm) p = bytes_.number(p);
    return perm;
  }
  void windows(ir::Attributes& a, size_t axes, bool kernel) {
    if (kernel) a["kernel_shape"] = list(axes, 1, 4);
    if (bytes_.chance(50)) a["strides"] = list(axes, 1, 3);
    if (bytes_.chance(50)) a["pads"] = list(2 * axes, 0, 2);
    if (bytes_.chance(20)) a["dilations"] = list(axes, 1, 3);
    static const std::string kPadding[] = {"SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "OTHER"};
    if (bytes_.chance(8)) a["auto_pad"] = bytes_.pick(kPadding);
  }
  // Of an attribute for which the operator's own case below has nothing.
  void set_any(ir::Attributes& a, const ir::AttributeInfo& info, const Ints& shape) {
    if (info.type == "int") a[info.name] = bytes_.number(info.name == "axis" ? axis(shape) : bytes_.between(0, 2));
    if (info.type == "float") a[info.name] = real();
    if (info.type == "ints") a[info.name] = list(shape.size(), -1, 3);
    static const std::string kTexts[] = {"constant",
                                         "reflect",
                                         "edge",
                                         "nearest",
                                         "linear",
                                         "cubic",
                                         "half_pixel",
                                         "align_corners",
                                         "asymmetric",
                                         "floor",
                                         "ceil",
                                         "round_prefer_ceil",
                                         "pytorch_half_pixel",
                                         "DCR",
                                         "CRD",
                                         "SAME_UPPER",
                                         "tf_crop_and_resize",
                                         "not_larger",
                                         "not_smaller",
                                         "wrap"};
    if (info.type == "string") a[info.name] = bytes_.pick(kTexts);
  }

  ByteSource& bytes_;
  ir::Graph graph_;
  std::vector<ir::Value*> live_;  // floats
};

}  // namespace octet::testing
