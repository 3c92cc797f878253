#include "ir/ops.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "ir/evaluate_rules.h"
#include "ir/shape_rules.h"

namespace octet::ir {
namespace {

// "name:type=default name:type ..."
std::vector<AttributeInfo> parse_schema(const char* text) {
  std::vector<AttributeInfo> out;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    AttributeInfo info;
    const size_t colon = word.find(':'), equals = word.find('=', colon);
    info.name = word.substr(0, colon);
    info.type = word.substr(colon + 1, equals == std::string::npos ? equals : equals - colon - 1);
    if (equals != std::string::npos) info.default_text = word.substr(equals + 1);
    out.push_back(std::move(info));
  }
  return out;
}

}  // namespace

const std::vector<OpInfo>& all_ops() {
  using namespace trait;
  static const std::vector<OpInfo> table = {
#define OCTET_OP(kind, min_inputs, max_inputs, max_outputs, infer, evaluate, ties, traits, schema) \
  OpInfo{OpKind::k##kind, #kind, min_inputs, max_inputs, max_outputs, parse_schema(schema), infer, evaluate, traits},
#include "ir/ops.def"
#undef OCTET_OP
  };
  return table;
}

const OpInfo& op_info(OpKind kind) {
  return all_ops()[static_cast<size_t>(kind)];
}

const OpInfo* find_op(std::string_view onnx_name) {
  static const std::unordered_map<std::string_view, const OpInfo*> by_name = [] {
    std::unordered_map<std::string_view, const OpInfo*> out;
    for (const OpInfo& info : all_ops()) out[info.name] = &info;
    return out;
  }();
  const auto it = by_name.find(onnx_name);
  return it == by_name.end() ? nullptr : it->second;
}

std::string supported_op_list() {
  std::vector<std::string> names;
  for (const OpInfo& info : all_ops()) names.push_back(info.name);
  std::sort(names.begin(), names.end());
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

const AttributeInfo* OpInfo::find_attribute(std::string_view attribute_name) const {
  for (const AttributeInfo& a : attributes)
    if (a.name == attribute_name) return &a;
  return nullptr;
}

}  // namespace octet::ir
