// Which indices of which axes of a network belong together: what has to go with channel 5 of a convolution so that a
// smaller network remains. Pruning asks this; nothing here knows what is important or what will go.
//
// Every index of every axis of every value (activations and constants alike) is a place. The rule of an operator (the
// "ties" column of ops.def, tie_rules.h) ties the places of its inputs and outputs that stand for the same thing: the
// filters of a convolution and the channels of its output, these and the channels of both operands of an Add, a
// channel and its H * W elements behind a Flatten. What a rule does not mention is fixed: it must stay, as must all
// that is tied to it. So an operator without a rule, and an axis that a rule does not know, are safe by themselves.
// Places tied with each other are a class; the propagation of index sets is that of DepGraph (Fang et al., CVPR 2023).
//
// The promise of a class that is not fixed: take all its places out, and the remaining network computes what the whole
// one computes with zeros in the places of this class wherever a product (trait::kWeighted) reads them.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace octet::ir {

class IndexTies {
 public:
  using Place = int64_t;

  // Those of a graph with inferred types. Inputs and outputs of the graph are fixed.
  explicit IndexTies(const Graph& graph);

  // --- what rules say

  // Index i along `axis` (normal form) of a value. Requires 0 <= i < size().
  Place place(const Value* value, size_t axis, int64_t i) const;
  // The number of places of an axis; 0 where its size is open, unknown or beyond any network's (kMaxAxis), so that
  // nothing can be tied to it.
  int64_t size(const Value* value, size_t axis) const;
  size_t rank(const Value* value) const;  // 0 where unknown
  void tie(Place a, Place b);
  // Index by index. Nothing is mentioned where the sizes differ or are not known.
  void tie_axes(const Value* a, size_t axis_a, const Value* b, size_t axis_b);
  // This place may go by itself: the node does not use it.
  void mention(Place place) { mentioned_[static_cast<size_t>(place)] = turn_; }
  void fix(Place place, const std::string& reason);

  // --- what they amount to

  // One place of a class stands for it; the same for all its places until something is tied again.
  Place class_of(Place place) const;
  // Why it must stay: "Softmax 'prob' takes it as a whole"; nullptr where it may go.
  const std::string* why_fixed(Place place) const;
  Place places() const { return static_cast<Place>(parent_.size()); }

  static constexpr int64_t kMaxAxis = int64_t{1} << 20;

 private:
  struct Axis {
    Place first;
    int64_t size;
  };
  void add(const Value* value);
  void apply_rule(const Node& node);

  std::unordered_map<const Value*, std::vector<Axis>> axes_;
  mutable std::vector<Place> parent_;  // union-find; paths are halved when it is asked
  std::vector<int32_t> reason_;        // of a class, in reasons_; kFree: none
  std::vector<std::string> reasons_;
  std::vector<int32_t> mentioned_;  // by which rule, counted from 1
  int32_t turn_ = 0;
};

}  // namespace octet::ir
