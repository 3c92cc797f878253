#include "quant/target.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ir/query.h"
#include "quant/fusion_model.h"

namespace octet::quant {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;

float limit(const Node& clip, size_t input, float otherwise) {
  const std::optional<float> bound = ir::scalar(clip.input(input));
  return bound ? *bound : otherwise;
}

// Whether ONNX Runtime drops this Relu or Clip in front of the quantizer: codes below or above its limits there are
// not.
bool is_in_quantizer(const Node& activation, const Node& quantizer) {
  if (!ir::scalar(quantizer.input(1))) return false;
  const double scale = *ir::scalar(quantizer.input(1));
  const auto zero = static_cast<double>(quantizer.input(2)->constant->to_ints()[0]);
  const double low = (static_cast<double>(quantizer.get_int("qmin")) - zero) * scale,
               high = (static_cast<double>(quantizer.get_int("qmax")) - zero) * scale;
  if (activation.kind == OpKind::kRelu) return low >= 0;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Its comparison is one of float32.
  return activation.kind == OpKind::kClip && limit(activation, 1, -kInfinity) <= static_cast<float>(low) &&
         limit(activation, 2, kInfinity) >= static_cast<float>(high);
}

// The quantizer that ONNX Runtime finds behind a convolution, or why there is none.
std::string quantized_result(const ir::Graph& graph, const Node& product) {
  const Value* v = product.output();
  const Node* activation = nullptr;
  for (;;) {
    if (graph.is_output(v)) return "its result is an output of the network";
    const auto quantizes = [](const Node* user) { return is_quantizer(user); };
    if (std::none_of(v->users.begin(), v->users.end(), quantizes)) {
      // It moves quantizers backwards over what only moves elements.
      const Node* reader = ir::only_reader(graph, v);
      if (reader == nullptr) return "its result is read as floats";
      if (activation == nullptr && (reader->kind == OpKind::kRelu || reader->kind == OpKind::kClip))
        activation = reader;
      else if (reader->kind != OpKind::kMaxPool && reader->kind != OpKind::kTranspose &&
               reader->kind != OpKind::kReshape)
        return str("its result is read as floats by ", reader->info().name, " '", reader->name, "'");
      v = reader->output();
      continue;
    }
    if (v->users.size() > 1) return "its result is read by its quantizer and others";
    if (activation != nullptr && !is_in_quantizer(*activation, *v->users[0]))
      return str(activation->info().name, " '", activation->name, "' is not part of the quantizer behind it");
    return "";
  }
}

// Why a runtime computes this product in floats; empty: it does not.
std::string float_reason(const ir::Graph& graph, const Node& node, Target target) {
  if (!is_quantizer(node.input(0)->producer)) return "its input is not quantized";
  if (!is_quantizer(node.input(1)->producer)) return "its weights are not quantized";
  if (target != Target::kOnnxRuntime) return "";
  if (node.kind == OpKind::kConvTranspose) return "it has no integer kernel for it";
  if (node.kind == OpKind::kGemm && (node.get_float("alpha") != 1 || node.get_int("transA") != 0))
    return "it has no integer kernel with a factor or a transposed input";
  return node.kind == OpKind::kConv ? quantized_result(graph, node) : "";
}

}  // namespace

OCTET_ENUM_NAMES(Target, {Target::kAny, "any"}, {Target::kOnnxRuntime, "onnxruntime"}, {Target::kOpenVino, "openvino"},
                 {Target::kTensorRt, "tensorrt"})

const TargetProfile& profile(Target target) {
  static constexpr TargetProfile kAny, kTensorRt{.signed_only = true},
      kOpenVino{.unsigned_activations = true, .zero_points = true},
      kOnnxRuntime{
          .unsigned_activations = true, .zero_points = true, .quantized_results = true, .onnxruntime_forms = true};
  switch (target) {
    case Target::kOnnxRuntime:
      return kOnnxRuntime;
    case Target::kOpenVino:
      return kOpenVino;
    case Target::kTensorRt:
      return kTensorRt;
    case Target::kAny:
      break;
  }
  return kAny;
}

Target target_of(const ir::Graph& graph) {
  const auto found = graph.metadata.find(kTargetKey);
  return found == graph.metadata.end() ? Target::kAny
                                       : schema::parse_enum<Target>(str("metadata ", kTargetKey), found->second);
}

IntegerProducts integer_products(const ir::Graph& graph, Target target) {
  IntegerProducts out;
  for (const auto& node : graph.nodes()) {
    if (!is_weighted(*node)) continue;
    ++out.all;
    const std::string reason = float_reason(graph, *node, target);
    if (reason.empty())
      ++out.integer;
    else
      out.reasons.push_back(str(node->info().name, " '", node->name, "': ", reason));
  }
  return out;
}

}  // namespace octet::quant
