// What lies behind a plan: operators whose sizes depend on what the network computes (the objects that a detector
// finds), which the plan, laid out before it runs, cannot hold. A program is a list of ONNX's operators, in the forms
// of the newest opset, over dense tensors whose sizes come up as it runs.
#pragma once
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "dense/tensor.h"

namespace octet::dense {

using Attribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>>;
using Attributes = std::map<std::string, Attribute>;

struct Operation;

inline constexpr int kDeepest = 16;  // blocks in blocks

// Operations in execution order, and what they are for. All blocks of a program share its values.
struct Block {
  std::vector<int> inputs;  // of the body of a Loop; an If has none
  std::vector<Operation> operations;
  std::vector<int> outputs;
};

struct Operation {
  std::string op, name;              // of ONNX; of the node in the model
  std::vector<int> inputs, outputs;  // values; -1: an optional one that is absent
  Attributes attributes;
  // Of an If: what is done where the condition holds, and where it does not. Of a Loop, whose inputs are how many times
  // at most, whether at all, and what the first iteration gets: its body, which gets the number of the iteration, that
  // it goes on, and what the one before made, and makes whether it goes on, what the next one gets, and a slice of each
  // of the other outputs.
  std::vector<Block> branches;
};

struct Input {
  int value = 0;
  Type type = Type::kFloat;
};

struct Output {
  int value = 0;
  Type type = Type::kFloat;
  bool has_shape = false;  // the model says the rank
  Shape shape;             // -1: a size that comes up in a run
};

struct Program {
  std::vector<std::string> values;  // names of all, as in the model
  std::vector<Input> inputs;        // in the order of the outputs of the graph, or the plan, before it
  std::vector<std::pair<int, Tensor>> constants;
  std::vector<Operation> operations;
  std::vector<Output> outputs;  // of the model
};

// Checks all that run() trusts: operators, counts, attributes, and that each value is made once, before it is read.
// UserError naming the operation.
void validate(const Program& program);

// The type of each value. Requires a program that passed validate().
std::vector<Type> value_types(const Program& program);

// A program as the bytes of a section of an engine file, and back. UserError where bytes are no program.
std::string program_bytes(const Program& program);
Program parse_program(std::span<const std::byte> bytes);

// The values that an operation or an output reads.
std::unordered_set<int> read_values(const Program& program);
// Takes out operations whose results nothing reads, and constants that nothing reads.
void drop_unread(Program& program);

// Operators that multiply by constants, in the words of reports.
struct WeightedOperation {
  std::string name, op;
  int64_t parameters = 0;
  std::string why_float;  // empty: the engine computes it on codes
};
std::vector<WeightedOperation> weighted_operations(const Program& program);
// How many operations there are, those of branches included.
int64_t operation_count(const Program& program);

}  // namespace octet::dense
