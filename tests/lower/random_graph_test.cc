// Random quantized graphs: whatever is fused, the numbers are those of the fake-quantized graph, on every instruction
// set. Scales are chosen from the values, so that codes use their range.
#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;

class RandomNet {
 public:
  explicit RandomNet(uint64_t seed) : net(seed) {
    const int64_t c = pick({3, 8, 16, 20}), size = pick({5, 8, 12});
    tensors_.push_back(quantize(net.input({pick({1, 2}), c, size, size})));
    const int64_t count = net.random.integer(4, 9);
    for (int64_t i = 0; i < count; ++i) grow();
    std::vector<ir::Value*> outputs{tensors_.back()};
    if (net.random.integer(0, 1)) outputs.push_back(tensors_[net.random.integer(1, tensors_.size() - 1)]);
    if (outputs.size() == 2 && outputs[0] == outputs[1]) outputs.pop_back();
    net.finish(outputs);
  }
  QuantNet net;

 private:
  int64_t pick(std::vector<int64_t> from) { return from[net.random.integer(0, from.size() - 1)]; }
  const ir::Shape& shape(ir::Value* v) {
    ir::infer_shapes(net.graph);
    return *v->type.shape;
  }
  ir::Value* quantize(ir::Value* v) {
    const float scale = net.random.uniform(0.015f, 0.025f);
    if (net.random.integer(0, 3) == 0) return net.fq(v, scale, true, static_cast<int>(net.random.integer(0, 150)));
    return net.fq(v, scale);
  }
  ir::Value* any() { return tensors_[net.random.integer(0, tensors_.size() - 1)]; }

  void grow() {
    ir::Value* x = any();
    const ir::Shape s = shape(x);
    ir::Value* y = nullptr;
    switch (net.random.integer(0, 10)) {
      case 0:
      case 1:
      case 2: {
        const int64_t kernel = s[2] >= 5 ? pick({1, 3, 5}) : 1;
        const int64_t groups = s[1] % 4 == 0 && net.random.integer(0, 3) == 0 ? pick({2, 4, s[1]}) : 1;
        const int64_t out = groups == s[1] ? s[1] : groups * net.random.integer(1, 12);
        y = net.conv(x, s[1], out, kernel,
                     {.stride = s[2] > 6 ? pick({1, 2}) : 1,
                      .pad = kernel / 2,
                      .groups = groups,
                      .bias = net.random.integer(0, 3) > 0});
        break;
      }
      case 3:
        y = net.op(OpKind::kMaxPool, {x},
                   {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>(4, 1)}});
        break;
      case 4: {  // a residual block
        ir::Value* branch = net.conv(x, s[1], s[1], 3, {.pad = 1});
        if (net.random.integer(0, 2) == 0) branch = quantize(branch);
        y = net.random.integer(0, 1) ? net.op(OpKind::kAdd, {branch, x}) : net.op(OpKind::kAdd, {x, branch});
        break;
      }
      case 5:
        y = net.op(OpKind::kConcat, {x, net.conv(x, s[1], net.random.integer(1, 20), 1)}, {{"axis", int64_t{1}}});
        break;
      case 6:
        y = net.op(net.random.integer(0, 1) ? OpKind::kTanh : OpKind::kHardSwish, {x});
        break;
      case 7: {  // squeeze and excite
        auto* gate =
            net.op(OpKind::kSigmoid,
                   {net.fq(net.conv(net.fq(net.op(OpKind::kGlobalAveragePool, {x}), 0.01f), s[1], s[1], 1), 0.02f)});
        y = net.op(OpKind::kMul, {x, net.fq(gate, 1.0f / 127)});
        break;
      }
      case 8: {  // a gate of the tensor itself, with a quantizer of its own
        auto* gate = net.op(net.random.integer(0, 1) ? OpKind::kSigmoid : OpKind::kTanh, {x});
        y = net.op(OpKind::kMul, {x, net.fq(gate, 1.0f / 127)});
        break;
      }
      case 9: {  // an activation behind a convolution, with nothing quantized between them
        auto* a = net.conv(x, s[1], net.random.integer(1, 40), 1);
        y = net.random.integer(0, 1) ? net.op(OpKind::kMul, {a, net.op(OpKind::kSigmoid, {a})})
                                     : net.op(OpKind::kTanh, {a});
        break;
      }
      default:
        y = net.op(OpKind::kAveragePool, {x},
                   {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>(4, 1)}});
    }
    if (net.random.integer(0, 1)) y = net.random.integer(0, 1) ? net.relu(y) : net.relu6(y);
    tensors_.push_back(quantize(y));
    if (net.random.integer(0, 3) == 0) tensors_.push_back(quantize(y));  // a second quantizer of the same tensor
  }
  std::vector<ir::Value*> tensors_;
};

TEST(RandomGraphs, EqualTheFakeQuantizedGraph) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomNet random(seed);
    QuantNet& net = random.net;
    const auto plan = compile(net.graph, (*net.graph.inputs()[0]->type.shape)[0]);
    const auto inputs = net.random_inputs(-2, 2);
    const auto expected = evaluate_graph(net.graph, inputs);
    const auto scalar = run_plan(plan, inputs, Isa::kScalar, 1);
    const Comparison c = compare(scalar.dumps, expected);
    // Scales differ between neighbors by less than a factor of two, so one step becomes at most two or three further
    // on.
    EXPECT_LE(c.off_by_one, 0.03 * c.codes + 3);
    EXPECT_LE(c.worse, 0.004 * c.codes + 3);
    for (Isa isa : supported_isas())
      for (int threads : {1, 2}) {
        const auto run = run_plan(plan, inputs, isa, threads);
        for (size_t i = 0; i < run.dumps.size(); ++i)
          ASSERT_EQ(scalar.dumps[i].codes, run.dumps[i].codes)
              << run.dumps[i].name << " on " << isa_name(isa) << ", " << threads << " threads";
      }
  }
}

}  // namespace
}  // namespace octet::testing
