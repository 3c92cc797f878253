// TensorRT with explicit quantization: what its parser and builder say of Q/DQ pairs, by version.
#include <algorithm>

#include "app/lint/targets.h"
#include "base/error.h"
#include "ir/query.h"
#include "quant/fusion_model.h"
#include "quant/target.h"

namespace octet::app {
namespace {

using ir::Node;
using ir::OpKind;

class Rules {
 public:
  Rules(const ir::Graph& graph, int version, LintVerdict& verdict)
      : graph_(graph), version_(version), verdict_(verdict) {}

  void run() {
    if (quant::target_of(graph_) == quant::Target::kOnnxRuntime)
      refuse("",
             "the file was written for ONNX Runtime, with int32 biases behind DequantizeLinear, which TensorRT's "
             "parser refuses; quantize without --target onnxruntime");
    for (const auto& node : graph_.nodes()) {
      if (ir::is_quantizer(node.get())) check_quantizer(*node);
      if (node->kind == OpKind::kQuantizeLinear || node->kind == OpKind::kDequantizeLinear)
        refuse(node->name, str(node_text(*node), " is half of a Q/DQ pair; TensorRT wants both with the same scale"));
      if (node->kind == OpKind::kConvTranspose) check_axis(*node);
    }
    lint_codes(graph_, verdict_);
    lint_fusion(graph_, verdict_);
    if (version_ >= 1100 && verdict_.integer < verdict_.all && verdict_.integer > 0)
      verdict_.findings.push_back(
          {LintKind::kNote, "",
           "from 11.0 on every network is strongly typed: what is not INT8 runs in FP32, as the "
           "file has no Casts to FP16"});
  }

 private:
  void refuse(const std::string& node, std::string message) {
    verdict_.findings.push_back({LintKind::kRefused, node, std::move(message)});
  }

  void check_quantizer(const Node& q) {
    const std::string what = str("the quantizer of '", q.input(0)->name, "'");
    const std::vector<int64_t> zeros = q.input(2)->constant->to_ints();
    const bool weights = q.input(0)->is_constant();
    if (const auto zero = std::find_if(zeros.begin(), zeros.end(), [](int64_t z) { return z != 0; });
        zero != zeros.end())
      refuse(q.name, str(what, " has the zero point ", *zero, "; TensorRT takes 0 alone: calibrate symmetric"));
    else if (q.get_int("qmin") >= 0)
      refuse(
          q.name,
          str(what,
              " has unsigned codes, and those of TensorRT end at 127, so that it refuses them or cuts off half of the "
              "range; octet export --target tensorrt makes them signed, calibration without them keeps their "
              "resolution"));
    const bool per_channel = !q.input(1)->constant->shape().empty();
    if (per_channel && !weights)
      refuse(q.name, str(what, " has a scale for each channel of an activation; TensorRT has one for the tensor"));
    if (per_channel && graph_.opset < 13)
      refuse(q.name, str(what, " has an axis, and the file is of opset ", graph_.opset, "; axes came with 13"));
    if (!weights && q.input(0)->type.shape && q.input(0)->type.shape->empty())
      refuse(q.name, str(what, " quantizes a scalar, which TensorRT does not"));
  }

  void check_axis(const Node& node) {
    const Node* q = node.input(1)->producer;
    if (!ir::is_quantizer(q) || q->input(1)->constant->size() <= 1) return;
    const int64_t wanted = version_ >= 804 && version_ < 1002 ? 0 : 1;
    if (q->get_int("axis") != wanted)
      refuse(node.name,
             str(node_text(node), " has scales along axis ", q->get_int("axis"), " of its weights, and TensorRT ",
                 version_ / 100, ".", version_ % 100, " takes them for axis ", wanted,
                 "; octet export --target tensorrt:", version_ / 100, ".", version_ % 100, " gives them one scale"));
  }

  const ir::Graph& graph_;
  int version_;
  LintVerdict& verdict_;
};

}  // namespace

void lint_tensorrt(const ir::Graph& graph, int version, LintVerdict& verdict) {
  Rules(graph, version, verdict).run();
}

}  // namespace octet::app
