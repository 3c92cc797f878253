// QLinear operators (QOperator format of ONNX Runtime) as what they stand for: DequantizeLinear of every tensor, the
// float operator, QuantizeLinear of the result. fuse_qdq and the compiler then see the same graph as of a QDQ file.
#pragma once
#include <string>
#include <vector>

#include "onnx/upgrade.h"

namespace octet::onnx {

// Of the default domain: QLinearConv, QLinearMatMul. Of com.microsoft: QGemm, QLinearAdd, QLinearMul, QLinearConcat,
// QLinearAveragePool, QLinearGlobalAveragePool, QLinearReduceMean, QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax,
// and the QuantizeLinear and DequantizeLinear of that domain.
bool is_qlinear(const std::string& domain, const std::string& op);

// Why an operator of integer arithmetic that Octet knows is refused; empty for any other operator.
std::string refused_integer_op(const std::string& op);

// The nodes in execution order; the last has the node's name and outputs. Nodes of other operators come back as they
// are. UserError says what cannot be expressed, without naming the node.
std::vector<SourceNode> expand_qlinear(SourceNode node, UpgradeContext& context);

}  // namespace octet::onnx
