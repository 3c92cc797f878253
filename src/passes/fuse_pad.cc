#include "passes/fuse_pad.h"

#include <algorithm>
#include <optional>

#include "ir/query.h"
#include "quant/fusion_model.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using Ints = std::vector<int64_t>;

// Padding of the spatial axes (begins, then ends), when it is all that the node does.
std::optional<Ints> spatial_zero_padding(const Node& pad) {
  if (pad.kind != OpKind::kPad || pad.get_string("mode") != "constant" || !pad.input(0)->type.shape)
    return std::nullopt;
  if (!pad.input(1) || !pad.input(1)->is_constant()) return std::nullopt;
  if (pad.has_input(2) && scalar(pad.input(2)) != 0.0f) return std::nullopt;
  const size_t rank = pad.input(0)->type.shape->size();
  const Ints given = pad.input(1)->constant->to_ints();
  Ints all(2 * rank, 0);
  if (pad.has_input(3)) {
    if (!pad.input(3)->is_constant()) return std::nullopt;
    const Ints axes = pad.input(3)->constant->to_ints();
    if (given.size() != 2 * axes.size()) return std::nullopt;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(rank) : axes[i];
      if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
      all[static_cast<size_t>(axis)] = given[i];
      all[static_cast<size_t>(axis) + rank] = given[i + axes.size()];
    }
  } else {
    if (given.size() != 2 * rank) return std::nullopt;
    all = given;
  }
  if (rank < 3 || all[0] || all[1] || all[rank] || all[rank + 1]) return std::nullopt;
  if (std::any_of(all.begin(), all.end(), [](int64_t p) { return p < 0; })) return std::nullopt;
  Ints spatial(all.begin() + 2, all.begin() + static_cast<int64_t>(rank));
  spatial.insert(spatial.end(), all.begin() + static_cast<int64_t>(rank) + 2, all.end());
  return spatial;
}

// The reader's pads after it has taken `padding` over, or nothing when it cannot.
std::optional<Ints> combined_pads(const Node& reader, const Ints& padding, bool nonnegative) {
  if (reader.get_string("auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
  Ints own = reader.get_ints("pads", Ints(padding.size(), 0));
  if (own.size() != padding.size()) return std::nullopt;
  const bool padded = std::any_of(own.begin(), own.end(), [](int64_t p) { return p != 0; });
  for (size_t i = 0; i < own.size(); ++i) own[i] += padding[i];
  if (reader.kind == OpKind::kConv) return own;
  if (reader.get_int("ceil_mode") != 0) return std::nullopt;
  // Runtimes want pads smaller than the window; then no window lies outside the tensor either, unless its taps leap
  // over it.
  const Ints kernel = reader.get_ints("kernel_shape");
  for (const int64_t d : reader.get_ints("dilations"))
    if (d != 1) return std::nullopt;
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] >= kernel.at(i % kernel.size())) return std::nullopt;
  if (reader.kind == OpKind::kMaxPool) return nonnegative ? std::optional(own) : std::nullopt;
  if (reader.kind == OpKind::kAveragePool && (!padded || reader.get_int("count_include_pad") == 1)) return own;
  return std::nullopt;
}

}  // namespace

int fuse_pad(Graph& graph) {
  int fused = 0;
  quant::SignAnalysis signs;
  for (const auto& node : graph.nodes()) {
    const std::optional<Ints> padding = spatial_zero_padding(*node);
    if (!padding) continue;
    const bool nonnegative = signs.cannot_be_negative(node->input(0));
    const std::vector<Node*> readers = node->output()->users;
    for (Node* reader : readers) {
      if (reader->kind != OpKind::kConv && reader->kind != OpKind::kMaxPool && reader->kind != OpKind::kAveragePool)
        continue;
      if (reader->input(0) != node->output()) continue;
      const std::optional<Ints> pads = combined_pads(*reader, *padding, nonnegative);
      if (!pads) continue;
      reader->attributes["pads"] = *pads;
      if (reader->kind == OpKind::kAveragePool) reader->attributes["count_include_pad"] = int64_t{1};
      graph.set_input(reader, 0, node->input(0));
      ++fused;
    }
  }
  if (fused) graph.remove_dead();
  return fused;
}

}  // namespace octet::passes
