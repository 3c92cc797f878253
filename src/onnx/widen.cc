#include "onnx/widen.h"

#include "base/log.h"
#include "ir/data_type_codes.h"

namespace octet::onnx {

using ir::DataType;

bool is_half(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBFloat16;
}

DataType widened(DataType type) {
  return is_half(type) ? DataType::kFloat32 : type;
}

ir::Tensor widened(ir::Tensor tensor) {
  if (!is_half(tensor.data_type())) return tensor;
  return ir::Tensor::of<float>(tensor.shape(), tensor.to_floats());
}

void Widener::widen(SourceNode& node, bool computed) {
  for (auto& [key, value] : node.attributes)
    if (ir::Tensor* tensor = std::get_if<ir::Tensor>(&value)) *tensor = widened(std::move(*tensor));
  const auto names_half = [&](const char* key) {
    const auto it = node.attributes.find(key);
    const int64_t* code = it == node.attributes.end() ? nullptr : std::get_if<int64_t>(&it->second);
    return code && is_half(ir::data_type_from_onnx(*code)) ? std::optional(ir::data_type_from_onnx(*code))
                                                           : std::nullopt;
  };
  if (node.op == "Cast") {
    if (const auto half = names_half("to")) {
      if (computed) note(*half, str("node '", node.name, "' (Cast)"));
      node.attributes["to"] = int64_t{ir::data_type_to_onnx(DataType::kFloat32)};
    }
  } else if (node.op == "QuantizeLinear" || node.op == "DequantizeLinear") {
    // From opset 23 on: in what a scale is applied, and what comes out.
    for (const char* key : {"precision", "output_dtype"}) {
      const auto it = node.attributes.find(key);
      if (it == node.attributes.end() || !std::holds_alternative<int64_t>(it->second)) continue;
      const int64_t code = std::get<int64_t>(it->second);
      const DataType type = ir::data_type_from_onnx(code);
      const bool unstated = code == 0 && (node.op == "DequantizeLinear" || std::string(key) == "precision");
      if (unstated || is_half(type) || type == DataType::kFloat32) node.attributes.erase(it);
    }
  }
}

void Widener::note(DataType type, const std::string& where) {
  if (!is_half(type)) return;
  if (first_.empty())
    first_ = str(where, " is of ", ir::data_type_name(type));
  else
    ++more_;
}

void Widener::report() const {
  if (first_.empty()) return;
  log_warning(first_, more_ > 0 ? str(" (and ", more_, more_ == 1 ? " other place)" : " other places)") : std::string(),
              "; 16-bit floats are read as float32, which computes the same with fewer roundings");
}

}  // namespace octet::onnx
