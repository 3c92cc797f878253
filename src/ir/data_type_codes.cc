#include "ir/data_type_codes.h"

#include <utility>

namespace octet::ir {
namespace {

constexpr std::pair<DataType, int> kCodes[] = {
    {DataType::kFloat32, 1},  {DataType::kUInt8, 2},    {DataType::kInt8, 3},
    {DataType::kInt32, 6},    {DataType::kInt64, 7},    {DataType::kBool, 9},
    {DataType::kFloat16, 10}, {DataType::kFloat64, 11}, {DataType::kBFloat16, 16},
};

}  // namespace

DataType data_type_from_onnx(int64_t code) {
  for (const auto& [type, c] : kCodes)
    if (c == code) return type;
  return DataType::kUndefined;
}

int data_type_to_onnx(DataType type) {
  for (const auto& [t, code] : kCodes)
    if (t == type) return code;
  return 0;
}

}  // namespace octet::ir
