// The one description of a network: ONNX semantics, uniform nodes. Zoo builders and the importer make it, passes change
// it, the trainer executes it, the exporter writes it, the compiler lowers it.
//
// Nodes and values are owned by the graph and keep their address for its lifetime or until they are erased. Nodes are
// kept in execution order: every input of a node is a graph input, a constant, or the output of an earlier node.
#pragma once
#include <array>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/ops.h"
#include "ir/tensor.h"

namespace octet::dense {
struct Program;
}

namespace octet::ir {

struct Node;

struct Value {
  std::string name;                // unique in the graph; names of the source model survive every pass
  TensorType type;                 // from the file, the builder or infer_shapes
  Node* producer = nullptr;        // nothing for inputs and constants
  std::vector<Node*> users;        // one entry per use; kept by Graph
  std::optional<Tensor> constant;  // an initializer
  bool trainable = false;          // an initializer that the optimizer updates
  bool is_constant() const { return constant.has_value(); }
};

using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, Tensor>;
using Attributes = std::map<std::string, Attribute>;

// The states of a FakeQuantize node (attribute "state").
inline constexpr const char* kObserving = "observing";   // collects a range, passes its input through
inline constexpr const char* kFrozen = "frozen";         // quantizes with a fixed scale
inline constexpr const char* kLearned = "learned";       // quantizes, the scale is trained: LSQ
inline constexpr const char* kLearnedOffset = "offset";  // scale and zero point are trained: LSQ+
inline constexpr const char* kLearnedClip = "clip";      // the scale is trained by where it clips: PACT
inline constexpr std::array<const char*, 5> kQuantizerStates = {kObserving, kFrozen, kLearned, kLearnedOffset,
                                                                kLearnedClip};

struct Node {
  OpKind kind = OpKind::kIdentity;
  std::string name;             // unique in the graph
  std::vector<Value*> inputs;   // nullptr: an optional input that is absent. Change through Graph::set_input.
  std::vector<Value*> outputs;  // nullptr: an optional output nobody wants
  Attributes attributes;

  const OpInfo& info() const { return op_info(kind); }
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  Value* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  Value* output(size_t i = 0) const { return i < outputs.size() ? outputs[i] : nullptr; }

  // Attribute values, or the ops table's default, or `fallback` (for empty lists, too). UserError for a wrong type.
  bool has(const std::string& key) const { return attributes.count(key) > 0; }
  int64_t get_int(const std::string& key, int64_t fallback = 0) const;
  float get_float(const std::string& key, float fallback = 0) const;
  std::string get_string(const std::string& key, const std::string& fallback = "") const;
  std::vector<int64_t> get_ints(const std::string& key, std::vector<int64_t> fallback = {}) const;
};

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph(const Graph&) = delete;  // copies are explicit: clone()
  Graph& operator=(const Graph&) = delete;
  Graph clone() const;

  std::string name = "octet";
  int opset = 19;                               // of the file it came from, or to be written
  std::map<std::string, std::string> metadata;  // ONNX metadata_props: stage, spec hash, data hash ...
  // Operators behind this graph whose sizes depend on what it computes: they make the model's outputs from this graph's
  // (dense/program.h; program->inputs are outputs(), one by one). Nothing for most models.
  std::shared_ptr<const dense::Program> program;

  // --- building. Names must be unique; an empty name is invented from `prefix`.
  Value* add_input(const std::string& name, TensorType type);
  Value* add_constant(const std::string& name, Tensor tensor, bool trainable = false);
  // Appends a node with `output_names.size()` new outputs (at the end, or just before `before`).
  Node* add_node(OpKind kind, const std::string& name, std::vector<Value*> inputs,
                 std::vector<std::string> output_names, Attributes attributes = {}, Node* before = nullptr);
  // The same for the usual case of one output, whose name is that of the node; infers its type. Returns the output.
  Value* add(OpKind kind, const std::string& name, std::vector<Value*> inputs, Attributes attributes = {},
             Node* before = nullptr);
  void add_output(Value* value);

  // --- changing
  void set_input(Node* node, size_t index, Value* value);
  void set_output_value(size_t index, Value* value);
  // Every use of `from` (graph outputs included, unless `keep_outputs`) becomes a use of `to`; `except`, which may be
  // the node that makes `to` from `from`, keeps its inputs.
  void replace_uses(Value* from, Value* to, bool keep_outputs = false, const Node* except = nullptr);
  // Puts another tensor into a constant, and its type.
  void set_constant(Value* value, Tensor tensor);
  // Removes a node whose outputs nobody uses (broken invariant otherwise); its outputs go with it.
  void erase(Node* node);
  // Removes constants and nodes that reach no graph output. Returns how many.
  int remove_dead();
  void rename(Value* value, const std::string& name);
  void rename(Node* node, const std::string& name);
  // Removes a graph input that nobody uses.
  void erase_input(Value* value);
  // Gives the nodes an execution order (stable); UserError naming a node on a cycle.
  void sort_topologically();

  // --- looking. nodes() is in execution order.
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  std::vector<Value*> values() const;                // all, in a fixed order
  std::vector<Value*> constants() const;             // initializers, in a fixed order
  Value* find_value(const std::string& name) const;  // nullptr when there is none
  Node* find_node(const std::string& name) const;
  // The node after this one in execution order (so that add_node(..., next(n)) inserts behind n); nullptr at the end.
  Node* next(const Node* node) const;
  bool is_output(const Value* value) const { return output_uses_.count(value) > 0; }
  // A name that no value or node has: `prefix`, or the first free of `prefix`_1, `prefix`_2 ...
  std::string unique_name(const std::string& prefix) const;

 private:
  using Nodes = std::list<std::unique_ptr<Node>>;
  using Values = std::list<std::unique_ptr<Value>>;

  Value* new_value(const std::string& name);
  void erase_value(Value* value);
  bool is_taken(const std::string& name) const { return values_by_name_.count(name) || nodes_by_name_.count(name); }
  void forget_name(const std::string& name);  // which was just taken out of values_by_name_ or nodes_by_name_

  Nodes nodes_;
  Values values_;
  std::unordered_map<const Node*, Nodes::iterator> position_;
  std::unordered_map<const Value*, Values::iterator> value_position_;
  std::unordered_map<std::string, Value*> values_by_name_;
  std::unordered_map<std::string, Node*> nodes_by_name_;
  std::vector<Value*> inputs_, outputs_;
  std::unordered_map<const Value*, int> output_uses_;  // how often each stands in outputs_
  // Of a prefix: `prefix`_1 to this one but itself are taken, so that unique_name() need not ask for them again.
  mutable std::unordered_map<std::string, int> first_free_;
};

}  // namespace octet::ir
