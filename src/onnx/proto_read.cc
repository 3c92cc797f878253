#include "base/error.h"
#include "onnx/proto.h"
#include "onnx/proto_fields.h"

namespace octet::onnx::proto {
namespace {

std::pair<std::string, std::string> parse_entry(std::string_view bytes) {
  std::pair<std::string, std::string> out;
  for (Fields in(bytes, "StringStringEntryProto"); in.next();) {
    switch (in.tag()) {
      case 1:
        out.first = in.text();
        break;
      case 2:
        out.second = in.text();
        break;
      default:
        in.skip();
    }
  }
  return out;
}

Tensor parse_tensor(std::string_view bytes) {
  Tensor out;
  for (Fields in(bytes, "TensorProto"); in.next();) {
    switch (in.tag()) {
      case 1:
        in.integers(out.dims);
        break;
      case 2:
        out.data_type = in.integer();
        break;
      case 3:
        damaged("a tensor is stored in segments, which is not supported");
      case 4:
        in.fixed(out.float_data);
        break;
      case 5:
        in.integers(out.int32_data);
        break;
      case 7:
        in.integers(out.int64_data);
        break;
      case 8:
        out.name = in.text();
        break;
      case 9:
        out.raw_data = in.bytes();
        break;
      case 10:
        in.fixed(out.double_data);
        break;
      case 13:
        out.external_data.push_back(parse_entry(in.bytes()));
        break;
      case 14:
        out.external = in.integer() == 1;
        break;
      default:
        in.skip();
    }
  }
  return out;
}

constexpr int kMostNested = 16;  // subgraphs
Graph parse_graph(std::string_view bytes, int depth);

Attribute parse_attribute(std::string_view bytes, int depth) {
  Attribute out;
  int64_t seen = kNone;  // files of the first IR versions have no type field
  const auto mark = [&](AttributeType type) { seen = type; };
  for (Fields in(bytes, "AttributeProto"); in.next();) {
    switch (in.tag()) {
      case 1:
        out.name = in.text();
        break;
      case 2:
        out.f = in.number();
        mark(kFloat);
        break;
      case 3:
        out.i = in.integer();
        mark(kInt);
        break;
      case 4:
        out.s = in.text();
        mark(kString);
        break;
      case 5:
        out.t = parse_tensor(in.bytes());
        mark(kTensor);
        break;
      case 6:
        if (depth >= kMostNested) damaged("subgraphs are nested too deeply");
        out.g = std::make_shared<Graph>(parse_graph(in.bytes(), depth + 1));
        mark(kGraph);
        break;
      case 7:
        in.fixed(out.floats);
        mark(kFloats);
        break;
      case 8:
        in.integers(out.ints);
        mark(kInts);
        break;
      case 9:
        out.strings.push_back(in.text());
        mark(kStrings);
        break;
      case 20:
        out.type = in.integer();
        break;
      case 21:
        out.refers_to = in.text();
        break;
      default:
        in.skip();
    }
  }
  if (out.type == kNone) out.type = seen;
  if (out.type == kTensor && !out.t) damaged(str("attribute '", out.name, "' holds no tensor"));
  return out;
}

Node parse_node(std::string_view bytes, int depth) {
  Node out;
  for (Fields in(bytes, "NodeProto"); in.next();) {
    switch (in.tag()) {
      case 1:
        out.inputs.push_back(in.text());
        break;
      case 2:
        out.outputs.push_back(in.text());
        break;
      case 3:
        out.name = in.text();
        break;
      case 4:
        out.op_type = in.text();
        break;
      case 5:
        out.attributes.push_back(parse_attribute(in.bytes(), depth));
        break;
      case 7:
        out.domain = in.text();
        break;
      case 8:
        out.overload = in.text();
        break;
      default:
        in.skip();
    }
  }
  return out;
}

std::vector<Dim> parse_shape(std::string_view bytes) {
  std::vector<Dim> out;
  for (Fields in(bytes, "TensorShapeProto"); in.next();) {
    if (in.tag() != 1) {
      in.skip();
      continue;
    }
    Dim dim;
    for (Fields field(in.bytes(), "Dimension"); field.next();) {
      switch (field.tag()) {
        case 1:
          dim.value = field.integer();
          break;
        case 2:
          dim.parameter = field.text();
          break;
        default:
          field.skip();
      }
    }
    if (!dim.parameter.empty()) dim.value = -1;
    out.push_back(std::move(dim));
  }
  return out;
}

ValueInfo parse_value_info(std::string_view bytes) {
  ValueInfo out;
  for (Fields in(bytes, "ValueInfoProto"); in.next();) {
    if (in.tag() == 1) {
      out.name = in.text();
    } else if (in.tag() == 2) {
      for (Fields type(in.bytes(), "TypeProto"); type.next();) {
        if (type.tag() != 1) {
          type.skip();
          continue;
        }
        out.is_tensor = true;
        for (Fields tensor(type.bytes(), "TypeProto.Tensor"); tensor.next();) {
          switch (tensor.tag()) {
            case 1:
              out.elem_type = tensor.integer();
              break;
            case 2:
              out.shape = parse_shape(tensor.bytes());
              break;
            default:
              tensor.skip();
          }
        }
      }
    } else {
      in.skip();
    }
  }
  return out;
}

Graph parse_graph(std::string_view bytes, int depth) {
  Graph out;
  for (Fields in(bytes, "GraphProto"); in.next();) {
    switch (in.tag()) {
      case 1:
        out.nodes.push_back(parse_node(in.bytes(), depth));
        break;
      case 2:
        out.name = in.text();
        break;
      case 5:
        out.initializers.push_back(parse_tensor(in.bytes()));
        break;
      case 11:
        out.inputs.push_back(parse_value_info(in.bytes()));
        break;
      case 12:
        out.outputs.push_back(parse_value_info(in.bytes()));
        break;
      case 15:
        in.skip();
        ++out.sparse_initializers;
        break;
      default:
        in.skip();
    }
  }
  return out;
}

std::pair<std::string, int64_t> parse_opset(std::string_view bytes) {
  std::pair<std::string, int64_t> out{"", 0};
  for (Fields in(bytes, "OperatorSetIdProto"); in.next();) {
    switch (in.tag()) {
      case 1:
        out.first = in.text();
        break;
      case 2:
        out.second = in.integer();
        break;
      default:
        in.skip();
    }
  }
  return out;
}

Function parse_function(std::string_view bytes) {
  Function out;
  for (Fields in(bytes, "FunctionProto"); in.next();) {
    switch (in.tag()) {
      case 1:
        out.name = in.text();
        break;
      case 4:
        out.inputs.push_back(in.text());
        break;
      case 5:
        out.outputs.push_back(in.text());
        break;
      case 7:
        out.nodes.push_back(parse_node(in.bytes(), 0));
        break;
      case 9:
        out.opset_imports.push_back(parse_opset(in.bytes()));
        break;
      case 10:
        out.domain = in.text();
        break;
      case 11:
        out.defaults.push_back(parse_attribute(in.bytes(), 0));
        break;
      case 13:
        out.overload = in.text();
        break;
      default:
        in.skip();
    }
  }
  return out;
}

}  // namespace

Model parse_model(std::string_view bytes) {
  try {
    Model out;
    for (Fields in(bytes, "ModelProto"); in.next();) {
      switch (in.tag()) {
        case 1:
          out.ir_version = in.integer();
          break;
        case 7:
          out.graph = parse_graph(in.bytes(), 0);
          break;
        case 8:
          out.opset_imports.push_back(parse_opset(in.bytes()));
          break;
        case 14:
          out.metadata.push_back(parse_entry(in.bytes()));
          break;
        case 25:
          out.functions.push_back(parse_function(in.bytes()));
          break;
        default:
          in.skip();
      }
    }
    return out;
  } catch (const protozero::exception& e) {
    damaged(str("its protobuf fields cannot be read (", e.what(), ")"));
  }
}

}  // namespace octet::onnx::proto
