#include "app/export_target.h"

#include <algorithm>
#include <cstdlib>

#include "app/clean_network.h"
#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"
#include "ir/infer.h"
#include "passes/pipelines.h"
#include "quant/target.h"

namespace octet::app {
namespace {

using ir::OpKind;

// 8.6 -> 806, 10.2 -> 1002; 0: the newest.
int version_number(const std::string& text, const std::string& target) {
  if (text.empty()) return 1100;
  char* end = nullptr;
  const long major = std::strtol(text.c_str(), &end, 10);
  const long minor = *end == '.' ? std::strtol(end + 1, &end, 10) : 0;
  if (*end != '\0' || major < 8 || major > 99 || minor < 0 || minor > 99)
    fail_usage("--target ", target, ": expected tensorrt:MAJOR.MINOR with a version from 8.0 on, as in tensorrt:8.6");
  return static_cast<int>(major * 100 + minor);
}

// u8 codes [0, 255] with zero point 0 -> s8 codes [0, 127] of twice the step (255 / 127 times), as TensorRT knows no
// unsigned activations. Quantizers with another zero point cannot be expressed.
int make_signed(ir::Graph& graph) {
  int changed = 0;
  for (const auto& node : graph.nodes()) {
    if (node->kind != OpKind::kFakeQuantize || node->get_int("qmax") != 255) continue;
    const std::vector<int64_t> zero = node->input(2)->constant->to_ints();
    if (std::any_of(zero.begin(), zero.end(), [](int64_t z) { return z != 0; }))
      fail(node->name, ": its zero point is ", zero[0],
           "; TensorRT takes zero point 0 only. Calibrate with quant.activations.unsigned: no");
    std::vector<float> scale = node->input(1)->constant->to_floats();
    for (float& s : scale) s = s * 255.0f / 127.0f;
    const ir::Shape shape = node->input(1)->constant->shape();
    graph.set_input(
        node.get(), 1,
        graph.add_constant(graph.unique_name(node->input(1)->name + "/signed"), ir::Tensor::of<float>(shape, scale)));
    graph.set_input(node.get(), 2,
                    graph.add_constant(graph.unique_name(node->input(2)->name + "/signed"),
                                       ir::Tensor::of<int8_t>(shape, std::vector<int8_t>(scale.size(), 0))));
    node->attributes["qmin"] = int64_t{-128};
    node->attributes["qmax"] = int64_t{127};
    ++changed;
  }
  if (changed > 0)
    log_warning(changed,
                " activations were unsigned and became signed for TensorRT: half the resolution; calibrate "
                "with quant.activations.unsigned: no to train for it");
  return changed;
}

// Weights of ConvTranspose: TensorRT 8.4 to 10.1 wants one scale for each input channel (axis 0), the others one for
// each output channel (axis 1). Where the graph has the other one, a single scale for the tensor serves all versions.
int fit_conv_transpose(ir::Graph& graph, int version) {
  int changed = 0;
  const int64_t axis = version >= 804 && version < 1002 ? 0 : 1;
  for (const auto& node : graph.nodes()) {
    if (node->kind != OpKind::kConvTranspose) continue;
    ir::Node* q = node->input(1)->producer;
    if (!q || q->kind != OpKind::kFakeQuantize || q->input(1)->constant->size() <= 1 || q->get_int("axis") == axis)
      continue;
    const std::vector<float> scales = q->input(1)->constant->to_floats();
    graph.set_input(q, 1,
                    graph.add_constant(graph.unique_name(q->input(1)->name + "/tensor"),
                                       ir::Tensor::scalar(*std::max_element(scales.begin(), scales.end()))));
    graph.set_input(
        q, 2, graph.add_constant(graph.unique_name(q->input(2)->name + "/tensor"), ir::Tensor::scalar<int8_t>(0)));
    log_warning(node->name, ": one weight scale for the tensor, because this TensorRT wants scales along axis ", axis);
    ++changed;
  }
  return changed;
}

}  // namespace

std::vector<passes::Pass> target_passes(const std::string& target) {
  const std::string name = target.substr(0, target.find(':'));
  const std::vector<std::string> known = {"onnxruntime", "openvino", "tensorrt"};
  if (std::find(known.begin(), known.end(), name) == known.end())
    fail_usage("--target ", target, ": unknown; one of onnxruntime, openvino, tensorrt, tensorrt:VERSION",
               did_you_mean(name, known));
  if (name != "tensorrt" && name != target) fail_usage("--target ", target, ": only tensorrt takes a version");
  if (name != "tensorrt") return {};
  const int version = version_number(target.size() > name.size() ? target.substr(name.size() + 1) : "", target);
  return {{"make_signed", "give unsigned activations signed codes of half the resolution", make_signed},
          {"fit_conv_transpose", "give weights of transposed convolutions the scales that the version takes",
           [version](ir::Graph& graph) { return fit_conv_transpose(graph, version); }}};
}

std::string integer_products_text(const ir::Graph& graph, const std::string& target) {
  const auto kind = schema::parse_enum<quant::Target>("target", target.substr(0, target.find(':')));
  const quant::IntegerProducts count = quant::integer_products(graph, kind);
  const char* name = kind == quant::Target::kOnnxRuntime ? "ONNX Runtime"
                     : kind == quant::Target::kOpenVino  ? "OpenVINO"
                                                         : "TensorRT";
  std::string out = str(name, " will run ", count.integer, " of ", count.all, " convolutions and products in INT8");
  if (count.reasons.empty()) return out;
  out += str("; not ", some_of(count.reasons, "layer"));
  if (kind == quant::Target::kOnnxRuntime && quant::target_of(graph) != kind)
    out += ". It wants quantizers of its own: quantize with --target onnxruntime (quant.target of a spec)";
  return out;
}

void prepare_for_target(ir::Graph& graph, const std::string& target, const ExportPreparation& options) {
  std::vector<passes::Pass> of_target = target_passes(target), all = passes::export_passes();
  if (options.drop_quantizers) of_target = {passes::find_pass("remove_fake_quant")};
  all.insert(all.end(), of_target.begin(), of_target.end());
  passes::run_pipeline(graph, all, {.dump_directory = options.dump_passes});
  graph.remove_dead();
  ir::infer_shapes(graph);
}

}  // namespace octet::app
