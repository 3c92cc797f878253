#include "onnx/tensor_data.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "ir/data_type_codes.h"

namespace octet::onnx {
namespace fs = std::filesystem;
namespace {

using ir::DataType;

constexpr int64_t kMaxElements = int64_t{1} << 36;

// Typed fields hold small types in wider elements: int8, bool, float16 ... in int32_data.
template <typename To, typename From>
std::vector<std::byte> narrowed(const std::vector<From>& values) {
  std::vector<std::byte> out(values.size() * sizeof(To));
  for (size_t i = 0; i < values.size(); ++i) {
    const To value = static_cast<To>(values[i]);
    std::memcpy(out.data() + i * sizeof(To), &value, sizeof(To));
  }
  return out;
}

size_t typed_count(const proto::Tensor& tensor, DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return tensor.float_data.size();
    case DataType::kFloat64:
      return tensor.double_data.size();
    case DataType::kInt64:
      return tensor.int64_data.size();
    default:
      return tensor.int32_data.size();
  }
}

std::vector<std::byte> typed_bytes(const proto::Tensor& tensor, DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return narrowed<float>(tensor.float_data);
    case DataType::kFloat64:
      return narrowed<double>(tensor.double_data);
    case DataType::kInt64:
      return narrowed<int64_t>(tensor.int64_data);
    case DataType::kInt32:
      return narrowed<int32_t>(tensor.int32_data);
    case DataType::kFloat16:
    case DataType::kBFloat16:
      return narrowed<uint16_t>(tensor.int32_data);
    default:
      return narrowed<uint8_t>(tensor.int32_data);
  }
}

std::optional<uint64_t> parse_number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string onnx_type_name(int64_t code) {
  static constexpr std::array kNames = {
      "undefined", "float32",    "uint8",      "int8",         "uint16",         "int16",      "int32",
      "int64",     "string",     "bool",       "float16",      "float64",        "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  if (code >= 0 && code < static_cast<int64_t>(kNames.size())) return kNames[static_cast<size_t>(code)];
  return str("number ", code);
}

const MappedFile& ExternalFiles::open(const std::string& location, const std::string& tensor_name) {
  const auto it = files_.find(location);
  if (it != files_.end()) return *it->second;
  if (directory_.empty())
    fail("tensor '", tensor_name, "' lies in the file '", location, "', but the model was read without a folder");
  const fs::path relative(location);
  bool inside = !location.empty() && relative.is_relative() && location.find('\0') == std::string::npos;
  for (const fs::path& part : relative) inside = inside && part != "..";
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(directory_, error);
  const fs::path file = inside ? fs::weakly_canonical(folder / relative, error) : fs::path();
  if (inside && !error)
    inside = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
  if (!inside || error)
    fail("tensor '", tensor_name, "' refers to the file '", location, "', which is outside of the model's folder");
  return *(files_[location] = std::make_unique<MappedFile>(file));
}

std::string_view ExternalFiles::bytes(const proto::Tensor& tensor) {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto& [key, value] : tensor.external_data) {
    if (key == "location") location = value;
    if (key != "offset" && key != "length") continue;
    const auto number = parse_number(value);
    if (!number) fail("tensor '", tensor.name, "': the ", key, " '", value, "' of its external data is no number");
    if (key == "offset")
      offset = *number;
    else
      length = *number;
  }
  const std::span<const std::byte> all = open(location, tensor.name).bytes();
  if (offset > all.size() || (length && *length > all.size() - offset))
    fail("tensor '", tensor.name, "' should lie at byte ", offset, length ? str(", ", *length, " bytes long,") : "",
         " in the file '", location, "', which has only ", all.size(), " bytes");
  return {reinterpret_cast<const char*>(all.data()) + offset, length ? *length : all.size() - offset};
}

ir::Tensor to_tensor(const proto::Tensor& tensor, ExternalFiles& files) {
  static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");
  const DataType type = ir::data_type_from_onnx(tensor.data_type);
  if (type == DataType::kUndefined)
    fail("tensor '", tensor.name, "' has the data type ", onnx_type_name(tensor.data_type),
         "; supported are float32, float16, bfloat16, float64, int8, uint8, int32, int64 and bool");
  if (tensor.dims.size() > 64) fail("tensor '", tensor.name, "' has ", tensor.dims.size(), " dimensions");
  int64_t count = 1;
  for (const int64_t d : tensor.dims) {
    if (d < 0 || d > kMaxElements || (d > 0 && count > kMaxElements / d))
      fail("tensor '", tensor.name, "' has the impossible shape ", ir::shape_string(tensor.dims));
    count *= d;
  }
  const size_t expected = static_cast<size_t>(count) * ir::data_type_size(type);
  const auto wrong_length = [&](size_t actual, const char* what) {
    fail("tensor '", tensor.name, "' ", ir::type_string({type, tensor.dims}), " holds ", actual, " ", what);
  };
  std::vector<std::byte> bytes;
  const size_t typed = typed_count(tensor, type);
  if (tensor.external || !tensor.raw_data.empty() || typed == 0) {
    const std::string_view raw = tensor.external ? files.bytes(tensor) : tensor.raw_data;
    if (raw.size() != expected) wrong_length(raw.size(), str("bytes, expected ", expected).c_str());
    bytes.resize(expected);
    if (expected > 0) std::memcpy(bytes.data(), raw.data(), expected);
  } else {
    if (typed != static_cast<size_t>(count)) wrong_length(typed, str("elements, expected ", count).c_str());
    bytes = typed_bytes(tensor, type);
  }
  if (type == DataType::kBool)
    for (std::byte& b : bytes) b = b == std::byte{0} ? b : std::byte{1};  // any other value of a bool is undefined
  return ir::Tensor(type, tensor.dims, std::move(bytes));
}

}  // namespace octet::onnx
