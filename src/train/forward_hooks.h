// What looks at the values of a forward pass, and what replaces them: Executor::set_tap and set_override.
#pragma once
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "train/executor.h"
#include "train/executor_compile.h"

namespace octet::train {

class ForwardHooks {
 public:
  // Both must outlive it.
  ForwardHooks(const ir::Graph& graph, const SlotMap& slots) : graph_(graph), slots_(slots) {}

  void set_tap(Executor::Tap tap, const std::vector<std::string>& names);
  void set_override(const std::string& name, Executor::Override replace);

  bool has_tap() const { return tap_ != nullptr; }
  bool empty() const { return !has_tap() && overrides_.empty(); }
  // The values that must exist in a slot of their own.
  std::set<const ir::Value*> values() const;
  // Call when a slot has its value: replaces that, then shows it.
  void visit(Run& run, int slot) const;

 private:
  int slot_of(const std::string& name) const;  // UserError unless it is computed, or an input

  const ir::Graph& graph_;
  const SlotMap& slots_;
  Executor::Tap tap_;
  std::set<int> tapped_;
  std::unordered_map<int, Executor::Override> overrides_;  // by slot
};

}  // namespace octet::train
