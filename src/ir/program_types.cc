#include "ir/program_types.h"

namespace octet::ir {

DataType data_type_of(dense::Type type) {
  switch (type) {
    case dense::Type::kFloat:
      return DataType::kFloat32;
    case dense::Type::kInt64:
      return DataType::kInt64;
    case dense::Type::kInt32:
      return DataType::kInt32;
    case dense::Type::kBool:
      return DataType::kBool;
    case dense::Type::kInt8:
      return DataType::kInt8;
    case dense::Type::kUint8:
      break;
  }
  return DataType::kUInt8;
}

std::vector<ProgramOutput> program_outputs(const dense::Program& program) {
  std::vector<ProgramOutput> out;
  for (const dense::Output& output : program.outputs) {
    ProgramOutput& made = out.emplace_back();
    made.name = program.values[static_cast<size_t>(output.value)];
    made.type.data_type = data_type_of(output.type);
    if (output.has_shape) made.type.shape = output.shape;
  }
  return out;
}

}  // namespace octet::ir
