// The types of a program behind a graph in the words of graphs.
#pragma once
#include <string>
#include <vector>

#include "dense/program.h"
#include "ir/tensor.h"

namespace octet::ir {

DataType data_type_of(dense::Type type);

struct ProgramOutput {
  std::string name;
  TensorType type;  // sizes that come up in a run are kDynamic
};
std::vector<ProgramOutput> program_outputs(const dense::Program& program);

}  // namespace octet::ir
