#include "weights/weight_file.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "onnx/import.h"
#include "weights/hdf5_file.h"
#include "weights/keras_file.h"
#include "weights/torch_file.h"

namespace octet::weights {
namespace {

bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

// int32 length of the input's name (0 where the content is ONNX), the name, ciphertext.
bool looks_like_etlt(std::string_view bytes) {
  int32_t length = 0;
  if (bytes.size() < 64) return false;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length < 0 || length > 60) return false;
  const std::string_view name = bytes.substr(4, static_cast<size_t>(length));
  // Ciphertext: all values of a byte are as likely, so that of many bytes few are zero.
  const std::string_view rest = bytes.substr(4 + name.size(), size_t{1} << 16);
  const auto zeros = std::count(rest.begin(), rest.end(), '\0');
  return std::all_of(name.begin(), name.end(), is_printable) &&
         static_cast<size_t>(zeros) * 64 < std::max<size_t>(rest.size(), 64);
}

bool is_safetensors(std::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < 9) return false;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length >= 2 && length <= bytes.size() - 8 && bytes[8] == '{';
}

[[noreturn]] void refuse_encrypted(const std::filesystem::path& path) {
  fail_usage(
      path.string(),
      ": is an encrypted model of NVIDIA TAO, which only TAO can open. TAO 5 and later write open files: export it "
      "there with its key (tao model NETWORK export -m MODEL -k KEY -o MODEL.onnx) and name the .onnx, or name the "
      ".hdf5 or .onnx that NGC offers beside it");
}

WeightFormat format_of(std::string_view bytes, const std::filesystem::path& path) {
  if (is_hdf5(bytes)) return WeightFormat::kKeras;
  if (is_safetensors(bytes)) return WeightFormat::kSafetensors;
  const std::string extension = path.extension().string();
  if (extension == ".tlt" || extension == ".etlt" || extension == ".tltb") refuse_encrypted(path);
  if (is_torch_file(bytes)) return WeightFormat::kTorch;
  if (extension != ".onnx" && looks_like_etlt(bytes)) refuse_encrypted(path);
  return WeightFormat::kOnnx;  // which has no signature; the importer says what is wrong
}

ir::Tensor as_floats(const ir::Tensor& tensor) {
  return tensor.data_type() == ir::DataType::kFloat32 ? tensor
                                                      : ir::Tensor::of<float>(tensor.shape(), tensor.to_floats());
}

bool is_floating(const ir::Tensor& tensor) {
  switch (tensor.data_type()) {
    case ir::DataType::kFloat32:
    case ir::DataType::kFloat16:
    case ir::DataType::kBFloat16:
    case ir::DataType::kFloat64:
      return true;
    default:
      return false;
  }
}

checkpoint::NamedTensors constants_of(const ir::Graph& graph) {
  checkpoint::NamedTensors out;
  for (const ir::Value* value : graph.constants()) out[value->name] = *value->constant;
  return out;
}

}  // namespace

WeightFormat weight_format(const std::filesystem::path& path) {
  return format_of(read_file(path), path);
}

checkpoint::NamedTensors read_weights(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  checkpoint::NamedTensors all;
  switch (format_of(bytes, path)) {
    case WeightFormat::kOnnx:
      all = constants_of(onnx::import_model(path));
      break;
    case WeightFormat::kSafetensors:
      all = checkpoint::parse_safetensors(bytes, path.string());
      break;
    case WeightFormat::kKeras:
      all = read_keras_weights(bytes, path.string());
      break;
    case WeightFormat::kTorch:
      all = read_torch_weights(bytes, path.string());
      break;
  }
  checkpoint::NamedTensors out;
  for (const auto& [name, tensor] : all)
    if (is_floating(tensor)) out[name] = as_floats(tensor);
  return out;
}

}  // namespace octet::weights
