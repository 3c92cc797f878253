// TensorProto -> ir::Tensor: raw and typed data, and data in external files.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/files.h"
#include "ir/tensor.h"
#include "onnx/proto.h"

namespace octet::onnx {

// The files beside a model that hold its large tensors. Nothing outside of `directory` is ever opened, whatever the
// model says (absolute paths, "..", symbolic links). An empty directory: the model may not refer to files at all.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}
  // The bytes that a tensor's external_data entries describe. UserError when they do not lie in the file.
  std::string_view bytes(const proto::Tensor& tensor);

 private:
  const MappedFile& open(const std::string& location, const std::string& tensor_name);
  std::filesystem::path directory_;
  std::map<std::string, std::unique_ptr<MappedFile>> files_;
};

// UserError (naming the tensor) for types that Octet does not know, impossible shapes, and data whose length does not
// fit the shape; checked before anything is allocated.
ir::Tensor to_tensor(const proto::Tensor& tensor, ExternalFiles& files);

// "float", "uint16", ... as TensorProto.DataType names its values.
std::string onnx_type_name(int64_t code);

}  // namespace octet::onnx
