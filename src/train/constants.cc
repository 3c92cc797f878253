#include "train/constants.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octet::train {
namespace {

constexpr std::pair<ir::DataType, at::ScalarType> kTypes[] = {
    {ir::DataType::kFloat32, at::kFloat}, {ir::DataType::kFloat64, at::kDouble},
    {ir::DataType::kFloat16, at::kHalf},  {ir::DataType::kBFloat16, at::kBFloat16},
    {ir::DataType::kInt64, at::kLong},    {ir::DataType::kInt32, at::kInt},
    {ir::DataType::kInt8, at::kChar},     {ir::DataType::kUInt8, at::kByte},
    {ir::DataType::kBool, at::kBool}};

ir::DataType data_type_of(at::ScalarType type) {
  for (const auto& [ours, theirs] : kTypes)
    if (theirs == type) return ours;
  OCTET_CHECK(false, "tensor type without a counterpart in the graph");
  return ir::DataType::kUndefined;
}

}  // namespace

at::ScalarType scalar_type_of(ir::DataType type) {
  for (const auto& [ours, theirs] : kTypes)
    if (ours == type) return theirs;
  fail("a tensor has no data type");
}

at::Tensor to_torch(const ir::Tensor& constant) {
  const at::Tensor out = at::empty(constant.shape(), at::TensorOptions(scalar_type_of(constant.data_type())));
  OCTET_CHECK(out.nbytes() == constant.bytes().size(), "constant of ", constant.bytes().size(), " bytes");
  std::copy(constant.bytes().begin(), constant.bytes().end(), static_cast<std::byte*>(out.mutable_data_ptr()));
  return out;
}

ir::Tensor to_constant(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().to(at::kCPU).contiguous();
  const auto* first = static_cast<const std::byte*>(plain.const_data_ptr());
  return ir::Tensor(data_type_of(plain.scalar_type()), plain.sizes().vec(), {first, first + plain.nbytes()});
}

ir::Tensor to_constant(const at::Tensor& tensor, ir::DataType type) {
  return to_constant(tensor.to(scalar_type_of(type)));
}

}  // namespace octet::train
