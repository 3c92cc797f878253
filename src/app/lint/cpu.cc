// Octet's engine, OpenVINO and ONNX Runtime.
#include <algorithm>

#include "app/lint/targets.h"
#include "base/error.h"
#include "ir/query.h"
#include "lower/lower.h"
#include "quant/lint_placement.h"
#include "quant/target.h"

namespace octet::app {

// No model of it: the compiler itself says what becomes of each layer.
void lint_engine(const ir::Graph& graph, LintVerdict& verdict) {
  engine::Plan plan;
  try {
    plan = lower::lower(graph, {});
  } catch (const UserError& e) {
    for (const auto& node : graph.nodes()) verdict.all += node->info().has(ir::trait::kWeighted);
    verdict.findings.push_back({LintKind::kRefused, "", e.what()});
    return;
  }
  const auto is_product = [](const engine::Step& s) {
    for (const char* kind :
         {"conv", "depthwise", "float_conv", "float_depthwise", "float_conv_transpose", "float_gemm", "float_matmul"})
      if (s.kind == kind) return true;
    return false;
  };
  for (const engine::Step& step : plan.steps) {
    const std::string name = str(step.kind, " '", step.name, "'");
    if (is_product(step)) {
      ++verdict.all;
      verdict.integer += step.int8;
    }
    if (!step.int8 && !step.reason.empty())
      verdict.findings.push_back({LintKind::kFloat, step.name, str(name, " runs in float: ", step.reason)});
    const bool from_outside =
        !step.inputs.empty() && std::find(plan.inputs.begin(), plan.inputs.end(), step.inputs[0]) != plan.inputs.end();
    const bool to_outside = !step.outputs.empty() &&
                            std::find(plan.outputs.begin(), plan.outputs.end(), step.outputs[0]) != plan.outputs.end();
    if ((step.kind == "quantize" && !from_outside) || (step.kind == "dequantize" && !to_outside))
      verdict.findings.push_back({LintKind::kReformat, step.name,
                                  str(name, step.kind == "quantize" ? ": floats become codes" : ": codes become floats",
                                      " between two layers")});
  }
}

void lint_openvino(const ir::Graph& graph, LintVerdict& verdict) {
  lint_codes(graph, verdict);
  lint_fusion(graph, verdict);
}

void lint_onnxruntime(const ir::Graph& graph, LintVerdict& verdict) {
  lint_codes(graph, verdict);
  const quant::IntegerProducts products = quant::integer_products(graph, quant::Target::kOnnxRuntime);
  verdict.integer = products.integer;
  for (const std::string& reason : products.reasons) {
    const size_t first = reason.find('\''), last = reason.find("': ");
    const std::string node =
        first < last && last != std::string::npos ? reason.substr(first + 1, last - first - 1) : "";
    verdict.findings.push_back({LintKind::kFloat, node, reason});
  }
  for (const auto& node : graph.nodes()) verdict.all += node->info().has(ir::trait::kWeighted);
  for (quant::PlacementNote& note : quant::lint_placement(graph)) {
    if (note.issue == quant::PlacementIssue::kFloatIsland)
      verdict.findings.push_back({LintKind::kReformat, note.node, note.message});
    if (note.issue == quant::PlacementIssue::kConcatRequantizes || note.issue == quant::PlacementIssue::kQuantizedTwice)
      verdict.findings.push_back({LintKind::kRescale, note.node, note.message});
  }
  if (products.integer < products.all && products.integer + products.reasons.size() > 0 &&
      quant::target_of(graph) != quant::Target::kOnnxRuntime && products.all > 0)
    verdict.findings.push_back(
        {LintKind::kNote, "", "it wants quantizers of its own: octet quantize --target onnxruntime places them"});
}

}  // namespace octet::app
