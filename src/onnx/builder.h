// Turns the parsed nodes of a file into an ir::Graph: reads 16-bit floats as float32, folds constants and shape
// arithmetic away, brings old forms to the newest, and adds what is left.
//
// Shape arithmetic on dynamic sizes. Next to the graph itself the builder keeps a few copies of it ("lanes") in which
// every dynamic size has a concrete value, another one in each lane. Shapes are then plain numbers, so all arithmetic
// on them is simply computed, once a lane. What comes out equal in all lanes is a constant. What differs ("varying")
// depends on a dynamic size; where a Reshape, Expand, Slice or Resize takes it, the constant that means the same is
// looked for (0 or -1 in a Reshape, a scale in a Resize ...), and it is an error when there is none.
#pragma once
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dense/program.h"
#include "ir/graph.h"
#include "ir/input_shape.h"
#include "onnx/fold.h"
#include "onnx/proto.h"
#include "onnx/quantized_constant.h"
#include "onnx/tensor_data.h"
#include "onnx/upgrade.h"
#include "onnx/widen.h"

namespace octet::onnx {

class Builder : private UpgradeContext {
 public:
  // `budget_bytes` bounds what folding allocates; `shapes` are those of import.h. The arguments must outlive the
  // builder.
  Builder(const proto::Graph& source, int opset, ExternalFiles& files, int64_t budget_bytes,
          const std::vector<ir::InputShape>& shapes);

  // The graph with inferred types; QuantizeLinear and DequantizeLinear still stand one by one. UserError naming the
  // node.
  ir::Graph build();

 private:
  // Everything known about one name of the file.
  struct Entry {
    const proto::Tensor* initializer = nullptr;  // not converted yet
    std::optional<ir::Tensor> constant;
    bool parameter = false;           // the constant is learned
    std::vector<ir::Tensor> varying;  // a constant that differs between the lanes
    std::optional<QuantizedConstant> codes_of,
        dequantized;                // made by a QuantizeLinear, a DequantizeLinear of constants
    ir::Value* value = nullptr;     // in the graph, once a node needs it there
    std::vector<ir::Value*> lanes;  // in the lanes
    int in_program = -1;            // in the program behind the graph, once an operation needs it there
    bool known_before_run() const { return initializer || constant || !varying.empty(); }
    bool made_by_program() const { return in_program >= 0 && !value && !known_before_run(); }
  };

  // UpgradeContext.
  std::optional<ir::Shape> shape(const std::string& value) override;
  ir::DataType data_type(const std::string& value) override;
  std::optional<ir::Tensor> constant(const std::string& value) override;
  std::string add_constant(const std::string& hint, ir::Tensor tensor) override;
  void mark_parameter(const std::string& constant) override { entry(constant).parameter = true; }
  std::string fresh_name(const std::string& hint) override;

  void add_inputs();
  void add_input(const proto::ValueInfo& input, const std::vector<proto::Dim>& dims,
                 std::map<std::string, size_t>& symbols);
  void add_outputs();
  void add_source(const proto::Node& node);
  // Brings what the node says of 16-bit floats to float32.
  void widen(SourceNode& node);
  void add_constant_node(const proto::Node& node);
  // An If whose condition is a constant: the nodes of the branch that it chooses (builder_branches.cc).
  void add_chosen_branch(const proto::Node& node);
  bool condition_of(const proto::Node& node);
  // `inputs`: of the program, for those of the branch.
  const proto::Graph& add_branch(const proto::Node& node, const std::string& key, size_t outputs,
                                 const std::vector<dense::Type>& inputs = {});
  const proto::Graph& graph_attribute(const proto::Node& node, const std::string& key) const;
  // Notes what these nodes and the outputs of their graph read.
  void note_uses(const proto::Graph& graph, const std::vector<const proto::Node*>& nodes);
  void add(const SourceNode& source);
  bool add_shape(const SourceNode& node);
  bool add_folded(const SourceNode& node);
  // The same QuantizeLinear or DequantizeLinear with the zero point that it leaves out: 0 of the type of the codes.
  SourceNode with_zero_point(SourceNode node);
  // The same without a Gather of everything in its order (builder_gather.cc).
  SourceNode without_gather_of_all(SourceNode node);
  // An operator on constants some of which lie behind a DequantizeLinear.
  bool add_behind_dequantize(const SourceNode& node);
  void add_quantized(const SourceNode& node, const std::vector<QuantizedConstant>& outputs);
  // Keeps what add_behind_dequantize needs of a QuantizeLinear or DequantizeLinear of constants.
  void note_quantized(const SourceNode& node);
  void add_to_graph(const SourceNode& node, ir::OpKind kind);
  bool add_to_lanes(const SourceNode& node, ir::OpKind kind, std::vector<ir::Node*>& made);
  // Replaces varying inputs by constants that mean the same for every size.
  void settle_varying(SourceNode& node, ir::OpKind kind, const std::vector<ir::Node*>& lane_nodes);

  // The program behind the graph (builder_program.cc): what depends on sizes that come up in a run, and operators that
  // the graph lacks.
  bool belongs_to_program(const SourceNode& node);
  void add_to_program(SourceNode node);
  // Of an operator that the program has, in its newest form.
  void add_in_program(SourceNode node);
  [[noreturn]] void fail_outside_program(const std::string& op) const;
  void add_if_to_program(const proto::Node& node);
  void add_loop(const proto::Node& node);
  // The outputs of an operation on constants, computed now.
  void fold_operation(const dense::Operation& operation, const SourceNode& node);
  int new_program_value(const std::string& name, dense::Type type);
  int define_in_program(const std::string& name, const std::string& operation, int like);
  int value_in_program(const std::string& name);
  int dequantized_in_program(const std::string& name, const QuantizedConstant& quantized);
  void finish_program();

  Entry& entry(const std::string& name);
  Entry& define(const std::string& name);
  const ir::Tensor& tensor_of(Entry& entry);
  ir::Value* value_in_graph(const std::string& name);
  ir::Value* value_in_lane(const std::string& name, size_t lane);
  // What a user can do about open sizes, as the end of a sentence.
  std::string advice() const;
  // UserError: `name` is varying, and what would come of it cannot be told.
  [[noreturn]] void fail_varying(const std::string& name) const;

  const proto::Graph& source_;
  std::list<proto::Graph> branches_;  // chosen ones, with names of their own
  const int opset_;
  const std::vector<ir::InputShape>& shapes_;
  ExternalFiles& files_;
  ir::MemoryBudget budget_;
  Widener widener_;
  ir::Graph graph_;
  std::vector<ir::Graph> lanes_;
  std::string lanes_error_;  // why there are no lanes any more
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_set<std::string> names_;             // of the file's values and nodes, and invented ones
  std::unordered_map<std::string, int> next_number_;  // of a name that fresh_name() numbers
  std::unordered_set<std::string> node_names_;        // given to nodes
  std::unordered_set<std::string> used_;              // values that some node or output reads
  dense::Program program_;
  dense::Memory program_memory_;
  std::vector<dense::Type> program_types_;                            // of its values
  std::vector<ir::Value*> program_inputs_;                            // in the graph
  std::vector<dense::Operation>* operations_ = &program_.operations;  // where the next one goes
};

}  // namespace octet::onnx
