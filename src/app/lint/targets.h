// The rules of the single runtimes, as lint.h puts them together. Each adds what it finds to a verdict.
#pragma once
#include "app/lint/lint.h"

namespace octet::app {

// What all runtimes with fused INT8 kernels have in common: layers without quantized operands, islands of floats,
// quantizers that split kernels, scales that differ.
void lint_fusion(const ir::Graph& graph, LintVerdict& verdict);

void lint_engine(const ir::Graph& graph, LintVerdict& verdict);
// `version`: 100 * major + minor.
void lint_tensorrt(const ir::Graph& graph, int version, LintVerdict& verdict);
void lint_dla(const ir::Graph& graph, LintVerdict& verdict);
void lint_openvino(const ir::Graph& graph, LintVerdict& verdict);
void lint_onnxruntime(const ir::Graph& graph, LintVerdict& verdict);

// "Conv 'conv1'".
std::string node_text(const ir::Node& node);
// Quantizers that still observe, and codes of fewer than 8 bits, which no runtime but Octet's engine ends there.
void lint_codes(const ir::Graph& graph, LintVerdict& verdict);

}  // namespace octet::app
