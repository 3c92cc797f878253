#include "checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "checkpoint/json_number.h"

namespace octet::checkpoint {
namespace {

using nlohmann::json;

const std::pair<const char*, ir::DataType> kTypes[] = {
    {"F32", ir::DataType::kFloat32},   {"F64", ir::DataType::kFloat64}, {"F16", ir::DataType::kFloat16},
    {"BF16", ir::DataType::kBFloat16}, {"I64", ir::DataType::kInt64},   {"I32", ir::DataType::kInt32},
    {"I8", ir::DataType::kInt8},       {"U8", ir::DataType::kUInt8},    {"BOOL", ir::DataType::kBool}};

// One tensor of the header: its bytes are [begin, end) of the data.
struct Extent {
  std::string name;
  ir::DataType type = ir::DataType::kUndefined;
  ir::Shape shape;
  size_t begin = 0, end = 0;
};

Extent read_extent(const std::string& name, const json& entry, size_t data_bytes) {
  Extent e{.name = name};
  const auto limit = static_cast<int64_t>(data_bytes);
  for (const auto& [text, kind] : kTypes)
    if (entry.at("dtype").get<std::string>() == text) e.type = kind;
  if (e.type == ir::DataType::kUndefined) fail("its type is unknown");
  if (!entry.at("shape").is_array()) fail("its shape is not a list");
  // No dimension is larger than the file, that of an empty tensor neither, so the product is checked before it
  // overflows.
  uint64_t count = 1;
  for (const json& d : entry.at("shape")) {
    e.shape.push_back(whole_number(d, 0, limit, "a dimension of its shape"));
    const auto size = static_cast<uint64_t>(e.shape.back());
    if (size > 0 && count > data_bytes / size) fail("its shape is larger than the file");
    count *= size;
  }
  const json& offsets = entry.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2) fail("'data_offsets' is not a pair");
  e.begin = static_cast<size_t>(whole_number(offsets[0], 0, limit, "its begin"));
  e.end = static_cast<size_t>(whole_number(offsets[1], static_cast<int64_t>(e.begin), limit, "its end"));
  if (e.end - e.begin != count * ir::data_type_size(e.type))
    fail("it has ", e.end - e.begin, " bytes, its shape ", ir::shape_string(e.shape), " of ",
         ir::data_type_name(e.type), " takes ", count * ir::data_type_size(e.type));
  return e;
}

// The format's own rule: every byte of the data belongs to one tensor.
void require_gapless(std::vector<Extent> extents, size_t data_bytes, const std::string& origin) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  size_t covered = 0;
  for (const Extent& e : extents) {
    if (e.begin != covered)
      fail(origin, ": is damaged: tensor '", e.name, "' begins at byte ", e.begin, ", the one before ends at ",
           covered);
    covered = e.end;
  }
  if (covered != data_bytes)
    fail(origin, ": is damaged: its tensors take ", covered, " bytes, the file holds ", data_bytes);
}

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
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      extents.push_back(read_extent(name, entry, data.size()));
    } catch (const UserError& e) {
      fail(origin, ": the entry of tensor '", name, "' is damaged: ", e.what());
    } catch (const json::exception& e) {
      fail(origin, ": the entry of tensor '", name, "' is damaged: ", e.what());
    }
  }
  require_gapless(extents, data.size(), origin);
  NamedTensors out;
  const auto* first = reinterpret_cast<const std::byte*>(data.data());
  for (const Extent& e : extents) out[e.name] = ir::Tensor(e.type, e.shape, {first + e.begin, first + e.end});
  return out;
}

}  // namespace octet::checkpoint
