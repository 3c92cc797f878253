// A network from the bytes of a fuzzer: every operator of the table, mostly in forms that fit, now and then with an
// attribute, a shape or a constant that no sensible exporter writes. Nodes that the shape rules refuse are left out, so
// nearly every input gets to what comes behind the importer.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph_values.h"
#include "ir/infer.h"

namespace octet::testing {

class GraphMaker : private GraphValues {
 public:
  explicit GraphMaker(ByteSource& bytes) : GraphValues(bytes) {}

  ir::Graph make() {
    for (int64_t i = bytes_.between(0, 9) / 9; i >= 0; --i) add_input();
    for (int i = 0; i < 24 && !bytes_.empty(); ++i) add_node();
    add_outputs();
    return std::move(graph_);
  }

 private:
  using K = ir::OpKind;

  // --- quantizers
  ir::Value* quantized(ir::Value* x, bool weights) {
    const Ints shape = shape_of(x);
    const bool is_unsigned = !weights && bytes_.chance(30);
    const int64_t axis = bytes_.number(weights ? 0 : 1);
    const bool per_channel = (weights ? !bytes_.chance(20) : bytes_.chance(3)) && axis >= 0 && axis < std::ssize(shape);
    const Ints sizes = per_channel ? Ints{size_at(shape, static_cast<size_t>(axis))} : Ints{};
    const std::vector<float> scales(per_channel ? sizes[0] : 1, bytes_.chance(80) ? 1.0f / 128 : std::fabs(real()));
    const int64_t zero = bytes_.chance(25) ? bytes_.between(-128, 127) : 0;
    ir::Attributes a{{"axis", axis},
                     {"qmin", is_unsigned         ? int64_t{0}
                              : bytes_.chance(20) ? int64_t{-127}
                                                  : int64_t{-128}},
                     {"qmax", is_unsigned ? int64_t{255} : int64_t{127}}};
    if (bytes_.chance(3)) a["qmin"] = bytes_.number(-8), a["qmax"] = bytes_.number(7);
    return attempt(K::kFakeQuantize,
                   {x, constant(ir::Tensor::of<float>(sizes, scales)),
                    zero_point(sizes, is_unsigned, is_unsigned ? zero + 128 : zero)},
                   std::move(a), x);
  }

  // --- nodes
  // The first output, or `otherwise` where the node fits nothing.
  ir::Value* attempt(K kind, std::vector<ir::Value*> inputs, ir::Attributes attributes, ir::Value* otherwise,
                     size_t outputs = 1) {
    ir::Node* node =
        graph_.add_node(kind, "", std::move(inputs), std::vector<std::string>(outputs), std::move(attributes));
    try {
      ir::infer_node(*node);
    } catch (const UserError&) {
      graph_.erase(node);
      return otherwise;
    }
    for (size_t i = outputs; i-- > 0;)
      if (node->output(i)->type.data_type == ir::DataType::kFloat32) live_.push_back(node->output(i));
    return node->output();
  }

  void add_weighted(K kind, ir::Value* x) {
    const Ints shape = shape_of(x);
    const int64_t channels = size_at(shape, 1);
    const int64_t outputs = bytes_.number(bytes_.between(1, 20));
    ir::Attributes a;
    Ints weights;
    int64_t bias = outputs;
    if (kind == K::kConv || kind == K::kConvTranspose) {
      const size_t axes = shape.size() < 2 ? 2 : shape.size() - 2;
      int64_t group = bytes_.chance(30) ? (bytes_.chance(50) ? channels : bytes_.between(1, 4)) : 1;
      const int64_t per_group = std::max<int64_t>(channels / std::max<int64_t>(group, 1), 1);
      const int64_t made = group == 1 ? outputs : group * bytes_.between(1, 2);
      weights = kind == K::kConv ? Ints{made, per_group} : Ints{channels, std::max<int64_t>(made / group, 1)};
      bias = made;
      const int64_t kernel = bytes_.between(1, 5);
      for (size_t i = 0; i < axes; ++i) weights.push_back(bytes_.chance(10) ? bytes_.between(1, 7) : kernel);
      windows(a, axes, bytes_.chance(10));
      if (group != 1 || bytes_.chance(3)) a["group"] = bytes_.number(group);
      if (kind == K::kConvTranspose && bytes_.chance(30)) a["output_padding"] = list(axes, 0, 1);
      if (kind == K::kConvTranspose && bytes_.chance(5)) a["output_shape"] = list(axes, 1, 20);
    } else {
      const bool transposed = kind == K::kGemm && bytes_.chance(50);
      const int64_t depth = size_at(shape, shape.empty() ? 0 : shape.size() - 1);
      weights = transposed ? Ints{outputs, depth} : Ints{depth, outputs};
      if (transposed) a["transB"] = int64_t{1};
      if (kind == K::kGemm && bytes_.chance(10)) a["transA"] = bytes_.number(1);
      if (kind == K::kGemm && bytes_.chance(10)) a["alpha"] = real();
      if (kind == K::kGemm && bytes_.chance(10)) a["beta"] = real();
    }
    if (bytes_.chance(3)) weights = list(weights.size(), 0, 8);
    const bool quantize = bytes_.chance(40);
    ir::Value* w = bytes_.chance(4) ? value() : floats(weights);
    if (quantize) x = quantized(x, false), w = quantized(w, w->is_constant());
    std::vector<ir::Value*> inputs{x, w};
    if (kind != K::kMatMul && bytes_.chance(50))
      inputs.push_back(floats(bytes_.chance(5) ? list(1, 1, 8) : Ints{bias}));
    attempt(kind, std::move(inputs), std::move(a), nullptr);
  }

  ir::Value* operand(const Ints& shape) {
    if (bytes_.chance(40)) return value();
    Ints small = shape;
    switch (bytes_.byte() % 4) {
      case 0:
        return scalar(real());
      case 1:  // one for each channel
        for (size_t i = 0; i < small.size(); ++i)
          if (i != 1) small[i] = 1;
        break;
      case 2:
        small = list(shape.size(), 1, 4);
        break;
      default:
        break;
    }
    return floats(small);
  }

  void add_node() {
    const ir::OpInfo& info = bytes_.pick(ir::all_ops());
    ir::Value* x = value();
    const Ints shape = shape_of(x);
    const size_t rank = shape.size(), axes = rank < 3 ? 2 : rank - 2;
    ir::Attributes a;
    std::vector<ir::Value*> inputs{x};
    size_t outputs = 1;
    switch (info.kind) {
      case K::kConv:
      case K::kConvTranspose:
      case K::kGemm:
      case K::kMatMul:
        return add_weighted(info.kind, x);
      case K::kBatchNormalization:
        for (int i = 0; i < 4; ++i) inputs.push_back(floats({size_at(shape, 1)}));
        break;
      case K::kLayerNormalization: {
        const size_t first = rank == 0 ? 0 : static_cast<size_t>(bytes_.between(0, static_cast<int64_t>(rank) - 1));
        const Ints together(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end());
        for (int i = 0; i < (bytes_.chance(80) ? 2 : 1); ++i) inputs.push_back(floats(together));
        a["axis"] = bytes_.number(static_cast<int64_t>(first));
        if (bytes_.chance(10)) outputs = 3;
        break;
      }
      case K::kFakeQuantize:
        quantized(x, false);
        return;
      case K::kQuantizeLinear: {
        ir::Value* scale = scalar(bytes_.chance(80) ? 0.01f : real());
        ir::Value* zero = zero_point({}, bytes_.chance(50), bytes_.between(0, 127));
        ir::Value* codes = attempt(K::kQuantizeLinear, {x, scale, zero}, {}, nullptr);
        if (codes == nullptr) return;
        if (bytes_.chance(30)) codes = attempt(K::kReshape, {codes, ints({-1, size_at(shape, 0)})}, {}, codes);
        if (bytes_.chance(30)) codes = attempt(K::kTranspose, {codes}, {}, codes);
        attempt(K::kDequantizeLinear, {codes, bytes_.chance(90) ? scale : scalar(0.5f), zero}, {}, nullptr);
        return;
      }
      case K::kClip:
        inputs.push_back(bytes_.chance(90) ? scalar(bytes_.chance(50) ? 0.0f : real()) : nullptr);
        inputs.push_back(bytes_.chance(70) ? scalar(bytes_.chance(50) ? 6.0f : real()) : nullptr);
        break;
      case K::kPRelu:
      case K::kAdd:
      case K::kSub:
      case K::kMul:
      case K::kDiv:
      case K::kPow:
        inputs.push_back(operand(shape));
        if (info.kind != K::kPRelu && bytes_.chance(25)) std::swap(inputs[0], inputs[1]);
        break;
      case K::kMin:
      case K::kMax:
        for (int64_t i = bytes_.between(0, 2); i > 0; --i) inputs.push_back(operand(shape));
        break;
      case K::kConcat:
        for (int64_t i = bytes_.between(0, 3); i > 0; --i)
          inputs.push_back(bytes_.chance(60) ? value() : floats(shape));
        a["axis"] = bytes_.chance(70) ? int64_t{1} : axis(shape);
        break;
      case K::kMaxPool:
      case K::kAveragePool:
        windows(a, axes, true);
        break;
      case K::kReduceMean:
      case K::kReduceSum:
      case K::kReduceMax:
        if (bytes_.chance(80))
          inputs.push_back(ints(bytes_.chance(60) ? Ints{2, 3} : list(bytes_.between(0, 3), -4, 3)));
        break;
      case K::kSplit: {
        outputs = static_cast<size_t>(bytes_.between(1, 4));
        const int64_t at = axis(shape);
        a["axis"] = at;
        const size_t where = static_cast<size_t>(at < 0 ? at + std::ssize(shape) : at);
        Ints sizes(outputs, 1);
        sizes.back() = bytes_.number(size_at(shape, where) - static_cast<int64_t>(outputs) + 1);
        if (bytes_.chance(70))
          inputs.push_back(ints(sizes));
        else if (bytes_.chance(50))
          a["num_outputs"] = static_cast<int64_t>(outputs);
        break;
      }
      case K::kSlice: {
        const size_t count = static_cast<size_t>(bytes_.between(1, 3));
        inputs.push_back(ints(list(count, -5, 5)));
        inputs.push_back(ints(list(count, -2, 12)));
        if (bytes_.chance(80)) inputs.push_back(ints(list(count, -4, 3)));
        if (bytes_.chance(40) && inputs.size() == 4) inputs.push_back(ints(list(count, -2, 3)));
        break;
      }
      case K::kPad:
        inputs.push_back(ints(list(2 * rank, bytes_.chance(20) ? -2 : 0, 2)));
        if (bytes_.chance(30)) inputs.push_back(scalar(real()));
        break;
      case K::kReshape: {
        Ints to = list(static_cast<size_t>(bytes_.between(0, 5)), -1, 8);
        if (bytes_.chance(50)) to = {bytes_.chance(50) ? 0 : 1, -1};
        if (bytes_.chance(20)) to = {0, -1, size_at(shape, rank - 1)};
        inputs.push_back(ints(to));
        break;
      }
      case K::kSqueeze:
        if (bytes_.chance(80))
          inputs.push_back(ints(bytes_.chance(60) ? Ints{2, 3} : list(bytes_.between(0, 3), -4, 3)));
        break;
      case K::kUnsqueeze:
        inputs.push_back(ints(list(bytes_.between(1, 3), -4, 4)));
        break;
      case K::kTranspose:
        if (bytes_.chance(90)) a["perm"] = permutation(rank);
        break;
      case K::kExpand: {
        Ints to = shape;
        for (int64_t& d : to) d = d == 1 ? bytes_.number(bytes_.between(1, 6)) : d;
        if (bytes_.chance(20)) to = list(rank, 1, 6);
        inputs.push_back(ints(to));
        break;
      }
      case K::kResize: {
        static constexpr float kScales[] = {1, 2, 1.5f, 0.5f, 3, 0.1f, 1e-5f, 100, 1e9f, -1, 0};
        if (bytes_.chance(60)) {
          std::vector<float> scales(rank, 1.0f);
          for (size_t i = bytes_.chance(10) ? 0 : 2; i < rank; ++i)
            scales[i] = kScales[bytes_.chance(15) ? bytes_.byte() % 11 : 1];
          inputs.push_back(nullptr);
          inputs.push_back(constant(ir::Tensor::of<float>({std::ssize(scales)}, scales)));
        } else {
          Ints sizes = shape;
          for (size_t i = 2; i < rank; ++i) sizes[i] = bytes_.number(bytes_.between(1, 20));
          inputs.insert(inputs.end(), {nullptr, nullptr, ints(sizes)});
        }
        static const std::string kModes[] = {"nearest", "linear", "cubic"};
        a["mode"] = bytes_.pick(kModes);
        break;
      }
      case K::kDepthToSpace:
        a["blocksize"] = bytes_.number(bytes_.between(1, 3));
        break;
      case K::kCast:
        a["to"] = bytes_.number(bytes_.chance(70) ? 1 : bytes_.between(1, 16));
        break;
      case K::kDropout:
        if (bytes_.chance(30)) inputs.push_back(scalar(real()));
        break;
      case K::kLRN:
        a["size"] = bytes_.number(bytes_.between(1, 5));
        break;
      case K::kSoftmax:
      case K::kLogSoftmax:
      case K::kArgMax:
      case K::kFlatten:
        if (bytes_.chance(70)) a["axis"] = axis(shape);
        break;
      default:
        break;
    }
    for (const ir::AttributeInfo& attribute : info.attributes)
      if (a.count(attribute.name) == 0 && bytes_.chance(4)) set_any(a, attribute, shape);
    attempt(info.kind, std::move(inputs), std::move(a), nullptr, outputs);
  }

  // What nobody reads, and now and then something that is read.
  void add_outputs() {
    for (ir::Value* v : graph_.values())
      if (v->producer != nullptr && (v->users.empty() || bytes_.chance(5))) graph_.add_output(v);
    if (graph_.outputs().empty()) graph_.add_output(graph_.add(K::kRelu, "", {live_.back()}));
  }
};

}  // namespace octet::testing
