#include "passes/prune/channel_groups.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/nearest.h"

namespace octet::passes {
namespace {

using ir::IndexTies;
using ir::Node;
using ir::OpKind;
using ChannelPlace = IndexTies::Place;

void refuse_quantized(const ir::Graph& graph) {
  for (const auto& node : graph.nodes())
    if (node->kind == OpKind::kFakeQuantize || node->kind == OpKind::kQuantizeLinear)
      fail_usage("graph '", graph.name, "' is quantized (", node->info().name, " '", node->name,
                 "'), and its ranges are those of all channels; prune the float model, train that again, and calibrate "
                 "or train it quantization-aware afterwards");
}

void fix_output(const Node& node, IndexTies& ties, const std::string& reason) {
  for (const ir::Value* v : node.outputs)
    for (size_t axis = 0; v != nullptr && axis < ties.rank(v); ++axis)
      for (int64_t i = 0; i < ties.size(v, axis); ++i) ties.fix(ties.place(v, axis, i), reason);
}

double equalized(const std::vector<double>& scores, PruneEqualizer equalizer) {
  const auto n = static_cast<double>(scores.size());
  switch (equalizer) {
    case PruneEqualizer::kUnion:
      return *std::max_element(scores.begin(), scores.end());
    case PruneEqualizer::kIntersection:
      return *std::min_element(scores.begin(), scores.end());
    case PruneEqualizer::kArithmeticMean:
      return std::accumulate(scores.begin(), scores.end(), 0.0) / n;
    case PruneEqualizer::kGeometricMean: {
      double logs = 0;
      for (const double s : scores) logs += std::log(s);  // of a zero: -infinity, and the mean is zero
      return std::exp(logs / n);
    }
  }
  return 0;
}

uint64_t mixed(uint64_t z) {  // splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace

ChannelGroups::ChannelGroups(const ir::Graph& graph, const PruneOptions& options) {
  refuse_quantized(graph);
  IndexTies ties(graph);
  exclude(graph, ties, options);
  const std::vector<PrunableLayer> layers = prunable_layers(graph, ties, options);
  find_units(layers, ties, options.equalizer);
  find_axes(graph, ties);
  find_blocks(layers, ties, options);
  find_groups(layers, ties);
}

void ChannelGroups::exclude(const ir::Graph& graph, IndexTies& ties, const PruneOptions& options) const {
  for (const std::string& pattern : options.excluded) {
    bool found = false;
    std::vector<std::string> names;
    for (const auto& node : graph.nodes()) {
      names.push_back(node->name);
      if (fnmatch(pattern.c_str(), node->name.c_str(), 0) != 0) continue;
      fix_output(*node, ties, str("'", node->name, "' is excluded"));
      found = true;
    }
    if (!found)
      fail_usage("no node of graph '", graph.name, "' is named '", pattern, "', which is to be excluded",
                 did_you_mean(pattern, names));
  }
  if (!options.tao_compatible) return;
  for (const auto& node : graph.nodes()) {
    if (node->kind == OpKind::kConvTranspose)
      fix_output(*node, ties, str("TAO leaves ConvTranspose '", node->name, "' whole"));
    if (node->kind != OpKind::kSplit) continue;
    const ir::Value* x = node->input(0);
    for (size_t axis = 0; axis < ties.rank(x); ++axis)
      for (int64_t i = 0; i < ties.size(x, axis); ++i)
        ties.fix(ties.place(x, axis, i), str("TAO leaves whole what Split '", node->name, "' cuts"));
  }
}

void ChannelGroups::find_units(const std::vector<PrunableLayer>& layers, const IndexTies& ties,
                               PruneEqualizer equalizer) {
  std::vector<std::vector<double>> found;  // of every unit: the scores of its filters
  std::set<const ir::Value*> counted;      // weights of several layers count once
  for (const PrunableLayer& layer : layers) {
    const bool first = counted.insert(layer.node->input(1)).second;
    for (size_t i = 0; i < layer.filters.size(); ++i) {
      if (ties.why_fixed(layer.filters[i]) != nullptr) continue;
      const auto [it, is_new] =
          unit_of_class_.try_emplace(ties.class_of(layer.filters[i]), static_cast<int32_t>(found.size()));
      if (is_new) found.emplace_back();
      if (first || is_new) found[static_cast<size_t>(it->second)].push_back(layer.scores[i]);
    }
  }
  for (const std::vector<double>& scores : found) scores_.push_back(equalized(scores, equalizer));
}

void ChannelGroups::find_axes(const ir::Graph& graph, const IndexTies& ties) {
  for (const ir::Value* value : graph.values())
    for (size_t axis = 0; axis < ties.rank(value); ++axis) {
      CutAxis cut{value, axis, {}};
      bool any = false;
      for (int64_t i = 0; i < ties.size(value, axis); ++i) {
        const auto unit = unit_of_class_.find(ties.class_of(ties.place(value, axis, i)));
        cut.units.push_back(unit == unit_of_class_.end() ? -1 : unit->second);
        any |= cut.units.back() >= 0;
      }
      if (any) axes_.push_back(std::move(cut));
    }
}

void ChannelGroups::find_blocks(const std::vector<PrunableLayer>& layers, const IndexTies& ties,
                                const PruneOptions& options) {
  // A sum over the axes in which a unit occurs, with the times, stands for them.
  std::vector<uint64_t> occurrences(scores_.size(), 0);
  for (size_t a = 0; a < axes_.size(); ++a)
    for (const int32_t unit : axes_[a].units)
      if (unit >= 0) occurrences[static_cast<size_t>(unit)] += mixed(0x9e3779b97f4a7c15ull * (a + 1));
  std::map<uint64_t, size_t> block_of;
  std::vector<size_t> block_of_unit;
  for (size_t unit = 0; unit < scores_.size(); ++unit) {
    const auto [it, is_new] = block_of.try_emplace(occurrences[unit], blocks_.size());
    if (is_new) blocks_.emplace_back();
    blocks_[it->second].units.push_back(unit);
    block_of_unit.push_back(it->second);
  }
  // A unit may have several filters of a layer, one in each of its groups: fewer units make the same count of filters.
  std::vector<int64_t> fewest(blocks_.size(), 0);
  for (const PrunableLayer& layer : layers) {
    std::map<size_t, int64_t> filters;  // of this layer, by block
    for (const ChannelPlace filter : layer.filters) {
      const auto unit = unit_of_class_.find(ties.class_of(filter));
      if (unit != unit_of_class_.end()) ++filters[block_of_unit[static_cast<size_t>(unit->second)]];
    }
    for (const auto& [index, count] : filters) {
      Block& block = blocks_[index];
      const int64_t times = count / static_cast<int64_t>(block.units.size());
      block.granularity = std::lcm(block.granularity, options.granularity / std::gcd(options.granularity, times));
      fewest[index] = fewest[index] == 0 ? times : std::min(fewest[index], times);
    }
  }
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const int64_t times = std::max<int64_t>(fewest[b], 1);
    blocks_[b].least = std::max<int64_t>((options.min_filters + times - 1) / times, 1);
  }
}

// Layers that share a unit, or are joined by others that do, are one group; groups are numbered in the order of nodes.
void ChannelGroups::find_groups(const std::vector<PrunableLayer>& layers, const IndexTies& ties) {
  std::vector<size_t> parent(layers.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  std::vector<size_t> first_layer(scores_.size(), layers.size());  // of every unit
  std::vector<bool> has_units(layers.size(), false);
  for (size_t l = 0; l < layers.size(); ++l) {
    layers_.push_back({layers[l].node, -1, ""});
    for (const ChannelPlace filter : layers[l].filters) {
      if (const std::string* why = ties.why_fixed(filter)) {
        layers_[l].why_kept = *why;
        continue;
      }
      has_units[l] = true;
      size_t& first = first_layer[static_cast<size_t>(unit_of_class_.at(ties.class_of(filter)))];
      first = std::min(first, l);
      const size_t a = root(first), b = root(l);
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  for (size_t l = 0; l < layers.size(); ++l)
    if (has_units[l]) layers_[l].group = root(l) == l ? groups_++ : layers_[root(l)].group;
}

KeptIndices ChannelGroups::at(double threshold) const {
  std::vector<bool> stays(scores_.size(), false);
  for (const Block& block : blocks_) {
    std::vector<size_t> order = block.units;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores_[a] > scores_[b]; });
    const auto n = static_cast<int64_t>(order.size());
    int64_t keep = std::count_if(order.begin(), order.end(), [&](size_t unit) { return scores_[unit] > threshold; });
    keep = std::max(keep, std::min(block.least, n));
    keep = std::min((keep + block.granularity - 1) / block.granularity * block.granularity, n);
    for (int64_t i = 0; i < keep; ++i) stays[order[static_cast<size_t>(i)]] = true;
  }
  KeptIndices out;
  for (const CutAxis& axis : axes_) {
    std::vector<int64_t> kept;
    for (size_t i = 0; i < axis.units.size(); ++i)
      if (axis.units[i] < 0 || stays[static_cast<size_t>(axis.units[i])]) kept.push_back(static_cast<int64_t>(i));
    if (kept.size() < axis.units.size()) out[axis.value->name][axis.axis] = std::move(kept);
  }
  return out;
}

std::vector<double> ChannelGroups::scores() const {
  std::vector<double> out = scores_;
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace octet::passes
