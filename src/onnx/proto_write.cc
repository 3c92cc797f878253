#include <protozero/pbf_writer.hpp>

#include "ir/data_type_codes.h"
#include "onnx/out_model.h"
#include "onnx/proto.h"

namespace octet::onnx {
namespace {

using protozero::pbf_writer;

// The IR version that came with an opset: older readers refuse a newer one.
int64_t ir_version(int opset) {
  return opset <= 14 ? 7 : opset <= 18 ? 8 : opset <= 20 ? 9 : 10;
}

void write_tensor(pbf_writer out, const std::string& name, const ir::Tensor& tensor) {
  out.add_packed_int64(1, tensor.shape().begin(), tensor.shape().end());
  out.add_int32(2, ir::data_type_to_onnx(tensor.data_type()));
  if (!name.empty()) out.add_string(8, name);
  out.add_bytes(9, reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
}

void write_entry(pbf_writer out, const std::string& key, const std::string& value) {
  out.add_string(1, key);
  out.add_string(2, value);
}

void write_attribute(pbf_writer out, const std::string& name, const ir::Attribute& attribute) {
  out.add_string(1, name);
  int type = proto::kNone;
  if (const auto* f = std::get_if<float>(&attribute)) {
    out.add_float(2, *f);
    type = proto::kFloat;
  } else if (const auto* i = std::get_if<int64_t>(&attribute)) {
    out.add_int64(3, *i);
    type = proto::kInt;
  } else if (const auto* s = std::get_if<std::string>(&attribute)) {
    out.add_bytes(4, *s);
    type = proto::kString;
  } else if (const auto* t = std::get_if<ir::Tensor>(&attribute)) {
    write_tensor(pbf_writer(out, 5), "", *t);
    type = proto::kTensor;
  } else if (const auto* floats = std::get_if<std::vector<float>>(&attribute)) {
    for (const float v : *floats) out.add_float(7, v);
    type = proto::kFloats;
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute)) {
    for (const int64_t v : *ints) out.add_int64(8, v);
    type = proto::kInts;
  } else {
    for (const std::string& v : std::get<std::vector<std::string>>(attribute)) out.add_bytes(9, v);
    type = proto::kStrings;
  }
  out.add_enum(20, type);
}

void write_value(pbf_writer out, const OutValue& value);

void write_node(pbf_writer out, const SourceNode& node) {
  for (const std::string& name : node.inputs) out.add_string(1, name);
  for (const std::string& name : node.outputs) out.add_string(2, name);
  out.add_string(3, node.name);
  out.add_string(4, node.op);
  for (const auto& [name, attribute] : node.attributes) write_attribute(pbf_writer(out, 5), name, attribute);
  for (const SourceBranch& branch : node.branches) {
    pbf_writer attribute(out, 5);
    attribute.add_string(1, branch.key);
    {
      pbf_writer graph(attribute, 6);
      for (const SourceNode& inner : branch.nodes) write_node(pbf_writer(graph, 1), inner);
      graph.add_string(2, branch.key);
      for (const auto& [name, type] : branch.inputs) write_value(pbf_writer(graph, 11), {name, type});
      for (const auto& [name, type] : branch.outputs) write_value(pbf_writer(graph, 12), {name, type});
    }
    attribute.add_enum(20, proto::kGraph);
  }
}

void write_value(pbf_writer out, const OutValue& value) {
  out.add_string(1, value.name);
  pbf_writer type(out, 2);
  pbf_writer tensor(type, 1);
  tensor.add_int32(1, ir::data_type_to_onnx(value.type.data_type));
  if (!value.type.shape) return;
  if (value.type.shape->empty()) return tensor.add_message(2, std::string());  // a nested writer drops what is empty
  pbf_writer shape(tensor, 2);
  for (size_t i = 0; i < value.type.shape->size(); ++i) {
    const int64_t size = (*value.type.shape)[i];
    pbf_writer dim(shape, 1);
    if (size != ir::kDynamic) {
      dim.add_int64(1, size);
    } else if (!value.open_sizes) {
      dim.add_string(2, i == 0 ? std::string("batch") : str(value.name, "_dim", i));
    } else {
      dim.add_string(2, str(value.name, "_size", i));
    }
  }
}

}  // namespace

std::string serialize(const OutModel& model) {
  size_t bytes = 0;
  for (const auto& [name, tensor] : model.initializers) bytes += tensor.bytes().size() + name.size() + 64;
  if (bytes > 2000000000)
    fail("the constants of graph '", model.graph_name, "' take ", bytes, " bytes; an ONNX file may have 2 GB");
  std::string out;
  out.reserve(bytes + 4096);
  pbf_writer message(out);
  message.add_int64(1, ir_version(model.opset));
  message.add_string(2, "octet");
  {
    pbf_writer graph(message, 7);
    for (const SourceNode& node : model.nodes) write_node(pbf_writer(graph, 1), node);
    graph.add_string(2, model.graph_name);
    for (const auto& [name, tensor] : model.initializers) write_tensor(pbf_writer(graph, 5), name, tensor);
    for (const OutValue& value : model.inputs) write_value(pbf_writer(graph, 11), value);
    for (const OutValue& value : model.outputs) write_value(pbf_writer(graph, 12), value);
    for (const OutValue& value : model.values) write_value(pbf_writer(graph, 13), value);
  }
  {
    pbf_writer opset(message, 8);
    opset.add_string(1, "");
    opset.add_int64(2, model.opset);
  }
  for (const auto& [key, value] : model.metadata) write_entry(pbf_writer(message, 14), key, value);
  return out;
}

}  // namespace octet::onnx
