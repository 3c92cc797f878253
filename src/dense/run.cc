#include "dense/run.h"

#include <limits>
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
    std::vector<int> made_here;
    for (size_t i = 0; i < operations.size(); ++i) {
      for (const int v : operations[i].outputs)
        if (v >= 0) made_here.push_back(v);
      run_operation(operations[i]);
      if (options_.watch && &operations == &program_.operations)
        for (const int v : operations[i].outputs)
          if (v >= 0) options_.watch(v, *values_[static_cast<size_t>(v)]);
      for (const auto& list : {reads[i], operations[i].outputs})
        for (const int v : list)
          if (const auto it = last.find(v); it != last.end() && it->second == i) {
            forget(v);
            last.erase(it);
          }
    }
    std::vector<Tensor> found;
    for (const int v : outputs) found.push_back(*values_[static_cast<size_t>(v)]);
    for (const int v : made_here) forget(v);
    return found;
  }

  void forget(int value) {
    made_.erase(value);
    values_[static_cast<size_t>(value)] = nullptr;
  }

  void run_operation(const Operation& operation) {
    try {
      if (operation.op == "If") return run_if(operation);
      if (operation.op == "Loop") return run_loop(operation);
      std::vector<const Tensor*> inputs;
      for (const int v : operation.inputs) inputs.push_back(v < 0 ? nullptr : values_[static_cast<size_t>(v)]);
      const Operator* row = find_operator(operation.op);
      OCTET_CHECK(row || options_.others, operation.op);
      Tensors made = row ? row->run(Call(operation, std::move(inputs), memory_, options_.threads))
                         : Tensors{options_.others(operation, inputs, memory_)};
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
    const Block& branch = operation.branches[condition_of(*values_[static_cast<size_t>(operation.inputs[0])]) ? 0 : 1];
    std::vector<Tensor> found = run_block(branch.operations, branch.outputs);
    for (size_t i = 0; i < operation.outputs.size(); ++i)
      if (operation.outputs[i] >= 0) set(operation.outputs[i], std::move(found[i]));
  }

  void run_loop(const Operation& operation) {
    const Block& body = operation.branches[0];
    const auto given = [&](size_t i) {
      return operation.inputs[i] < 0 ? nullptr : values_[static_cast<size_t>(operation.inputs[i])];
    };
    const Tensor *most = given(0), *start = given(1);
    require(!most || (most->type() == Type::kInt64 && most->size() == 1), "how often it runs should be one int64, not ",
            most ? type_name(most->type()) : "", most ? shape_text(most->shape()) : "");
    const int64_t times = most ? most->values<int64_t>()[0] : std::numeric_limits<int64_t>::max();
    bool go_on = !start || condition_of(*start);
    const size_t carried = operation.inputs.size() - 2;
    std::vector<Tensor> state;
    for (size_t i = 0; i < carried; ++i) state.push_back(*given(2 + i));
    std::vector<std::vector<Tensor>> slices(body.outputs.size() - 1 - carried);
    for (int64_t i = 0; i < times && go_on; ++i) {
      require(++iterations_ <= options_.iterations, "Loops have run ", options_.iterations,
              " times, which is as much as is allowed");
      set(body.inputs[0], memory_.of<int64_t>({}, std::span<const int64_t>(&i, 1)));
      set(body.inputs[1], memory_.of<bool>({}, std::span<const bool>(&go_on, 1)));
      for (size_t k = 0; k < carried; ++k) set(body.inputs[2 + k], std::move(state[k]));
      std::vector<Tensor> made = run_block(body.operations, body.outputs);
      for (const int v : body.inputs) forget(v);
      go_on = condition_of(made[0]);
      for (size_t k = 0; k < carried; ++k) state[k] = std::move(made[1 + k]);
      for (size_t k = 0; k < slices.size(); ++k) slices[k].push_back(std::move(made[1 + carried + k]));
    }
    for (size_t k = 0; k < slices.size(); ++k) state.push_back(stacked(slices[k], body.outputs[1 + carried + k]));
    for (size_t i = 0; i < operation.outputs.size(); ++i)
      if (operation.outputs[i] >= 0) set(operation.outputs[i], std::move(state[i]));
  }

  static bool condition_of(const Tensor& tensor) {
    require(tensor.type() == Type::kBool && tensor.size() == 1, "its condition should be one bool, not ",
            type_name(tensor.type()), shape_text(tensor.shape()));
    return tensor.values<bool>()[0];
  }

  // Slices of one shape along a new first axis; of none, whose shape nobody knows, a list without elements.
  Tensor stacked(const std::vector<Tensor>& slices, int value) {
    if (slices.empty()) {
      if (types_.empty()) types_ = value_types(program_);
      return memory_.make(types_[static_cast<size_t>(value)], {0});
    }
    Shape shape = slices[0].shape();
    shape.insert(shape.begin(), static_cast<int64_t>(slices.size()));
    Tensor out = memory_.make(slices[0].type(), shape);
    std::byte* to = out.data();
    for (const Tensor& slice : slices) {
      require(slice.shape() == slices[0].shape(), "an iteration makes a slice of ", shape_text(slice.shape()),
              ", and the first one made ", shape_text(slices[0].shape()));
      to = std::copy(slice.bytes().begin(), slice.bytes().end(), to);
    }
    return out;
  }

  const Program& program_;
  const RunOptions& options_;
  Memory memory_;
  std::vector<const Tensor*> values_;
  std::unordered_map<int, Tensor> made_;
  std::vector<Type> types_;  // of the values, once a Loop asks
  int64_t iterations_ = 0;
  bool explained_ = false;
};

}  // namespace

std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs, const RunOptions& options) {
  return Run(program, options).run(inputs);
}

}  // namespace octet::dense
