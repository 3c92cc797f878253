#include "dense/program.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "dense/code_products.h"
#include "dense/operators.h"

namespace octet::dense {
namespace {

class Validator {
 public:
  explicit Validator(const Program& program)
      : program_(program), types_(program.values.size()), made_(program.values.size(), false) {}

  std::vector<Type> take_types() { return std::move(types_); }

  void run() {
    for (const Input& input : program_.inputs) make(input.value, input.type, "an input");
    for (const auto& [value, tensor] : program_.constants) make(value, tensor.type(), "a constant");
    std::unordered_set<int> known;
    for (size_t v = 0; v < made_.size(); ++v)
      if (made_[v]) known.insert(static_cast<int>(v));
    check(program_.operations, known, 0);
    require(!program_.outputs.empty(), "the program behind the plan has no output");
    for (const Output& output : program_.outputs) {
      require(known.count(output.value) > 0, "an output of the program behind the plan is made by no operation");
      const auto value = static_cast<size_t>(output.value);
      require(output.type != Type::kInt8 && output.type != Type::kUint8, "output '", program_.values[value], "' holds ",
              type_name(output.type), ", which no output of a program behind the plan can");
      require(types_[value] == output.type, "output '", program_.values[value], "' should be ", type_name(output.type),
              ", and the program behind the plan makes ", type_name(types_[value]));
    }
  }

 private:
  void make(int value, Type type, const char* what) {
    require(value >= 0 && static_cast<size_t>(value) < made_.size(), what, " of the program is the value ", value,
            " of ", made_.size());
    require(!made_[static_cast<size_t>(value)], "the value '", program_.values[static_cast<size_t>(value)],
            "' of the program behind the plan is made twice");
    made_[static_cast<size_t>(value)] = true;
    types_[static_cast<size_t>(value)] = type;
  }

  void check(const std::vector<Operation>& operations, std::unordered_set<int>& known, int depth) {
    for (const Operation& operation : operations) {
      try {
        check(operation, known, depth);
      } catch (const UserError& e) {
        if (explained_) throw;
        explained_ = true;
        fail("node '", operation.name, "' (", operation.op, "): ", e.what());
      }
    }
  }

  void check(const Operation& operation, std::unordered_set<int>& known, int depth) {
    std::vector<Type> types;
    for (const int v : operation.inputs) {
      require(v == -1 || known.count(v) > 0, "reads a value that nothing before it makes");
      types.push_back(v < 0 ? Type::kInt64 : types_[static_cast<size_t>(v)]);  // absent ones fit everywhere
    }
    require(!operation.outputs.empty(), "has no outputs");
    if (operation.op == "If") return check_if(operation, known, depth);
    if (operation.op == "Loop") return check_loop(operation, known, depth);
    const Operator* row = find_operator(operation.op);
    require(row, "this operator is not supported in a program behind the plan");
    require(operation.branches.empty(), "has blocks, which only an If and a Loop have");
    require(operation.inputs.size() >= row->least_inputs && operation.inputs.size() <= row->most_inputs, "has ",
            operation.inputs.size(), " inputs, expected ", row->least_inputs, " to ", row->most_inputs);
    for (size_t i = 0; i < row->least_inputs; ++i) require(operation.inputs[i] >= 0, "input ", i, " is absent");
    require(operation.outputs.size() <= row->most_outputs, "has ", operation.outputs.size(), " outputs, expected ",
            row->most_outputs);
    for (const auto& attribute : operation.attributes) {
      const std::string& key = attribute.first;
      const bool known =
          std::any_of(row->attributes.begin(), row->attributes.end(), [&](const char* a) { return key == a; });
      require(known, "attribute '", key, "' is not supported");
    }
    require_integers(operation.op, types);
    if (row->check) row->check(AttributeReader(operation));
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      if (operation.outputs[i] == -1) continue;
      make(operation.outputs[i], output_type(operation, i, types), "an output of an operation");
      known.insert(operation.outputs[i]);
    }
  }

  void check_if(const Operation& operation, std::unordered_set<int>& known, int depth) {
    require(depth < kDeepest, "lies too deep in other blocks");
    require(operation.inputs.size() == 1 && operation.inputs[0] >= 0 && operation.branches.size() == 2 &&
                operation.attributes.empty(),
            "should have one input, its condition, and two branches");
    const auto condition = static_cast<size_t>(operation.inputs[0]);
    require(types_[condition] == Type::kBool, "its condition '", program_.values[condition], "' is ",
            type_name(types_[condition]), ", expected bool");
    std::vector<Type> types;
    for (const Block& branch : operation.branches) {
      require(branch.inputs.empty(), "a branch has inputs");
      std::unordered_set<int> inside = known;
      check(branch.operations, inside, depth + 1);
      require(branch.outputs.size() == operation.outputs.size(), "a branch has ", branch.outputs.size(),
              " outputs, expected ", operation.outputs.size());
      std::vector<Type> found;
      for (const int v : branch.outputs) {
        require(inside.count(v) > 0, "an output of a branch is made by no operation");
        found.push_back(types_[static_cast<size_t>(v)]);
      }
      require(types.empty() || types == found, "its branches make tensors of different types");
      types = found;
    }
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      if (operation.outputs[i] == -1) continue;
      make(operation.outputs[i], types[i], "an output of an If");
      known.insert(operation.outputs[i]);
    }
  }

  void check_loop(const Operation& operation, std::unordered_set<int>& known, int depth) {
    require(depth < kDeepest, "lies too deep in other blocks");
    require(operation.inputs.size() >= 2 && operation.branches.size() == 1 && operation.attributes.empty(),
            "should have two inputs or more, and a body");
    const Block& body = operation.branches[0];
    const size_t carried = operation.inputs.size() - 2;
    require(body.inputs.size() == 2 + carried && body.outputs.size() >= 1 + carried &&
                operation.outputs.size() == body.outputs.size() - 1,
            "its body has ", body.inputs.size(), " inputs and ", body.outputs.size(), " outputs, expected ",
            2 + carried, " and one more than it has itself");
    const auto type_of = [&](int value) { return types_[static_cast<size_t>(value)]; };
    const auto require_type = [&](int value, Type expected, const char* what) {
      require(value < 0 || type_of(value) == expected, what, " is ", value < 0 ? "" : type_name(type_of(value)),
              ", expected ", type_name(expected));
    };
    require_type(operation.inputs[0], Type::kInt64, "how often it runs");
    require_type(operation.inputs[1], Type::kBool, "its condition");
    std::unordered_set<int> inside = known;
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      require(i < 2 || operation.inputs[i] >= 0, "input ", i, " is absent");
      const Type type = i == 0 ? Type::kInt64 : i == 1 ? Type::kBool : type_of(operation.inputs[i]);
      make(body.inputs[i], type, "an input of a body");
      inside.insert(body.inputs[i]);
    }
    check(body.operations, inside, depth + 1);
    for (const int v : body.outputs) require(inside.count(v) > 0, "an output of its body is made by no operation");
    require_type(body.outputs[0], Type::kBool, "whether it goes on");
    for (size_t i = 0; i < carried; ++i)
      require_type(body.outputs[1 + i], type_of(operation.inputs[2 + i]), "what the next iteration gets");
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      if (operation.outputs[i] == -1) continue;
      make(operation.outputs[i], type_of(body.outputs[1 + i]), "an output of a Loop");
      known.insert(operation.outputs[i]);
    }
  }

  const Program& program_;
  std::vector<Type> types_;
  std::vector<bool> made_;
  bool explained_ = false;
};

// Constants, also those behind a DequantizeLinear, by how many elements they have.
std::unordered_map<int, int64_t> constant_sizes(const Program& program) {
  std::unordered_map<int, int64_t> out;
  for (const auto& [value, tensor] : program.constants) out.emplace(value, tensor.size());
  for (const Operation& operation : program.operations)
    if (operation.op == "DequantizeLinear")
      if (const auto it = out.find(operation.inputs[0]); it != out.end())
        out.emplace(operation.outputs[0], int64_t{it->second});
  return out;
}

void add_weighted(const std::vector<Operation>& operations, const std::unordered_map<int, int64_t>& constants,
                  bool inside, std::vector<WeightedOperation>& out) {
  for (const Operation& operation : operations) {
    for (const Block& branch : operation.branches) add_weighted(branch.operations, constants, true, out);
    const bool recurrent = operation.op == "LSTM" || operation.op == "GRU" || operation.op == "RNN";
    const bool product =
        operation.op == "Gemm" || operation.op == "MatMul" || operation.op == "Conv" || operation.op == "ConvTranspose";
    if (!product && !recurrent) continue;
    int64_t parameters = 0;
    bool weighted = false;
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      const auto constant = constants.find(operation.inputs[i]);
      if (constant == constants.end()) continue;
      if (recurrent && (i == 0 || (i > 3 && i < 7))) continue;  // sequences, their lengths, states
      weighted = weighted || i < 2;
      parameters += constant->second;
    }
    if (!weighted) continue;
    out.push_back({operation.name, operation.op, parameters, ""});
    out.back().why_float = recurrent ? "recurrent layers run in FP32"
                           : inside  ? "lies in a branch or a Loop behind the plan, where all is FP32"
                                     : "its input is not quantized, or no kernel behind the plan has its form on codes";
  }
}

void note_reads(const std::vector<Operation>& operations, std::unordered_set<int>& read) {
  for (const Operation& operation : operations) {
    read.insert(operation.inputs.begin(), operation.inputs.end());
    for (const Block& branch : operation.branches) {
      note_reads(branch.operations, read);
      read.insert(branch.outputs.begin(), branch.outputs.end());
    }
  }
}

int64_t count(const std::vector<Operation>& operations) {
  int64_t sum = 0;
  for (const Operation& operation : operations) {
    ++sum;
    for (const Block& branch : operation.branches) sum += count(branch.operations);
  }
  return sum;
}

}  // namespace

void validate(const Program& program) {
  Validator(program).run();
}

std::vector<Type> value_types(const Program& program) {
  Validator validator(program);
  validator.run();
  return validator.take_types();
}

std::unordered_set<int> read_values(const Program& program) {
  std::unordered_set<int> read;
  for (const Output& output : program.outputs) read.insert(output.value);
  note_reads(program.operations, read);
  return read;
}

void drop_unread(Program& program) {
  std::unordered_set<int> read;
  for (const Output& output : program.outputs) read.insert(output.value);
  std::vector<Operation> kept;
  for (size_t i = program.operations.size(); i-- > 0;) {
    Operation& operation = program.operations[i];
    if (std::none_of(operation.outputs.begin(), operation.outputs.end(), [&](int v) { return read.count(v) > 0; }))
      continue;
    kept.push_back(std::move(operation));
    note_reads({kept.back()}, read);
  }
  std::reverse(kept.begin(), kept.end());
  program.operations = std::move(kept);
  std::erase_if(program.constants, [&](const auto& c) { return read.count(c.first) == 0; });
}

std::vector<WeightedOperation> weighted_operations(const Program& program) {
  std::vector<WeightedOperation> out;
  add_weighted(program.operations, constant_sizes(program), false, out);
  std::unordered_set<std::string> on_codes;
  for (const CodeProduct& product : code_products(program))
    on_codes.insert(program.operations[product.form.operation].name);
  for (WeightedOperation& operation : out)
    if (on_codes.count(operation.name) > 0) operation.why_float.clear();
  return out;
}

int64_t operation_count(const Program& program) {
  return count(program.operations);
}

}  // namespace octet::dense
