#include "app/lint/lint.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/lint/targets.h"
#include "base/error.h"
#include "base/nearest.h"
#include "ir/query.h"
#include "quant/lint_placement.h"
#include "report/text_table.h"

namespace octet::app {
namespace {

constexpr const char* kKinds[] = {"refused", "float", "rescale", "reformat", "note"};
constexpr LintKind kAllKinds[] = {LintKind::kRefused, LintKind::kFloat, LintKind::kRescale, LintKind::kReformat,
                                  LintKind::kNote};

LintKind kind_of(quant::PlacementIssue issue) {
  switch (issue) {
    case quant::PlacementIssue::kFloatLayer:
    case quant::PlacementIssue::kFloatPool:
      return LintKind::kFloat;
    case quant::PlacementIssue::kSplitAdd:
    case quant::PlacementIssue::kConcatRequantizes:
    case quant::PlacementIssue::kQuantizedTwice:
      return LintKind::kRescale;
    case quant::PlacementIssue::kFloatResidual:
    case quant::PlacementIssue::kFloatIsland:
      return LintKind::kReformat;
    case quant::PlacementIssue::kPerTensorWeights:
    case quant::PlacementIssue::kNotCalibrated:
      break;
  }
  return LintKind::kNote;
}

bool is_quantized(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& n) {
    return ir::is_quantizer(n.get()) || n->kind == ir::OpKind::kQuantizeLinear ||
           n->kind == ir::OpKind::kDequantizeLinear;
  });
}

// 100 * major + minor of "tensorrt:8.6"; that of `tensorrt` alone is the latest of the table.
int tensorrt_version(const std::string& target) {
  const size_t colon = target.find(':');
  if (colon == std::string::npos) return 1100;
  const std::string text = target.substr(colon + 1);
  char* end = nullptr;
  const long major = std::strtol(text.c_str(), &end, 10);
  const long minor = *end == '.' && end[1] != '\0' ? std::strtol(end + 1, &end, 10) : 0;
  if (text.empty() || *end != '\0' || major < 8 || major > 99 || minor < 0 || minor > 99)
    fail_usage("--target ", target, ": expected tensorrt:MAJOR.MINOR with a version from 8.0 on, as in tensorrt:8.6");
  return static_cast<int>(major * 100 + minor);
}

}  // namespace

const char* lint_kind_name(LintKind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

int LintVerdict::count(LintKind kind) const {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(), [&](const LintFinding& f) { return f.kind == kind; }));
}

const std::vector<std::string>& lint_targets() {
  static const std::vector<std::string> targets = {"engine", "tensorrt:8.6", "tensorrt:10.3", "tensorrt:11.0",
                                                   "dla",    "openvino",     "onnxruntime"};
  return targets;
}

std::string node_text(const ir::Node& node) {
  return str(node.info().name, " '", node.name, "'");
}

void lint_fusion(const ir::Graph& graph, LintVerdict& verdict) {
  for (const auto& node : graph.nodes()) verdict.all += node->info().has(ir::trait::kWeighted);
  verdict.integer = is_quantized(graph) ? verdict.all : 0;
  for (quant::PlacementNote& note : quant::lint_placement(graph)) {
    if (note.issue == quant::PlacementIssue::kNotCalibrated) continue;  // lint_codes has it
    verdict.integer -= note.issue == quant::PlacementIssue::kFloatLayer;
    verdict.findings.push_back({kind_of(note.issue), std::move(note.node), std::move(note.message)});
  }
}

void lint_codes(const ir::Graph& graph, LintVerdict& verdict) {
  int observing = 0, few = 0;
  const ir::Node *first_observing = nullptr, *first_few = nullptr;
  for (const auto& node : graph.nodes()) {
    if (!ir::is_quantizer(node.get())) continue;
    if (node->get_string("state") == ir::kObserving && ++observing == 1) first_observing = node.get();
    if (node->get_int("qmax") - node->get_int("qmin") < 254 && ++few == 1) first_few = node.get();
  }
  if (observing > 0)
    verdict.findings.push_back({LintKind::kRefused, first_observing->name,
                                str(observing, " quantizers have no scale yet (the first is '", first_observing->name,
                                    "'); calibrate the network")});
  if (few > 0)
    verdict.findings.push_back({LintKind::kNote, first_few->name,
                                str(few, " quantizers have fewer than 8 bits (the first is '", first_few->name,
                                    "'); Q/DQ pairs end at 8 bits, so the runtime computes with more codes than the "
                                    "network was quantized to")});
}

LintVerdict lint(const ir::Graph& graph, const std::string& target) {
  LintVerdict out{.target = target};
  const std::string name = target.substr(0, target.find(':'));
  if (name != "tensorrt" && name != target) fail_usage("--target ", target, ": only tensorrt takes a version");
  if (name == "tensorrt") {
    const int version = tensorrt_version(target);
    out.title = str("TensorRT ", version / 100, ".", version % 100);
    lint_tensorrt(graph, version, out);
  } else if (name == "engine") {
    out.title = "Octet's engine";
    lint_engine(graph, out);
  } else if (name == "dla") {
    out.title = "DLA";
    lint_dla(graph, out);
  } else if (name == "openvino") {
    out.title = "OpenVINO";
    lint_openvino(graph, out);
  } else if (name == "onnxruntime") {
    out.title = "ONNX Runtime";
    lint_onnxruntime(graph, out);
  } else {
    const std::vector<std::string> known = {"engine", "tensorrt", "dla", "openvino", "onnxruntime"};
    fail_usage("--target ", target, ": unknown; one of engine, tensorrt, tensorrt:VERSION, dla, openvino, onnxruntime",
               did_you_mean(name, known));
  }
  if (!is_quantized(graph))
    out.findings.push_back(
        {LintKind::kNote, "", "the network has no quantizers; octet quantize places them and finds their scales"});
  if (!out.is_taken()) out.integer = 0;
  // What decides first, else in the order of the nodes.
  std::stable_sort(out.findings.begin(), out.findings.end(),
                   [](const LintFinding& a, const LintFinding& b) { return a.kind < b.kind; });
  return out;
}

std::string lint_table(const std::vector<LintVerdict>& verdicts) {
  report::TextTable table({"runtime", "file", "INT8", "rescales", "reformats", "first of all"});
  for (const LintVerdict& v : verdicts)
    table.add_row({v.title, v.is_taken() ? "taken" : "refused", str(v.integer, " of ", v.all),
                   str(v.count(LintKind::kRescale)), str(v.count(LintKind::kReformat)),
                   v.findings.empty() ? "" : v.findings[0].message});
  return table.text();
}

std::string lint_text(const LintVerdict& v) {
  std::string out = str(v.title, v.is_taken() ? " takes the file; " : " refuses the file; ", v.integer, " of ", v.all,
                        " convolutions and products in INT8, ", v.count(LintKind::kRescale), " rescales, ",
                        v.count(LintKind::kReformat), " reformats\n");
  for (const LintFinding& f : v.findings) out += str(lint_kind_name(f.kind), "  ", f.message, "\n");
  return out;
}

nlohmann::ordered_json lint_json(const std::vector<LintVerdict>& verdicts) {
  nlohmann::ordered_json targets = nlohmann::ordered_json::array();
  for (const LintVerdict& v : verdicts) {
    nlohmann::ordered_json counts, findings = nlohmann::ordered_json::array();
    for (const LintKind kind : kAllKinds) counts[lint_kind_name(kind)] = v.count(kind);
    for (const LintFinding& f : v.findings)
      findings.push_back({{"kind", lint_kind_name(f.kind)}, {"node", f.node}, {"message", f.message}});
    targets.push_back({{"target", v.target},
                       {"title", v.title},
                       {"taken", v.is_taken()},
                       {"int8", v.integer},
                       {"products", v.all},
                       {"counts", counts},
                       {"findings", findings}});
  }
  return {{"targets", targets}};
}

}  // namespace octet::app
