#include "checkpoint/safetensors.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octet::checkpoint {
namespace {

using nlohmann::json;

const std::pair<const char*, ir::DataType> kTypes[] = {
    {"F32", ir::DataType::kFloat32}, {"F64", ir::DataType::kFloat64}, {"F16", ir::DataType::kFloat16},
    {"BF16", ir::DataType::kBFloat16}, {"I64", ir::DataType::kInt64}, {"I32", ir::DataType::kInt32},
    {"I8", ir::DataType::kInt8}, {"U8", ir::DataType::kUInt8}, {"BOOL", ir::DataType::kBool}};

}  // namespace

std::string safetensors_bytes(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const char* type = nullptr;
    for (const auto& [text, kind] : kTypes)
      if (kind == tensor.data_type()) type = text;
    OCTET_CHECK(type != nullptr, name);
    const size_t size = tensor.bytes().size();
    header[name] = {{"dtype", type}, {"shape", tensor.shape()}, {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string out(8, '\0');
  const uint64_t length = text.size();
  std::memcpy(out.data(), &length, 8);
  out += text;
  out.reserve(out.size() + offset);
  for (const auto& [name, tensor] : tensors)
    out.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
  return out;
}

NamedTensors parse_safetensors(std::string_view bytes, const std::string& origin) {
  uint64_t length = 0;
  if (bytes.size() >= 8) std::memcpy(&length, bytes.data(), 8);
  if (bytes.size() < 8 || length > bytes.size() - 8) fail(origin, ": is no safetensors file, or is truncated");
  const std::string_view data = bytes.substr(8 + length);
  const json header = json::parse(bytes.substr(8, length), nullptr, false);
  if (!header.is_object()) fail(origin, ": the safetensors header is damaged");
  NamedTensors out;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      ir::DataType type = ir::DataType::kUndefined;
      for (const auto& [text, kind] : kTypes)
        if (entry.at("dtype").get<std::string>() == text) type = kind;
      const auto shape = entry.at("shape").get<ir::Shape>();
      const auto offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
      uint64_t count = 1;
      for (int64_t d : shape) {
        if (d < 0 || (d > 0 && count > data.size() / static_cast<uint64_t>(d))) count = data.size() + 1;
        else count *= static_cast<uint64_t>(d);
        if (count > data.size()) break;
      }
      if (type == ir::DataType::kUndefined || offsets.size() != 2 || offsets[0] > offsets[1] ||
          offsets[1] > data.size() || offsets[1] - offsets[0] != count * ir::data_type_size(type))
        fail(origin, ": tensor '", name, "' has an unknown type, or its size does not fit the file");
      const auto* first = reinterpret_cast<const std::byte*>(data.data());
      out[name] = ir::Tensor(type, shape, {first + offsets[0], first + offsets[1]});
    } catch (const json::exception& e) {
      fail(origin, ": the entry of tensor '", name, "' is damaged: ", e.what());
    }
  }
  return out;
}

}  // namespace octet::checkpoint
