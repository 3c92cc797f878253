// Squeeze-and-excite: x * gate(mean of x over the image), where the gate is a chain of small layers.
#include <algorithm>

#include "lower/emit_int8.h"
#include "lower/lowering.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::Value;

constexpr size_t kMaxLayers = 4;

bool one_pixel(const Value* v) {
  const ir::Shape& s = *v->type.shape;
  return s.size() == 2 || (s.size() == 4 && s[2] == 1 && s[3] == 1);
}

// A convolution from one pixel to one pixel.
bool is_layer(const Int8Chain& chain) {
  const kernels::ConvGeometry& g = chain.weighted.geometry;
  return chain.output && chain.residual == nullptr && g.groups == 1 && g.kernel_h == 1 && g.kernel_w == 1 &&
         g.pad_top == 0 && g.pad_left == 0 && chain.weighted.pad_bottom == 0 && chain.weighted.pad_right == 0 &&
         one_pixel(chain.weighted.x) && one_pixel(chain.out);
}

}  // namespace

std::optional<Lowering::Job> Lowering::squeeze_excite(const Node& node) {
  auto product = pointwise_->quantized_sum(node);
  if (!product || product->op->kind != ir::OpKind::kMul) return std::nullopt;
  const ir::Shape& whole = *node.output()->type.shape;
  if (*product->a->type.shape != whole)
    std::swap(product->a, product->b), std::swap(product->a_params, product->b_params);
  if (whole.size() != 4 || whole[2] * whole[3] == 1 || *product->a->type.shape != whole) return std::nullopt;
  if (*product->b->type.shape != ir::Shape{whole[0], whole[1], 1, 1}) return std::nullopt;
  SqueezeExcite block{.end = &node, .name = product->op, .op = "+Mul" + product->clamps, .x = product->a};
  // From the gate back to the mean; nobody else reads what lies between.
  for (const Value* v = product->b;;) {
    if (!single_use(graph_, v) || v->producer == nullptr) return std::nullopt;
    if (!is_quantizer(v->producer)) {
      if (!v->producer->info().has(ir::trait::kReshapes) || !keeps_features(*v->producer)) return std::nullopt;
      v = v->producer->input(0);
      continue;
    }
    if (const auto average = read_average(*v->producer)) {
      if (!average->global || average->x != block.x || block.layers.empty()) return std::nullopt;
      block.mean_op = average->op, block.mean = quantizer_params(*v->producer), block.mean_bounds = average->bounds;
      block.op = average->name + block.op;
      break;
    }
    auto chain = read_fused_chain(*v->producer);
    if (!chain) chain = read_table_chain(*v->producer);
    if (!chain) chain = read_function_chain(*v->producer);
    if (!chain || !is_layer(*chain) || block.layers.size() == kMaxLayers) return std::nullopt;
    v = chain->weighted.x;
    block.op = "+" + chain->op + block.op;
    block.layers.insert(block.layers.begin(), std::move(*chain));
  }
  block.product = *product;
  need_codes(block.x);
  return [block](PlanBuilder& b) { emit_squeeze_excite(b, block); };
}

void emit_squeeze_excite(PlanBuilder& b, const SqueezeExcite& block) {
  const int in = b.codes(block.x);
  b.set_source(*block.end, *block.mean_op, block.mean_op->info().name);
  const int sums = b.row_sums(block.x, *block.end);
  const int out = b.define_codes(block.end->output(), block.product.out);
  struct Constants {
    engine::ConstantRef weights, acc_init, multiplier, table;
  };
  std::vector<Constants> constants;
  for (const Int8Chain& layer : block.layers) {
    Constants& c = constants.emplace_back();
    c.weights = b.constant(pack_weights(layer, false));
    c.acc_init = b.constant(layer.weights->accumulator), c.multiplier = b.constant(multipliers(layer));
    if (!layer.table.empty()) c.table = b.constant(layer.table);
    if (layer.function) c.table = b.constant(layer.function->table);
  }
  b.set_source(*block.end, *block.name, block.op);
  engine::Step& s = b.step("squeeze_excite", *block.end, {in, sums}, {out});
  s.int8 = true;
  const auto write = [&](const std::string& prefix, const numerics::QuantParams& params, const Bounds& bounds) {
    const CodeLimits limits = code_limits(bounds, params);
    s.ints[prefix + "zero_point"] = params.zero_point + code_offset(params);
    s.ints[prefix + "lo"] = limits.lo, s.ints[prefix + "hi"] = limits.hi;
  };
  s.floats["mean_scale"] = block.mean.scale;
  write("mean_", block.mean, block.mean_bounds);
  s.ints["layers"] = static_cast<int64_t>(block.layers.size());
  for (size_t i = 0; i < block.layers.size(); ++i) {
    const Int8Chain& layer = block.layers[i];
    const std::string key = std::to_string(i) + "_";
    s.ints[key + "channels"] = layer.weighted.geometry.out_channels;
    if (layer.function)
      write_function(s, key + "function", *layer.function, constants[i].table);
    else
      write(key, *layer.output, layer.bounds);
    s.constants[key + "weights"] = constants[i].weights, s.constants[key + "acc_init"] = constants[i].acc_init;
    s.constants[key + "multiplier"] = constants[i].multiplier;
    if (!layer.table.empty()) s.constants[key + "table"] = constants[i].table;
  }
  s.ints["gate_zero_point"] = block.product.b_params.zero_point + code_offset(block.product.b_params);
  s.floats["multiplier"] = block.product.product_multiplier();
  const CodeLimits limits = code_limits(block.product.bounds, block.product.out);
  s.ints["lo"] = limits.lo, s.ints["hi"] = limits.hi;
}

}  // namespace octet::lower
