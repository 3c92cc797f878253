// What happens to a network behind the reader: every pass, quantization, export, lowering, the engine file and a run.
// An input is an ONNX file, or choices of which graph_maker.h makes one; where the choices say so, some bytes of
// that file are changed. Nothing but a UserError may come of it, and:
//  - what Octet exported it imports again, and what it lowered its engine loads;
//  - passes do not change what a float network computes;
//  - every instruction set computes what the scalar kernels do.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "engine/engine_file.h"
#include "engine/profiles.h"
#include "engine/tactics.h"
#include "graph_maker.h"
#include "ir/infer.h"
#include "ir/verify.h"
#include "lower/lower.h"
#include "onnx/export.h"
#include "onnx/import.h"
#include "passes/pipelines.h"
#include "passes/place_fake_quant.h"
#include "passes/prune/cut.h"
#include "passes/set_scales.h"
#include "passes/silence_constant_channels.h"
#include "passes/snap_biases.h"
#include "quant/observer.h"
#include "run_plan.h"

namespace octet::testing {
namespace {

using Outputs = std::vector<std::vector<float>>;
using PlanPtr = std::shared_ptr<const engine::Plan>;

[[noreturn]] void find(const std::string& what) {
  std::fprintf(stderr, "graph_fuzz: %s\n", what.c_str());
  std::abort();
}

// The value of `work`, which has no reason to refuse anything.
template <typename Work>
auto must(const char* what, Work work) {
  try {
    return work();
  } catch (const UserError& e) {
    find(str(what, ": ", e.what()));
  }
}

bool is_onnx(std::span<const uint8_t> data) {
  return data.size() > 1 && data[0] == 0x08 && data[1] < 16;
}

std::string onnx_bytes(ByteSource& choices) {
  static constexpr int kOpsets[] = {19, 13, 20, 21};
  const int64_t changes = choices.chance(20) ? choices.between(1, 4) : 0;
  const int opset = choices.pick(kOpsets);
  struct Change {
    uint32_t at;
    uint8_t value;
  } change[4] = {};
  for (int64_t i = 0; i < changes; ++i) {
    change[i].at = static_cast<uint32_t>(choices.byte()) << 8;
    change[i].at |= choices.byte();
    change[i].value = choices.byte();
  }
  ir::Graph graph = GraphMaker(choices).make();
  ir::verify(graph);
  std::string bytes = onnx::export_bytes(graph, {.opset = opset});
  for (int64_t i = 0; i < changes; ++i)
    bytes[change[i].at * uint64_t{bytes.size()} >> 16] = static_cast<char>(change[i].value);
  return bytes;
}

bool has_quantizers(const ir::Graph& graph) {
  for (const auto& node : graph.nodes())
    if (node->kind == ir::OpKind::kFakeQuantize || node->kind == ir::OpKind::kQuantizeLinear) return true;
  return false;
}

// The engine's plan as its file has it; nothing where it is too large to try.
PlanPtr compiled(const ir::Graph& graph, int64_t batch) {
  engine::Plan plan = lower::lower(graph, {.batch = batch});
  if (!is_tiny(plan)) return nullptr;
  engine::choose_tactics_by_model(plan, {.threads = 2});
  return must("the engine refuses what was lowered", [&] {
    const std::string bytes = engine::engine_file_bytes(plan);
    return engine::parse_engine(std::as_bytes(std::span(bytes)), "lowered");
  });
}

// The first number that is more than `tolerance` away from that of `a`; empty where there is none.
std::string difference(const Outputs& a, const Outputs& b, float tolerance) {
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].size(); ++k)
      if (!(std::fabs(a[i][k] - b[i][k]) <= tolerance))
        return str("output ", i, " [", k, "] is ", b[i][k], ", not ", a[i][k]);
  return "";
}

// The largest magnitude of all tensors; infinite where some number is none.
float largest(const std::vector<engine::TensorDump>& tensors) {
  float out = 0;
  for (const engine::TensorDump& t : tensors)
    for (float v : t.values) out = std::isfinite(v) ? std::max(out, std::fabs(v)) : INFINITY;
  return out;
}

// Runs a plan by the scalar kernels and by those of another instruction set.
void run_twice(const PlanPtr& plan, ByteSource& choices) {
  static const std::vector<Isa> isas = supported_isas();
  const uint32_t seed = 1 + choices.byte();
  const Isa isa = choices.pick(isas);
  const int threads = static_cast<int>(choices.between(1, 2));
  // Sums of floats are added up in different orders, so a code behind them may be the next one.
  bool codes = false, floats = false;
  for (const engine::Step& step : plan->steps) {
    codes |= step.int8 || step.kind == "quantize";
    floats |= !step.int8 && step.kind != "quantize" && step.kind != "dequantize";
  }
  std::vector<engine::TensorDump> tensors;
  const Outputs scalar = run_plan(plan, Isa::kScalar, 1, seed, &tensors);
  const float size = largest(tensors);
  const Outputs other = run_plan(plan, isa, threads, seed);
  if (!(size < 1e15f) || (codes && floats)) return;
  const std::string found = difference(scalar, other, floats ? 1e-3f * size : 0);
  if (!found.empty()) find(str("unlike scalar on ", isa_name(isa), ", ", threads, " threads: ", found));
}

// Quantizers, with scales as if calibration had seen a few numbers.
void quantize(ir::Graph& graph, ByteSource& choices) {
  passes::place_fake_quant(graph, {.unsigned_activations = choices.chance(30), .unify_concat = choices.chance(30)});
  ir::infer_shapes(graph);
  quant::CalibrationSet seen(graph);
  static constexpr float kLargest[] = {1, 6, 0.1f, 1e-30f, 1e30f, 0, 3e38f, 1e-45f};
  for (const std::string& name : seen.names()) {
    const float largest = choices.chance(90) ? 2.0f : choices.pick(kLargest);
    const float values[] = {largest, -largest / 2, largest / 4, 0};
    seen.observe(name, values);
  }
  passes::set_scales(graph, seen.ranges({.method = quant::CalibrationMethod::kMax}));
  passes::snap_biases(graph);
  ir::infer_shapes(graph);
  must("quantization broke the graph", [&] { return ir::verify(graph), 0; });
}

// Small changes of its numbers change the outputs little.
bool is_smooth(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) switch (node->kind) {
      case ir::OpKind::kArgMax:
      case ir::OpKind::kCast:
      case ir::OpKind::kDiv:
      case ir::OpKind::kFloor:
      case ir::OpKind::kLog:
      case ir::OpKind::kPow:
      case ir::OpKind::kSqrt:
        return false;
      default:
        break;
    }
  return !has_quantizers(graph);
}

void must_agree(const PlanPtr& before, const PlanPtr& after) {
  std::vector<engine::TensorDump> tensors;
  const Outputs expected = run_plan(before, Isa::kScalar, 1, 1, &tensors);
  const float size = largest(tensors);
  if (!(size < 1e3f)) return;
  const std::string found = difference(expected, run_plan(after, Isa::kScalar, 1, 1), 1e-2f * size);
  if (!found.empty()) find(str("a pass changed a result: ", found));
}

// After one pass or all of the preparation; what a float network computes stays the same. But for channels that a batch
// norm says are constant: what a pass takes out of them is taken out of both, as their inputs here are any numbers.
void check_passes(const ir::Graph& given, ByteSource& choices, int64_t batch) {
  ir::Graph source = given.clone();
  passes::silence_constant_channels(source);
  std::vector<passes::Pass> list = passes::preparation_passes(/*keep_dropout=*/choices.chance(50));
  if (choices.chance(50)) list = {choices.pick(passes::all_passes())};
  ir::Graph graph = source.clone();
  passes::run_pipeline(graph, list);
  const PlanPtr after = compiled(graph, batch);
  if (!after || !is_smooth(source) || !is_smooth(graph)) return;
  if (const PlanPtr before = compiled(source, batch)) must_agree(before, after);
}

// What is left when channels went computes what the whole network computes with zeros in their place.
void check_pruning(const ir::Graph& source, ByteSource& choices, int64_t batch) {
  ir::Graph graph = source.clone();
  passes::remove_fake_quant(graph);
  ir::infer_shapes(graph);
  const passes::ChannelGroups groups(graph, {.granularity = choices.between(1, 4),
                                             .min_filters = choices.between(1, 3),
                                             .tao_compatible = choices.chance(20)});
  const passes::KeptIndices kept = groups.at(choices.byte() / 255.0);
  const ir::Graph pruned = must("pruning broke the graph", [&] {
    ir::Graph cut = passes::cut_channels(graph, kept);
    ir::verify(cut);
    return cut;
  });
  if (kept.empty() || !is_smooth(graph)) return;
  const PlanPtr after = compiled(pruned, batch);
  if (!after) return;
  if (const PlanPtr before = compiled(passes::mask_channels(graph, kept), batch)) must_agree(before, after);
}

// Prepared and quantized as `octet quantize` does it, written and read again.
ir::Graph quantized(const ir::Graph& source, ByteSource& choices) {
  ir::Graph graph = source.clone();
  passes::run_pipeline(graph, passes::preparation_passes(/*keep_dropout=*/choices.chance(50)));
  if (!has_quantizers(graph)) quantize(graph, choices);
  const std::string written = onnx::export_bytes(graph, {.quantize_weights = choices.chance(70)});
  return must("it does not read what it wrote", [&] { return onnx::import_bytes(written, {}); });
}

void check(const ir::Graph& source, ByteSource& choices) {
  const int64_t batch = choices.chance(80) ? 0 : choices.between(1, 3);
  const int64_t what = choices.between(0, 4);
  if (what == 0) return check_passes(source, choices, batch);
  if (what == 4) return check_pruning(source, choices, batch);
  const PlanPtr plan = what == 1 ? compiled(source, batch) : compiled(quantized(source, choices), batch);
  if (plan) run_twice(plan, choices);
}

}  // namespace
}  // namespace octet::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  set_log_level(LogLevel::kSilent);
  const std::span<const uint8_t> input(data, size);
  const bool onnx = testing::is_onnx(input);
  // What is done with the network: of a file its last bytes say it.
  const size_t some = std::min<size_t>(size, 16);
  testing::ByteSource choices(onnx ? input.last(some) : input.first(some)), network(input.subspan(some));
  try {
    const std::string bytes = onnx ? std::string(input.begin(), input.end()) : testing::onnx_bytes(network);
    if (const char* path = std::getenv("OCTET_FUZZ_WRITE"))  // the network, to look at
      write_file_atomically(path, bytes);
    testing::check(onnx::import_bytes(bytes, {}), choices);
  } catch (const UserError&) {
  }
  return 0;
}
