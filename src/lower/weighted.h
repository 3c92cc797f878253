// Conv, ConvTranspose and Gemm as the compiler sees them, and what can be fused behind them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/kernels/int8_conv.h"
#include "ir/query.h"
#include "lower/pointwise.h"

namespace octet::lower {

// A convolution, or a Gemm as the convolution whose kernel covers the whole image.
struct Weighted {
  const ir::Node* node = nullptr;
  const ir::Value* x = nullptr;  // what it reads: for a Gemm behind Flatten the image before it, where that helps
  kernels::ConvGeometry geometry;
  int64_t pad_bottom = 0, pad_right = 0;
  int64_t in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  int64_t weight_axis = 0;         // of the output channels in the constant
  bool transpose_weights = false;  // the constant is [in][out]
  bool transposed = false;         // a ConvTranspose (transposed_conv.h)

  bool depthwise() const {
    return geometry.groups > 1 && geometry.groups == geometry.in_channels && geometry.groups == geometry.out_channels;
  }
};

// UserError for what the engine has no kernel for at all (rank, negative pads, weights that are computed).
Weighted read_conv(const ir::Node& node);
// Gemm with constant weights, no transposed input, one row of bias. `through_flatten`: see Weighted::x.
bool is_constant_gemm(const ir::Node& node);
Weighted read_gemm(const ir::Node& node, bool through_flatten);
// `reshape` (Flatten or Reshape) makes rows of images, which a Gemm reads as the images themselves.
bool flattens_images(const ir::Node& reshape);

// Everything an INT8 convolution step needs besides its epilogue.
struct QuantizedWeights {
  std::vector<int8_t> codes;         // out x in/groups x kh x kw
  std::vector<float> scales;         // of the weights, per output channel
  std::vector<int32_t> bias;         // per output channel
  std::vector<int32_t> accumulator;  // initial values, padded
  std::string problem;               // why this node cannot be INT8; then the rest is empty
};
QuantizedWeights quantize_weights(const Weighted& w, const numerics::QuantParams& input);
// Fills weights->accumulator from the codes and the bias.
void start_accumulators(const Weighted& w, const numerics::QuantParams& input, QuantizedWeights* weights);

// weighted -> [Add of another tensor] -> [Relu | Clip]*, where nobody else reads what lies between.
struct Chain {
  const ir::Node* weighted = nullptr;   // nullptr: no such chain
  const ir::Value* residual = nullptr;  // the other operand of the Add
  // The Add's operand is FakeQuantize(clamp(weighted)), not the convolution itself: it rounds twice.
  const ir::Node* middle = nullptr;
  Bounds middle_bounds{};
  Bounds bounds{};  // of the clamps at the end; -inf, inf: none
  std::string op;   // "Conv+Add+Relu"
};
struct ChainOptions {
  bool residual = true;             // an Add may be part of it
  bool quantized_residual = false;  // ... only with a quantized other operand, and one behind a quantizer may be fused
};
// The chain that ends in `value`, whatever reads it. `is_quantized` tells which values have codes.
template <typename IsQuantized>
Chain match_chain(const ir::Graph& graph, const ir::Value* value, const ChainOptions& options,
                  IsQuantized is_quantized);

// A node that the compiler reads as a Weighted, and a chain may start with. False for nullptr.
bool starts_chain(const ir::Node* node);
// Walks back over clamps, 16 at most: the value before them. The first value may have any readers.
const ir::Value* skip_clamps(const ir::Graph& graph, const ir::Value* value, Bounds* bounds, std::string* op);

template <typename IsQuantized>
Chain match_chain(const ir::Graph& graph, const ir::Value* value, const ChainOptions& options,
                  IsQuantized is_quantized) {
  Chain chain;
  std::string clamps;
  const ir::Value* v = skip_clamps(graph, value, &chain.bounds, &clamps);
  const bool inside = v != value;
  const ir::Node* p = v->producer;
  if (p == nullptr || (inside && !single_use(graph, v))) return {};
  if (starts_chain(p)) {
    chain.weighted = p;
    chain.op = std::string(p->info().name) + clamps;
    return chain;
  }
  if (!options.residual || p->kind != ir::OpKind::kAdd) return {};
  // First a convolution that meets the sum unrounded, then one behind its own quantizer.
  for (const bool behind : {false, true})
    for (size_t i = 0; i < 2; ++i) {
      const ir::Value *own = p->input(i), *other = p->input(1 - i);
      if (own == other || *own->type.shape != *v->type.shape || *other->type.shape != *v->type.shape) continue;
      if (other->is_constant() || (options.quantized_residual && !is_quantized(other))) continue;
      if (!single_use(graph, own) || own->producer == nullptr) continue;
      std::string inner;
      Chain found = chain;
      if (behind) {
        const ir::Node* quantizer = own->producer;
        if (!options.quantized_residual || quantizer->kind != ir::OpKind::kFakeQuantize) continue;
        own = skip_clamps(graph, quantizer->input(0), &found.middle_bounds, &inner);
        if (!single_use(graph, quantizer->input(0)) || !single_use(graph, own)) continue;
        found.middle = quantizer;
      }
      if (!starts_chain(own->producer)) continue;
      // A ConvTranspose of floats is made beside its output, where a residual has no place.
      if (!options.quantized_residual && own->producer->kind == ir::OpKind::kConvTranspose) continue;
      found.weighted = own->producer, found.residual = other;
      found.op = std::string(found.weighted->info().name) + inner + "+Add" + clamps;
      return found;
    }
  return {};
}

}  // namespace octet::lower
