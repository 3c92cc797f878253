#include "quant/tensor_ranges.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "ir/query.h"
#include "ir/traits.h"
#include "quant/fusion_model.h"

namespace octet::quant {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

constexpr float kLevels = 127;

// The scale in terms of symmetric int8.
float int8_scale(const Node& quantizer) {
  const std::vector<float> scales = quantizer.input(1)->constant->to_floats();
  const std::vector<int64_t> zeros = quantizer.input(2)->constant->to_ints();
  const int64_t qmin = quantizer.get_int("qmin"), qmax = quantizer.get_int("qmax");
  float largest = 0;
  for (size_t c = 0; c < scales.size(); ++c) {
    const int64_t zero = zeros.at(zeros.size() == 1 ? 0 : c);
    // That int8 has one code more below zero is used by nobody.
    const int64_t levels = std::max(qmax - zero, zero - std::max<int64_t>(qmin, zero == 0 ? -qmax : qmin));
    const float scale =
        levels == static_cast<int64_t>(kLevels) ? scales[c] : scales[c] * static_cast<float>(levels) / kLevels;
    largest = std::max(largest, scale);
  }
  return largest;
}

bool is_clip_of_constants(const Node& node) {
  return node.kind == OpKind::kClip && (!node.has_input(1) || ir::scalar(node.input(1))) &&
         (!node.has_input(2) || ir::scalar(node.input(2)));
}

// Codes go through it as they are, or are clipped.
bool passes_codes(const Node& node) {
  return ir::commutes_with_quantizer(node) || is_clip_of_constants(node);
}

// The largest magnitude that the operator can give, whatever goes in.
std::optional<float> end_of_values(const Node& node) {
  switch (node.kind) {
    case OpKind::kSigmoid:
    case OpKind::kHardSigmoid:
    case OpKind::kSoftmax:
    case OpKind::kTanh:
    case OpKind::kErf:
      return 1.0f;
    case OpKind::kClip: {
      const std::optional<float> low = ir::scalar(node.input(1)), high = ir::scalar(node.input(2));
      if (!low || !high) return std::nullopt;
      return std::max(std::abs(*low), std::abs(*high));
    }
    default:
      return std::nullopt;
  }
}

class Deriver {
 public:
  Deriver(const Graph& graph, TensorRanges& ranges) : graph_(graph), ranges_(ranges), all_(activations(graph)) {}

  int run() {
    const size_t before = ranges_.size();
    // What comes out of a Relu is the better range of what goes in than any bound from above, so backward comes first.
    while (backward() || forward()) {
    }
    return static_cast<int>(ranges_.size() - before);
  }

 private:
  const TensorRange* find(const Value* value) const {
    const auto it = ranges_.find(value->name);
    return it == ranges_.end() ? nullptr : &it->second;
  }

  void derive(const Value* value, float scale, std::string how) {
    ranges_[value->name] = {.scale = scale, .origin = RangeOrigin::kDerived, .how = std::move(how)};
  }

  bool backward() {
    bool changed = false;
    for (auto it = all_.rbegin(); it != all_.rend(); ++it)
      if (!find(*it) && derive_from_readers(*it)) changed = true;
    return changed;
  }

  bool derive_from_readers(const Value* value) {
    if (value->users.empty() || graph_.is_output(value)) return false;
    float scale = 0;
    const Node* from = nullptr;
    for (const Node* reader : value->users) {
      if (!passes_codes(*reader)) return false;
      for (const Value* out : reader->outputs) {
        if (!out) continue;
        const TensorRange* range = find(out);
        if (!range) return false;
        if (!from || range->scale > scale) {
          scale = range->scale;
          from = reader;
        }
      }
    }
    if (!from) return false;
    derive(value, scale, str("that of '", from->output()->name, "' (", from->info().name, ")"));
    return true;
  }

  bool forward() {
    bool changed = false;
    for (const Value* value : all_)
      if (!find(value) && value->producer && derive_from_producer(value, *value->producer)) changed = true;
    return changed;
  }

  bool derive_from_producer(const Value* value, const Node& node) {
    const std::optional<float> end = end_of_values(node);
    if (!passes_codes(node) && !is_average_pool(node)) {
      if (end) derive(value, *end / kLevels, str(node.info().name, " ends at ", *end));
      return end.has_value();
    }
    float scale = 0;
    const Value* from = nullptr;
    for (size_t i = 0; i < ir::data_inputs(node); ++i) {
      const Value* input = node.input(i);
      if (!input || input->is_constant()) return false;
      const TensorRange* range = find(input);
      if (!range) {
        if (!end) return false;
        continue;
      }
      if (!from || range->scale > scale) {
        scale = range->scale;
        from = input;
      }
    }
    if (end && (!from || *end / kLevels < scale)) {
      derive(value, *end / kLevels, str(node.info().name, " ends at ", *end));
      return true;
    }
    if (!from) return false;
    derive(value, scale, str("that of '", from->name, "' (", node.info().name, ")"));
    return true;
  }

  const Graph& graph_;
  TensorRanges& ranges_;
  std::vector<const Value*> all_;
};

}  // namespace

std::map<const Value*, TensorRange> quantizer_ranges(const Graph& graph) {
  std::map<const Value*, TensorRange> out;
  for (const auto& node : graph.nodes()) {
    if (!ir::is_quantizer(node.get())) continue;
    const Value* value = ir::behind_quantizers(node->input(0));
    if (value->is_constant()) continue;
    float& scale = out[value].scale;
    scale = std::max(scale, int8_scale(*node));
  }
  return out;
}

std::vector<const Value*> activations(const Graph& graph) {
  std::vector<const Value*> out;
  const auto add = [&](const Value* value) {
    if (value && !value->is_constant() && value->type.data_type == ir::DataType::kFloat32) out.push_back(value);
  };
  for (const Value* input : graph.inputs()) add(input);
  for (const auto& node : graph.nodes())
    for (const Value* output : node->outputs) add(output);
  return out;
}

int derive_ranges(const Graph& graph, TensorRanges& ranges) {
  return Deriver(graph, ranges).run();
}

std::vector<std::string> tensors_without_range(const Graph& graph, const TensorRanges& ranges) {
  std::vector<std::string> out;
  for (const Value* value : activations(graph))
    if (!ranges.count(value->name)) out.push_back(value->name);
  return out;
}

std::vector<std::string> unequal_ranges(const Graph& graph, const TensorRanges& ranges) {
  std::vector<std::string> out;
  for (const auto& node : graph.nodes()) {
    std::vector<const Value*> alike;
    if (node->kind == OpKind::kMaxPool || node->kind == OpKind::kGlobalMaxPool || is_average_pool(*node))
      alike = {node->input(0), node->output()};
    else if (node->info().has(ir::trait::kElementwise) && node->info().has(ir::trait::kOperands))
      alike.assign(node->inputs.begin(), node->inputs.end());
    std::set<float> scales;
    for (const Value* value : alike)
      if (const auto it = ranges.find(value->name); it != ranges.end()) scales.insert(it->second.scale);
    if (scales.size() > 1) out.push_back(node->name);
  }
  return out;
}

}  // namespace octet::quant
