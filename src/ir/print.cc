#include "ir/print.h"

#include <charconv>

namespace octet::ir {
namespace {

constexpr int64_t kShownElements = 8;

std::string number(float value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return {buffer, result.ptr};
}

std::string number(int64_t value) {
  return std::to_string(value);
}

std::string quoted(const std::string& text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Names from files may hold anything; odd ones are quoted so that a node stays one readable line.
std::string name_text(const std::string& name) {
  bool plain = !name.empty();
  for (const char c : name)
    plain = plain && static_cast<unsigned char>(c) > 0x20 && c != 0x7f && c != '"' && c != ',' && c != '(' && c != ')';
  return plain ? name : quoted(name);
}

template <typename List, typename Format>
std::string joined(const List& list, Format format) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "" : ", ") + format(item);
  return out;
}

std::string typed(const Value& value) {
  return name_text(value.name) + " " + type_string(value.type);
}

std::string content(const Tensor& tensor) {
  if (tensor.size() > kShownElements) return "";
  switch (tensor.data_type()) {
    case DataType::kFloat32:
    case DataType::kFloat16:
    case DataType::kBFloat16:
    case DataType::kFloat64:
      return " = {" + joined(tensor.to_floats(), [](float v) { return number(v); }) + "}";
    default:
      return " = {" + joined(tensor.to_ints(), [](int64_t v) { return number(v); }) + "}";
  }
}

struct AttributeText {
  std::string operator()(int64_t v) const { return number(v); }
  std::string operator()(float v) const { return number(v); }
  std::string operator()(const std::string& v) const { return quoted(v); }
  template <typename T>
  std::string operator()(const std::vector<T>& v) const {
    return "[" + joined(v, [this](const T& item) { return (*this)(item); }) + "]";
  }
  std::string operator()(const Tensor& v) const { return type_string({v.data_type(), v.shape()}) + content(v); }
};

}  // namespace

std::string attribute_text(const Attribute& attribute) {
  return std::visit(AttributeText{}, attribute);
}

std::string to_text(const Node& node) {
  std::string out = "node " + name_text(node.name) + ": " + node.info().name + "(";
  out += joined(node.inputs, [](const Value* v) { return v ? name_text(v->name) : std::string("_"); }) + ")";
  if (!node.attributes.empty())
    out += " {" + joined(node.attributes, [](const auto& a) { return a.first + "=" + attribute_text(a.second); }) + "}";
  return out + " -> " + joined(node.outputs, [](const Value* v) { return v ? typed(*v) : std::string("_"); });
}

std::string to_text(const Graph& graph) {
  std::string out = "graph " + name_text(graph.name) + ", opset " + std::to_string(graph.opset) + "\n";
  for (const auto& [key, value] : graph.metadata) out += "metadata " + name_text(key) + " = " + quoted(value) + "\n";
  for (const Value* value : graph.inputs()) out += "input " + typed(*value) + "\n";
  for (const Value* value : graph.constants())
    out += "constant " + typed(*value) + content(*value->constant) + (value->trainable ? ", trainable" : "") + "\n";
  for (const auto& node : graph.nodes()) out += to_text(*node) + "\n";
  for (const Value* value : graph.outputs()) out += "output " + typed(*value) + "\n";
  return out;
}

}  // namespace octet::ir
