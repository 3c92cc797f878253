// The third part of the builder: operators on constants that a DequantizeLinear makes. tf2onnx, pruners and exporters
// of folded batch norms leave them between the weights and their layer.
#include <algorithm>

#include "ir/axes.h"
#include "ir/data_type_codes.h"
#include "onnx/builder.h"

namespace octet::onnx {
namespace {

using ir::Tensor;

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.data_type() == b.data_type() &&
         std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

int64_t axis_of(const SourceNode& node) {
  const auto it = node.attributes.find("axis");
  return it != node.attributes.end() && std::holds_alternative<int64_t>(it->second) ? std::get<int64_t>(it->second) : 1;
}

// The DequantizeLinear reads the codes of the QuantizeLinear as it made them.
bool same_parameters(const QuantizedConstant& q, const QuantizedConstant& dq) {
  if (!same_bytes(q.scale, dq.scale)) return false;
  const auto zeros = [](const QuantizedConstant& c) {
    return c.zero_point ? c.zero_point->to_ints() : std::vector<int64_t>(static_cast<size_t>(c.scale.size()), 0);
  };
  const size_t rank = q.data.shape().size();
  return zeros(q) == zeros(dq) && (q.scale.size() == 1 || ir::find_axis(q.axis, rank) == ir::find_axis(dq.axis, rank));
}

}  // namespace

SourceNode Builder::with_zero_point(SourceNode node) {
  const bool dequantize = node.op == "DequantizeLinear";
  if ((!dequantize && node.op != "QuantizeLinear") || node.inputs.size() < 2 || node.has_input(2)) return node;
  const std::optional<ir::Shape> shape = this->shape(node.inputs[1]);
  ir::DataType type = dequantize ? data_type(node.inputs[0]) : ir::DataType::kUInt8;
  if (const auto it = node.attributes.find("output_dtype"); !dequantize && it != node.attributes.end()) {
    const int64_t* code = std::get_if<int64_t>(&it->second);
    if (!code) fail("attribute 'output_dtype' should be an integer");
    if (*code != 0) type = ir::data_type_from_onnx(*code);
  }
  const bool codes = type == ir::DataType::kInt8 || type == ir::DataType::kUInt8 || type == ir::DataType::kInt32;
  if (!codes || !shape || !ir::is_static(*shape) || shape->size() > 1 || ir::element_count(*shape) > (1 << 20))
    return node;
  const size_t bytes = static_cast<size_t>(ir::element_count(*shape)) * ir::data_type_size(type);
  node.inputs.resize(3);
  node.inputs[2] = add_constant(node.outputs.at(0) + "_zero_point",
                                Tensor(type, *shape, std::vector<std::byte>(bytes, std::byte{0})));
  return node;
}

void Builder::note_quantized(const SourceNode& node) {
  const bool dequantize = node.op == "DequantizeLinear";
  if ((!dequantize && node.op != "QuantizeLinear") || node.inputs.size() < 2 || node.outputs.size() != 1) return;
  const auto known = [&](size_t i) {
    const Entry& e = entry(node.inputs[i]);
    return e.initializer || e.constant;
  };
  if (!known(1) || (node.has_input(2) && !known(2))) return;
  Entry& source = entry(node.inputs[0]);
  if (!known(0) && !(dequantize && source.codes_of)) return;
  const Tensor& scale = tensor_of(entry(node.inputs[1]));
  const Tensor* zero = node.has_input(2) ? &tensor_of(entry(node.inputs[2])) : nullptr;
  const Tensor data = known(0) ? tensor_of(source) : source.codes_of->codes();
  if (dequantize == (data.data_type() == ir::DataType::kFloat32)) return;
  std::optional<QuantizedConstant> made = quantized_constant(data, scale, zero, axis_of(node));
  if (!made) return;
  Entry& out = entry(node.outputs[0]);
  if (!dequantize) {
    out.codes_of = std::move(made);
  } else if (source.codes_of && same_parameters(*source.codes_of, *made)) {
    out.dequantized = source.codes_of;  // the floats stay what training goes on with
  } else {
    out.dequantized = std::move(made);
  }
}

bool Builder::add_behind_dequantize(const SourceNode& node) {
  if (!can_fold(node.op)) return false;
  FoldRequest request{node.op, node.name, node.attributes, {}, node.outputs.size()};
  std::vector<Tensor> values(node.inputs.size());
  std::vector<const QuantizedConstant*> quantized(node.inputs.size(), nullptr);
  bool any = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    request.inputs.push_back(nullptr);
    if (node.inputs[i].empty()) continue;
    Entry& e = entry(node.inputs[i]);
    if (e.dequantized) {
      quantized[i] = &*e.dequantized;
    } else if (e.codes_of) {
      values[i] = e.codes_of->codes();
      request.inputs[i] = &values[i];
    } else if (e.initializer || e.constant) {
      request.inputs[i] = &tensor_of(e);
    } else {
      return false;
    }
    any = any || e.dequantized || e.codes_of;
  }
  if (!any) return false;
  if (std::any_of(quantized.begin(), quantized.end(), [](const auto* c) { return c != nullptr; })) {
    if (const auto outputs = moved(request, quantized, budget_)) {
      add_quantized(node, *outputs);
      return true;
    }
  }
  for (size_t i = 0; i < quantized.size(); ++i) {
    if (!quantized[i]) continue;
    budget_.charge(4 * quantized[i]->data.size());
    values[i] = quantized[i]->values();
    request.inputs[i] = &values[i];
  }
  const auto results = fold(request, budget_);
  if (!results) return false;
  if (results->size() != node.outputs.size()) fail("has ", node.outputs.size(), " outputs, expected ", results->size());
  for (size_t i = 0; i < results->size(); ++i) define(node.outputs[i]).constant = (*results)[i];
  return true;
}

void Builder::add_quantized(const SourceNode& node, const std::vector<QuantizedConstant>& outputs) {
  if (outputs.size() != node.outputs.size()) fail("has ", node.outputs.size(), " outputs, expected ", outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const QuantizedConstant& c = outputs[i];
    const std::string& name = node.outputs[i];
    SourceNode dequantize{"DequantizeLinear", i == 0 ? node.name : fresh_name(name), {}, {name}, {{"axis", c.axis}}};
    dequantize.inputs = {add_constant(name + "_moved", c.data), add_constant(name + "_scale", c.scale)};
    if (c.zero_point) dequantize.inputs.push_back(add_constant(name + "_zero_point", *c.zero_point));
    if (c.data.data_type() == ir::DataType::kFloat32) {
      SourceNode quantize = dequantize;
      quantize.op = "QuantizeLinear", quantize.name = fresh_name(node.name + "_quantize");
      quantize.outputs = {fresh_name(name + "_codes")};
      add(quantize);
      dequantize.inputs[0] = quantize.outputs[0];
    }
    add(dequantize);
  }
}

}  // namespace octet::onnx
