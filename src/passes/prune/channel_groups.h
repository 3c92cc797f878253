// Which channels of a network can go together (dependency groups), and which of them go at a threshold.
//
// A unit is a class of ir::IndexTies with filters in it that is not fixed: the smallest thing that can be pruned. Its
// score is that of its filters, equalized. Units that occur in the same axes of the same values form a block; a layer
// whose output is one operand of an Add is one block with the layer behind the other operand, and a layer that is
// joined with others by a Concat is a block of its own. In each block TAO's rule decides: those above the threshold
// stay, at least `min_filters`, up to a multiple of the granularity, the highest scores first. So every axis of the
// pruned network has a size that is a sum of such counts.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "passes/prune/layers.h"

namespace octet::passes {

// Of the axes that lose indices those that stay, ascending: value name, axis, indices.
using KeptIndices = std::map<std::string, std::map<size_t, std::vector<int64_t>>>;

class ChannelGroups {
 public:
  // Of a float graph with inferred types, which must outlive this. UserError (exit 2) for an exclusion that names no
  // node, and for a quantized graph.
  ChannelGroups(const ir::Graph& graph, const PruneOptions& options);

  struct Layer {
    const ir::Node* node;
    int group = -1;        // layers of one group lose channels together; -1: this one keeps all
    std::string why_kept;  // of a layer, or of some of its channels: what fixes them
  };
  const std::vector<Layer>& layers() const { return layers_; }
  int groups() const { return groups_; }

  // What stays at a threshold; empty where all does.
  KeptIndices at(double threshold) const;
  // The scores of all units, each once, ascending. at() changes at these alone, and loses no fewer channels at a higher
  // one.
  std::vector<double> scores() const;

 private:
  struct Block {
    std::vector<size_t> units;
    int64_t granularity = 1, least = 1;  // in units
  };
  struct CutAxis {
    const ir::Value* value;
    size_t axis;
    std::vector<int32_t> units;  // of every index; -1: it stays
  };
  void exclude(const ir::Graph& graph, ir::IndexTies& ties, const PruneOptions& options) const;
  void find_units(const std::vector<PrunableLayer>& layers, const ir::IndexTies& ties, PruneEqualizer equalizer);
  void find_axes(const ir::Graph& graph, const ir::IndexTies& ties);
  void find_blocks(const std::vector<PrunableLayer>& layers, const ir::IndexTies& ties, const PruneOptions& options);
  void find_groups(const std::vector<PrunableLayer>& layers, const ir::IndexTies& ties);

  std::vector<Layer> layers_;
  int groups_ = 0;
  std::unordered_map<ir::IndexTies::Place, int32_t> unit_of_class_;
  std::vector<double> scores_;  // of units
  std::vector<Block> blocks_;
  std::vector<CutAxis> axes_;
};

}  // namespace octet::passes
