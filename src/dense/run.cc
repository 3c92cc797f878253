#include "dense/run.h"

#include <unordered_map>
#include <unordered_set>

#include "dense/operators.h"

namespace octet::dense {
namespace {

void add_reads(const Operation& operation, std::vector<int>& out) {
  for (const int v : operation.inputs)
    if (v >= 0) out.push_back(v);
  for (const Block& branch : operation.branches) {
    for (const Operation& inner : branch.operations) add_reads(inner, out);
    out.insert(out.end(), branch.outputs.begin(), branch.outputs.end());
  }
}

class Run {
 public:
  Run(const Program& program, const RunOptions& options)
      : program_(program), options_(options), memory_(options.memory_bytes), values_(program.values.size()) {
    for (const auto& [value, tensor] : program.constants) values_[static_cast<size_t>(value)] = &tensor;
  }

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    OCTET_CHECK(inputs.size() == program_.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      OCTET_CHECK(inputs[i].type() == program_.inputs[i].type);
      set(program_.inputs[i].value, inputs[i]);
    }
    std::vector<int> outputs;
    for (const Output& output : program_.outputs) outputs.push_back(output.value);
    std::vector<Tensor> found = run_block(program_.operations, outputs);
    for (size_t i = 0; i < found.size(); ++i) OCTET_CHECK(found[i].type() == program_.outputs[i].type);
    return found;
  }

 private:
  void set(int value, Tensor tensor) {
    Tensor& place = made_[value];
    place = std::move(tensor);
    values_[static_cast<size_t>(value)] = &place;
  }

  std::vector<Tensor> run_block(const std::vector<Operation>& operations, const std::vector<int>& outputs) {
    std::unordered_map<int, size_t> last;  // operation that reads a value of this block
    std::vector<std::vector<int>> reads(operations.size());
    for (size_t i = 0; i < operations.size(); ++i) {
      add_reads(operations[i], reads[i]);
      for (const int v : reads[i])
        if (const auto it = last.find(v); it != last.end()) it->second = i;
      for (const int v : operations[i].outputs) last.emplace(v, i);
    }
    for (const int v : outputs) last.erase(v);
    for (size_t i = 0; i < operations.size(); ++i) {
      run_operation(operations[i]);
      for (const auto& list : {reads[i], operations[i].outputs})
        for (const int v : list)
          if (const auto it = last.find(v); it != last.end() && it->second == i) {
            made_.erase(v);
            values_[static_cast<size_t>(v)] = nullptr;
            last.erase(it);
          }
    }
    std::vector<Tensor> found;
    for (const int v : outputs) found.push_back(*values_[static_cast<size_t>(v)]);
    return found;
  }

  void run_operation(const Operation& operation) {
    try {
      if (operation.op == "If") return run_if(operation);
      std::vector<const Tensor*> inputs;
      for (const int v : operation.inputs) inputs.push_back(v < 0 ? nullptr : values_[static_cast<size_t>(v)]);
      Tensors made = find_operator(operation.op)->run(Call(operation, std::move(inputs), memory_, options_.threads));
      OCTET_CHECK(made.size() >= operation.outputs.size(), operation.op);
      for (size_t i = 0; i < operation.outputs.size(); ++i)
        if (operation.outputs[i] >= 0) set(operation.outputs[i], std::move(made[i]));
    } catch (const UserError& e) {
      if (explained_) throw;
      explained_ = true;
      fail("node '", operation.name, "' (", operation.op, "): ", e.what());
    }
  }

  void run_if(const Operation& operation) {
    const Tensor& condition = *values_[static_cast<size_t>(operation.inputs[0])];
    require(condition.type() == Type::kBool && condition.size() == 1, "its condition should be one bool, not ",
            type_name(condition.type()), shape_text(condition.shape()));
    const Block& branch = operation.branches[condition.values<bool>()[0] ? 0 : 1];
    std::vector<Tensor> found = run_block(branch.operations, branch.outputs);
    for (size_t i = 0; i < operation.outputs.size(); ++i)
      if (operation.outputs[i] >= 0) set(operation.outputs[i], std::move(found[i]));
  }

  const Program& program_;
  const RunOptions& options_;
  Memory memory_;
  std::vector<const Tensor*> values_;
  std::unordered_map<int, Tensor> made_;
  bool explained_ = false;
};

}  // namespace

std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs, const RunOptions& options) {
  return Run(program, options).run(inputs);
}

}  // namespace octet::dense
