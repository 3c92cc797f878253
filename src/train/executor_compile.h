// From a graph to a list of steps.
#pragma once
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "train/ops_common.h"

namespace octet::train {

struct Step {
  const ir::Node* node = nullptr;  // the last, of a chain
  StepFunction run;
  std::vector<int> outputs;  // slots written
  std::vector<int> free;     // slots that no later step reads
};

// A slot for every value of a graph.
class SlotMap {
 public:
  explicit SlotMap(const ir::Graph& graph);
  int of(const ir::Value* value) const { return value ? slots_.at(value) : -1; }
  const std::vector<const ir::Value*>& values() const { return values_; }
  Wiring wiring(const ir::Node& node) const;

 private:
  std::unordered_map<const ir::Value*, int> slots_;
  std::vector<const ir::Value*> values_;
};

// One step a node. The steps keep pointers to the nodes.
std::vector<Step> compile_nodes(const ir::Graph& graph, const SlotMap& slots);
// The same with chains of point-wise nodes joined (ops_fused.h), and each Swish one operation. Values inside a chain
// get no slot value: those that must have one (`visible`) end their chain.
std::vector<Step> compile_fused(const ir::Graph& graph, const SlotMap& slots,
                                const std::set<const ir::Value*>& visible);

}  // namespace octet::train
