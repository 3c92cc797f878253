// Random networks of what real ones are made of, joined in every way: for tests that take channels out.
#pragma once
#include <string>
#include <vector>

#include "support/net_test_util.h"

namespace octet::testing {

class PrunableNet {
 public:
  explicit PrunableNet(uint64_t seed) : net_(seed) {
    const int64_t size = pick({4, 6});
    live_.push_back(net_.input({pick({1, 2}), pick({1, 3}), size, size}));
    live_.push_back(conv(live_.back(), pick({8, 12, 16}), 3, 1));
    for (int64_t i = net_.random.integer(4, 12); i > 0; --i) live_.push_back(grown(any()));
    std::vector<ir::Value*> outputs = {head(live_.back())};
    if (chance(50)) outputs.push_back(head(any()));
    if (chance(10)) outputs.push_back(any());
    net_.finish(outputs);
  }
  ir::Graph& graph() { return net_.graph; }

 private:
  using K = ir::OpKind;
  using Ints = std::vector<int64_t>;

  int64_t pick(const Ints& from) { return from[static_cast<size_t>(net_.random.integer(0, std::ssize(from) - 1))]; }
  bool chance(int percent) { return net_.random.integer(0, 99) < percent; }
  const ir::Shape& shape(const ir::Value* v) { return *v->type.shape; }
  int64_t channels(const ir::Value* v) { return shape(v)[1]; }
  ir::Value* any() { return live_[static_cast<size_t>(net_.random.integer(1, std::ssize(live_) - 1))]; }
  ir::Value* parameter(ir::Shape s, float low = -1, float high = 1) { return net_.constant(std::move(s), low, high); }

  ir::Value* conv(ir::Value* x, int64_t out, int64_t kernel, int64_t groups) {
    ir::Value* y = net_.conv(x, channels(x), out, kernel,
                             {.pad = kernel / 2, .groups = groups, .quantized = false, .bias = chance(50)});
    if (!chance(60)) return y;
    const int64_t n = out;
    return net_.op(K::kBatchNormalization,
                   {y, parameter({n}), parameter({n}), parameter({n}), parameter({n}, 0.5f, 2)});
  }
  ir::Value* transposed(ir::Value* x, int64_t out, int64_t groups) {
    const int64_t in = channels(x);
    std::vector<ir::Value*> inputs = {x, parameter({in, out / groups, 3, 3}, -0.2f, 0.2f)};
    if (chance(50)) inputs.push_back(parameter({out}));
    return net_.op(K::kConvTranspose, inputs, {{"pads", Ints(4, 1)}, {"group", groups}});
  }
  ir::Value* activation(ir::Value* x) {
    static const K kKinds[] = {K::kRelu, K::kSigmoid, K::kHardSwish, K::kElu, K::kTanh, K::kSoftplus, K::kPRelu};
    const K kind = kKinds[net_.random.integer(0, 6)];
    if (kind == K::kPRelu) return net_.op(kind, {x, parameter({channels(x), 1, 1}, 0, 0.5f)});
    return net_.op(kind, {x});
  }
  ir::Value* reshape(ir::Value* x, const Ints& to) { return net_.op(K::kReshape, {x, net_.ints(to)}); }
  ir::Value* transpose(ir::Value* x, const Ints& perm) { return net_.op(K::kTranspose, {x}, {{"perm", perm}}); }
  ir::Value* slice(ir::Value* x, int64_t first, int64_t end) {
    return net_.op(K::kSlice, {x, net_.ints({first}), net_.ints({end}), net_.ints({1})});
  }
  ir::Value* squeeze_excite(ir::Value* x) {
    ir::Value* s = chance(50) ? net_.op(K::kGlobalAveragePool, {x})
                              : net_.op(K::kReduceMean, {x, net_.ints({2, 3})}, {{"keepdims", int64_t{1}}});
    s = net_.relu(conv(s, pick({4, 6}), 1, 1));
    return net_.op(K::kMul, {x, net_.op(K::kSigmoid, {conv(s, channels(x), 1, 1)})});
  }
  ir::Value* shuffle(ir::Value* x, int64_t groups) {
    const ir::Shape& s = shape(x);
    const Ints apart = {s[0], groups, s[1] / groups, s[2], s[3]};
    const Ints back = chance(50) ? Ints{s[0], -1, s[2], s[3]} : Ints{s[0], s[1], s[2], s[3]};
    return reshape(transpose(reshape(x, apart), {0, 2, 1, 3, 4}), back);
  }

  ir::Value* grown(ir::Value* x) {
    const int64_t n = channels(x);
    const int64_t groups = n % 4 == 0 ? pick({2, 4}) : n % 2 == 0 ? 2 : 1;
    switch (net_.random.integer(0, 17)) {
      case 0:
      case 1:
        return conv(x, pick({8, 10, 16, 24}), pick({1, 3}), 1);
      case 2:
        return conv(x, n * pick({1, 2}), 3, n);  // depthwise
      case 3:
        return conv(x, groups * pick({2, 3, 6}), 3, groups);
      case 4:
        return transposed(x, pick({8, 12}), 1);
      case 5:
        return chance(50) ? transposed(x, n, n) : transposed(x, groups * pick({2, 4}), groups);
      case 6:
        return net_.op(K::kAdd, {x, conv(activation(conv(x, pick({8, 16}), 1, 1)), n, 3, 1)});
      case 7: {  // operands from anywhere
        ir::Value* other = any();
        if (channels(other) != n) other = conv(other, n, 1, 1);
        static const K kKinds[] = {K::kAdd, K::kMul, K::kSub, K::kMax};
        return net_.op(kKinds[net_.random.integer(0, 3)], {x, other});
      }
      case 8:
        return net_.op(K::kConcat, {x, any(), conv(any(), 6, 1, 1)}, {{"axis", int64_t{1}}});
      case 9: {
        const auto pieces = net_.split(x, {n / 2, n - n / 2});
        ir::infer_node(*pieces[0]->producer);
        if (chance(50)) live_.push_back(pieces[1]);
        return pieces[0];
      }
      case 10:
        return n < 4 ? x : slice(x, chance(50) ? 1 : -n + 1, n - pick({0, 1}));
      case 11:
        return squeeze_excite(x);
      case 12:
        return n % groups == 0 ? shuffle(x, groups) : activation(x);
      case 13:
        return net_.op(K::kMaxPool, {x}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints(4, 1)}});
      case 14:  // a foreign layout, and padding of pixels there
        x = transpose(x, {0, 2, 3, 1});
        if (chance(50)) x = net_.op(K::kAdd, {x, parameter({n})});
        x = net_.op(K::kPad, {x, net_.ints({0, 0, 0, 0, 0, 1, 0, 0})});
        x = net_.op(K::kSlice, {x, net_.ints({0}), net_.ints({-1}), net_.ints({1})});
        return transpose(x, {0, 3, 1, 2});
      case 15: {  // pixels of the channels' depth
        ir::Value* wide = conv(x, 4 * pick({3, 5}), 1, 1);
        wide = net_.op(K::kDepthToSpace, {wide},
                       {{"blocksize", int64_t{2}}, {"mode", std::string(chance(50) ? "DCR" : "CRD")}});
        return net_.op(K::kAveragePool, {wide}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
      }
      case 16: {  // a mixer of channels, pixel by pixel
        const ir::Shape s = shape(x);
        ir::Value* rows = transpose(reshape(x, {s[0], n, s[2] * s[3]}), {0, 2, 1});
        rows = net_.op(K::kMatMul, {rows, parameter({n, 10}, -0.3f, 0.3f)});
        return reshape(transpose(rows, {0, 2, 1}), {0, 10, s[2], s[3]});
      }
      default:
        return activation(x);
    }
  }

  ir::Value* linear(ir::Value* x, int64_t out) {
    const int64_t in = shape(x)[1];
    const bool transposed = chance(50);
    return net_.op(K::kGemm, {x, parameter(transposed ? Ints{out, in} : Ints{in, out}, -0.2f, 0.2f), parameter({out})},
                   {{"transB", int64_t{transposed}}});
  }
  ir::Value* head(ir::Value* x) {
    const ir::Shape s = shape(x);
    switch (net_.random.integer(0, 4)) {
      case 0:
        return conv(x, 5, 1, 1);
      case 1:
        return linear(net_.op(K::kFlatten, {x}), 4);
      case 2:  // two layers, and a Reshape that states what is to be flattened
        return linear(net_.relu(linear(reshape(x, {s[0], s[1] * s[2] * s[3]}), 12)), 4);
      case 3:
        return linear(reshape(net_.op(K::kGlobalAveragePool, {x}), {0, -1}), 3);
      default:
        return linear(net_.op(K::kSqueeze, {net_.op(K::kReduceMean, {x, net_.ints({2, 3})}), net_.ints({2, 3})}), 3);
    }
  }

  QuantNet net_;
  std::vector<ir::Value*> live_;
};

}  // namespace octet::testing
