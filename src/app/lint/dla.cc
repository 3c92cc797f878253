// A DLA, which gets a float network and the ranges of its tensors (a calibration cache): what it takes in INT8, and
// what is left to the GPU. The limits are those of NVIDIA's documentation of TensorRT 8 to 10.
#include <algorithm>
#include <set>

#include "app/clean_network.h"
#include "app/lint/targets.h"
#include "base/error.h"
#include "ir/query.h"
#include "quant/fusion_model.h"

namespace octet::app {
namespace {

using ir::Node;
using ir::OpKind;

bool all_within(const std::vector<int64_t>& values, int64_t low, int64_t high) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= low && v <= high; });
}

std::string outside(const char* what, const std::vector<int64_t>& values, int64_t low, int64_t high) {
  std::string list;
  for (const int64_t v : values) list += (list.empty() ? "" : "x") + std::to_string(v);
  return str("its ", what, " ", list, " is outside ", low, " to ", high);
}

std::vector<int64_t> spatial(const ir::Value& value) {
  const ir::Shape& shape = *value.type.shape;
  return shape.size() > 2 ? std::vector<int64_t>(shape.begin() + 2, shape.end()) : std::vector<int64_t>();
}

std::string convolution_limits(const Node& node) {
  const std::vector<int64_t> kernel = spatial(*node.input(1)), strides = node.get_ints("strides", {1, 1}),
                             pads = node.get_ints("pads", {0, 0, 0, 0}), dilations = node.get_ints("dilations", {1, 1});
  const ir::Shape& weights = *node.input(1)->type.shape;
  const int64_t groups = node.get_int("group", 1);
  if (kernel.size() != 2) return "it is not over two dimensions";
  if (node.kind == OpKind::kConvTranspose) {
    if (groups != 1) return "it has groups, and its deconvolution has none";
    if (!all_within(pads, 0, 0)) return "it is padded, and its deconvolution takes none";
    const auto fits = [](int64_t k) { return (k >= 1 && k <= 32) || k == 64 || k == 96 || k == 128; };
    if (!std::all_of(kernel.begin(), kernel.end(), fits)) return outside("kernel", kernel, 1, 32);
    return "";
  }
  if (!all_within(kernel, 1, 32)) return outside("kernel", kernel, 1, 32);
  if (!all_within(strides, 1, 8)) return outside("stride", strides, 1, 8);
  if (!all_within(dilations, 1, 32)) return outside("dilation", dilations, 1, 32);
  if (!all_within(pads, 0, 31)) return outside("padding", pads, 0, 31);
  for (size_t i = 0; i < pads.size() && pads.size() == 4; ++i)
    if (pads[i] >= kernel[i % 2] && pads[i] > 0) return "its padding is not smaller than its kernel";
  if (!all_within({weights[0], weights[1] * groups}, 1, 8192))
    return outside("channels", {weights[1] * groups, weights[0]}, 1, 8192);
  return "";
}

std::string pool_limits(const Node& node) {
  const bool global = node.kind == OpKind::kGlobalAveragePool || node.kind == OpKind::kReduceMean ||
                      node.kind == OpKind::kGlobalMaxPool;
  const std::vector<int64_t> window = global ? spatial(*node.input(0)) : node.get_ints("kernel_shape");
  if (!all_within(window, 1, 8)) return outside("window", window, 1, 8);
  if (global) return "";
  const std::vector<int64_t> strides = node.get_ints("strides", {1, 1}), pads = node.get_ints("pads", {0, 0, 0, 0});
  if (!all_within(strides, 1, 16)) return outside("stride", strides, 1, 16);
  return all_within(pads, 0, 7) ? "" : outside("padding", pads, 0, 7);
}

bool is_pool(const Node& node) {
  return node.kind == OpKind::kMaxPool || node.kind == OpKind::kGlobalMaxPool || quant::is_average_pool(node);
}

// Why a DLA leaves this node to the GPU, whatever the ranges are; empty: it does not.
std::string operator_limits(const Node& node) {
  for (const ir::Value* value : {node.input(0), node.output()}) {
    if (!value || !value->type.shape) return "its shape is not known";
    const ir::Shape& shape = *value->type.shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == ir::kDynamic && d > 0) return "its shape is dynamic";
      if (shape[d] > (d == 0 ? 4096 : 8192)) return outside("size", {shape[d]}, 1, d == 0 ? 4096 : 8192);
    }
  }
  switch (node.kind) {
    case OpKind::kConv:
    case OpKind::kConvTranspose:
      return convolution_limits(node);
    case OpKind::kConcat:
      return node.get_int("axis") == 1 ? "" : "it joins along another axis than that of channels";
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kMax:
    case OpKind::kMin:
    case OpKind::kRelu:
    case OpKind::kClip:
    case OpKind::kSigmoid:
    case OpKind::kTanh:
    case OpKind::kBatchNormalization:
    case OpKind::kGemm:
    case OpKind::kFlatten:  // in front of a Gemm, which a DLA computes as a convolution
    case OpKind::kReshape:
    case OpKind::kDropout:
    case OpKind::kIdentity:
      return "";
    default:
      return is_pool(node) ? pool_limits(node) : "a DLA does not have the operator";
  }
}

}  // namespace

void lint_dla(const ir::Graph& graph, LintVerdict& verdict) {
  lint_codes(graph, verdict);
  CleanNetwork network = take_quantizers_out(graph);
  quant::derive_ranges(network.graph, network.ranges);
  const std::vector<std::string> unequal = quant::unequal_ranges(network.graph, network.ranges);
  const std::set<std::string> rescaled(unequal.begin(), unequal.end());
  const bool any = !network.ranges.empty();
  std::set<std::string> without;  // once a tensor
  for (const auto& node : network.graph.nodes()) {
    const bool product = quant::is_weighted(*node);
    verdict.all += node->info().has(ir::trait::kWeighted);
    const std::string limits = operator_limits(*node);
    if (!limits.empty()) {
      verdict.findings.push_back(
          {LintKind::kFloat, node->name, str(node_text(*node), " is left to the GPU: ", limits)});
      continue;
    }
    if (!any) continue;  // a float network, of which that is said once
    std::vector<std::string> missing;
    for (const ir::Value* value : {node->input(0), node->output()})
      if (!value->is_constant() && !network.ranges.count(value->name)) missing.push_back(value->name);
    if (!missing.empty()) {
      for (const std::string& tensor : missing)
        if (without.insert(tensor).second)
          verdict.findings.push_back({LintKind::kFloat, node->name,
                                      str(node_text(*node), " runs in FP16: tensor '", tensor,
                                          "' has no range; octet quantize --rules dla gives it one, and so does octet "
                                          "export --cache-scope all")});
      continue;
    }
    if (rescaled.count(node->name))
      verdict.findings.push_back({LintKind::kReformat, node->name,
                                  str(node_text(*node), " is left to the GPU in INT8: ",
                                      is_pool(*node) ? "what goes in and what comes out have" : "its operands have",
                                      " different ranges; octet quantize --rules dla makes them equal")});
    verdict.integer += product;
  }
  if (any)
    verdict.findings.push_back({LintKind::kNote, "",
                                "a DLA before TensorRT 11.4 takes no Q/DQ: give it the float network and the cache of "
                                "octet export --cal_cache_file --cache-scope all"});
}

}  // namespace octet::app
