#include "passes/equalize_channels.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ir/query.h"
#include "passes/rewrite.h"
#include "quant/fusion_model.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

constexpr int kMostRounds = 20;
constexpr int kMostExponent = 24;  // of a factor in one round

// Two weighted nodes and what lies between them.
struct Pair {
  Node *first, *second;
  std::vector<Node*> clips;  // that end at a number
};

// Weights as one matrix for each role of a channel.
struct Weights {
  Node* node;
  size_t outputs = 0, inputs = 0;     // channels
  std::vector<size_t> output, input;  // of each element
};

// Nothing where a channel has no place of its own in the weights.
std::optional<Weights> layout_of(Node* node) {
  const Value* w = node->input(1);
  if (!w->is_constant() || w->type.data_type != ir::DataType::kFloat32) return std::nullopt;
  const ir::Shape& shape = w->constant->shape();
  const auto elements = static_cast<size_t>(w->constant->size());
  Weights out{.node = node};
  out.output.resize(elements), out.input.resize(elements);
  if (node->kind == OpKind::kConv) {
    const auto groups = static_cast<size_t>(node->get_int("group"));
    const auto rows = static_cast<size_t>(shape[0]), columns = static_cast<size_t>(shape[1]);
    const size_t taps = elements / (rows * columns);
    out.outputs = rows, out.inputs = columns * groups;
    for (size_t i = 0; i < elements; ++i) {
      const size_t row = i / (columns * taps), column = i / taps % columns;
      out.output[i] = row;
      out.input[i] = row / (rows / groups) * columns + column;
    }
  } else if (node->kind == OpKind::kGemm && node->get_int("transA") == 0 && shape.size() == 2) {
    const bool rows_are_outputs = node->get_int("transB") != 0;
    const auto rows = static_cast<size_t>(shape[0]), columns = static_cast<size_t>(shape[1]);
    out.outputs = rows_are_outputs ? rows : columns, out.inputs = rows_are_outputs ? columns : rows;
    for (size_t i = 0; i < elements; ++i) {
      const size_t row = i / columns, column = i % columns;
      out.output[i] = rows_are_outputs ? row : column;
      out.input[i] = rows_are_outputs ? column : row;
    }
  } else {
    return std::nullopt;
  }
  return out;
}

// A bias that can be divided by channel, or none.
bool divisible_bias(const Graph& graph, const Node& node, size_t channels) {
  if (!node.has_input(2)) return true;
  const Value* bias = node.input(2);
  return bias->is_constant() && bias->type.data_type == ir::DataType::kFloat32 && single_use(graph, bias) &&
         bias->constant->shape() == ir::Shape{static_cast<int64_t>(channels)};
}

enum class Kept { kYes, kNo, kWithoutItsEnd };

// Whether the node computes s * f(x) of s * x for any positive s of each channel.
Kept keeps_factors(const Node& node) {
  switch (node.kind) {
    case OpKind::kRelu:
    case OpKind::kLeakyRelu:
    case OpKind::kDropout:
    case OpKind::kIdentity:
    case OpKind::kMaxPool:
    case OpKind::kAveragePool:
    case OpKind::kGlobalAveragePool:
      return Kept::kYes;
    case OpKind::kFlatten: {
      // A channel stays one column where there is one pixel of each.
      const std::optional<ir::Shape>& shape = node.input(0)->type.shape;
      if (!shape || shape->size() < 2 || node.get_int("axis") != 1) return Kept::kNo;
      return std::all_of(shape->begin() + 2, shape->end(), [](int64_t d) { return d == 1; }) ? Kept::kYes : Kept::kNo;
    }
    case OpKind::kClip:
      if (ir::scalar(node.input(1)) != 0.0f) return Kept::kNo;
      return node.has_input(2) ? Kept::kWithoutItsEnd : Kept::kYes;
    default:
      return Kept::kNo;
  }
}

std::optional<Pair> pair_of(const Graph& graph, Node* first, bool relax_clips) {
  Pair pair{.first = first, .second = nullptr, .clips = {}};
  for (const Value* value = first->output(); single_use(graph, value);) {
    Node* reader = value->users[0];
    if (quant::is_weighted(*reader)) {
      if (reader->input(0) != value) return std::nullopt;
      pair.second = reader;
      return pair;
    }
    const Kept kept = reader->input(0) == value ? keeps_factors(*reader) : Kept::kNo;
    if (kept == Kept::kNo || (kept == Kept::kWithoutItsEnd && !relax_clips)) return std::nullopt;
    if (kept == Kept::kWithoutItsEnd) pair.clips.push_back(reader);
    value = reader->outputs[0];
  }
  return std::nullopt;
}

std::vector<float> ranges(const Weights& w, const std::vector<size_t>& channel_of, size_t channels) {
  std::vector<float> out(channels);
  const std::vector<float> values = w.node->input(1)->constant->to_floats();
  for (size_t i = 0; i < values.size(); ++i) out[channel_of[i]] = std::max(out[channel_of[i]], std::abs(values[i]));
  return out;
}

// Exponents of s, by channel; empty: all are 0.
std::vector<int> exponents(const Weights& first, const Weights& second) {
  const std::vector<float> r1 = ranges(first, first.output, first.outputs);
  const std::vector<float> r2 = ranges(second, second.input, second.inputs);
  std::vector<int> out(r1.size());
  bool any = false;
  for (size_t c = 0; c < r1.size(); ++c) {
    if (!(r1[c] > 0) || !(r2[c] > 0) || !std::isfinite(r1[c]) || !std::isfinite(r2[c])) continue;
    const double wanted = 0.5 * (std::log2(static_cast<double>(r1[c])) - std::log2(static_cast<double>(r2[c])));
    out[c] = std::clamp(static_cast<int>(std::lround(wanted)), -kMostExponent, kMostExponent);
    any |= out[c] != 0;
  }
  return any ? out : std::vector<int>();
}

// Multiplies by 2^(sign * exponent of its channel).
void scale(Graph& graph, Value* constant, const std::vector<size_t>& channel_of, const std::vector<int>& exponent,
           int sign) {
  const std::vector<float> old = constant->constant->to_floats();
  const auto fill = [&](std::span<float> values) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(old[i], sign * exponent[channel_of[i]]);
  };
  graph.set_constant(constant, Tensor::made<float>(constant->constant->shape(), fill));
}

}  // namespace

int equalize_channels(Graph& graph, const EqualizeOptions& options) {
  struct Equalized {
    Pair pair;
    Weights first, second;
    bool changed = false;
  };
  std::vector<Equalized> pairs;
  for (const auto& node : graph.nodes()) {
    if (!quant::is_weighted(*node) || !single_use(graph, node->input(1))) continue;
    const std::optional<Pair> pair = pair_of(graph, node.get(), options.relax_clips);
    if (!pair || !single_use(graph, pair->second->input(1))) continue;
    std::optional<Weights> first = layout_of(pair->first), second = layout_of(pair->second);
    if (!first || !second || first->outputs != second->inputs || !divisible_bias(graph, *pair->first, first->outputs))
      continue;
    pairs.push_back({*pair, std::move(*first), std::move(*second)});
  }
  for (int round = 0; round < kMostRounds; ++round) {
    bool settled = true;
    for (Equalized& e : pairs) {
      const std::vector<int> by = exponents(e.first, e.second);
      if (by.empty()) continue;
      settled = false, e.changed = true;
      scale(graph, e.pair.first->input(1), e.first.output, by, -1);
      scale(graph, e.pair.second->input(1), e.second.input, by, +1);
      if (!e.pair.first->has_input(2)) continue;
      std::vector<size_t> channel(e.first.outputs);
      for (size_t c = 0; c < channel.size(); ++c) channel[c] = c;
      scale(graph, e.pair.first->input(2), channel, by, -1);
    }
    if (settled) break;
  }
  for (Equalized& e : pairs)
    if (e.changed)
      for (Node* clip : e.pair.clips) make_relu(graph, clip, clip->input(0));
  return static_cast<int>(std::count_if(pairs.begin(), pairs.end(), [](const Equalized& e) { return e.changed; }));
}

}  // namespace octet::passes
