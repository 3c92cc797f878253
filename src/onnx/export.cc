#include "onnx/export.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/files.h"
#include "base/name_lines.h"
#include "dense/program.h"
#include "ir/axes.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "ir/verify.h"
#include "numerics/quantize.h"
#include "onnx/downgrade.h"
#include "onnx/fuse_qdq.h"
#include "onnx/narrow.h"
#include "onnx/out_model.h"
#include "onnx/program_nodes.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::Node;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

class Exporter {
 public:
  Exporter(const ir::Graph& graph, const ExportOptions& options) : graph_(graph), options_(options) {
    for (const Value* value : graph.values()) names_.insert(value->name);
    for (const auto& node : graph.nodes()) names_.insert(node->name);
  }

  OutModel run() {
    out_.opset = options_.opset;
    out_.graph_name = graph_.name;
    out_.metadata = graph_.metadata;
    const DowngradeContext context{options_.opset,
                                   [&](const std::string& hint, Tensor t) { return add_constant(hint, std::move(t)); },
                                   [&](const std::string& hint) { return fresh_name(hint); }};
    for (const auto& node : graph_.nodes()) {
      if (node->kind == OpKind::kFakeQuantize) {
        add_fake_quantize(*node);
        continue;
      }
      const std::string bias = options_.onnxruntime_forms ? add_integer_bias(*node) : "";
      for (SourceNode& made : downgrade(*node, context)) {
        if (!bias.empty()) made.inputs.at(2) = bias;
        add_node(std::move(made));
      }
    }
    add_constants();
    for (const Value* v : graph_.inputs()) out_.inputs.push_back({v->name, v->type});
    const std::set<std::string> open = values_of_open_sizes();
    const auto described = [&](const Value* v) { return OutValue{v->name, v->type, open.contains(v->name)}; };
    if (graph_.program)
      add_program(*graph_.program);
    else
      for (const Value* v : graph_.outputs()) out_.outputs.push_back(described(v));
    if (options_.value_info)
      for (const Value* v : graph_.values())
        if (v->producer && (graph_.program || !graph_.is_output(v))) out_.values.push_back(described(v));
    if (!notes_.empty()) out_.metadata[kFakeQuantizeKey] = notes_;
    std::string trainable;
    for (const Value* v : graph_.constants())
      if (v->trainable) trainable += escape_line(v->name) + "\n";
    if (!trainable.empty()) out_.metadata[kTrainableKey] = trainable;
    return std::move(out_);
  }

 private:
  // Those whose leading size is not known and not the batch: rows of all images' tokens, windows of all images.
  std::set<std::string> values_of_open_sizes() const {
    constexpr int64_t kBatch = 3;
    std::set<std::string> out;
    for (const Value* v : graph_.values())
      if (v->producer && v->type.shape && !v->type.shape->empty() && v->type.shape->front() == ir::kDynamic)
        out.insert(v->name);
    if (out.empty()) return out;
    ir::Graph three = graph_.clone();
    try {
      ir::set_batch(three, kBatch);
    } catch (const UserError&) {
      return out;  // a network that takes no other batch
    }
    for (const Value* v : three.values())
      if (v->type.shape && !v->type.shape->empty() && v->type.shape->front() == kBatch) out.erase(v->name);
    return out;
  }

  void add_program(const dense::Program& program) {
    require(options_.opset >= 19, "opset ", options_.opset,
            " cannot be written, since sizes of the outputs come up in a run; take 19, 20 or 21");
    ProgramNodes nodes =
        program_nodes(graph_, program, options_.opset, [&](const std::string& hint) { return fresh_name(hint); });
    for (SourceNode& node : nodes.nodes) add_node(std::move(node));
    for (auto& constant : nodes.constants) out_.initializers.push_back(std::move(constant));
    out_.outputs = std::move(nodes.outputs);
  }

  std::string fresh_name(const std::string& hint) {
    std::string name = hint;
    for (int i = 1; !names_.insert(name).second; ++i) name = str(hint, "_", i);
    return name;
  }

  std::string add_constant(const std::string& hint, Tensor tensor) {
    std::string name = fresh_name(hint);
    out_.initializers.emplace_back(name, std::move(tensor));
    return name;
  }

  void add_node(SourceNode node) {
    read_.insert(node.inputs.begin(), node.inputs.end());
    out_.nodes.push_back(std::move(node));
  }

  // Constants that the written nodes read under their own names. Others were replaced, by codes or attributes.
  void add_constants() {
    for (const Value* v : graph_.constants())
      if (!written_.count(v->name) && (read_.count(v->name) || graph_.is_output(v)))
        out_.initializers.emplace_back(v->name, *v->constant);
  }

  // The tensor under the name of `value`, or under a new one where another form of it has taken that name.
  std::string write_as(const Value* value, const Tensor& tensor) {
    for (const auto& [name, known] : forms_[value])
      if (known.data_type() == tensor.data_type() && known.shape() == tensor.shape() &&
          std::equal(known.bytes().begin(), known.bytes().end(), tensor.bytes().begin(), tensor.bytes().end()))
        return name;
    const bool free = !written_.count(value->name) && !read_plain(value);
    const std::string name =
        free ? value->name : fresh_name(value->name + "_" + ir::data_type_name(tensor.data_type()));
    if (free) written_.insert(name);
    out_.initializers.emplace_back(name, tensor);
    forms_[value].emplace_back(name, tensor);
    return name;
  }

  // Some node reads the constant as it is, so its own name must keep its own content.
  bool read_plain(const Value* value) const {
    return graph_.is_output(value) || std::any_of(value->users.begin(), value->users.end(), [&](const Node* user) {
             return user->kind != OpKind::kFakeQuantize || (user->input(0) == value && !writes_codes(*user));
           });
  }

  void add_fake_quantize(const Node& node) {
    // As codes that ONNX Runtime takes: the same numbers, 128 higher.
    const int64_t shift =
        options_.onnxruntime_forms && !node.input(0)->is_constant() && node.get_int("qmin") < 0 ? 128 : 0;
    const int64_t qmin = node.get_int("qmin") + shift, qmax = node.get_int("qmax") + shift;
    const bool is_unsigned = qmin >= 0;
    const int64_t low = is_unsigned ? 0 : -128, high = is_unsigned ? 255 : 127;
    if (qmin < low || qmax > high)
      fail("node '", node.name, "' (FakeQuantize): codes from ", qmin, " to ", qmax, " fit neither int8 nor uint8");
    const Value* x = node.input(0);
    if (x->type.data_type != DataType::kFloat32)
      fail("node '", node.name, "' (FakeQuantize): quantizes ", ir::data_type_name(x->type.data_type),
           "; only float32 is supported");
    const DataType codes = is_unsigned ? DataType::kUInt8 : DataType::kInt8;
    const std::string state = node.get_string("state");
    const std::vector<float> scales = node.input(1)->constant->to_floats();
    const std::vector<int64_t> zeros = node.input(2)->constant->to_ints();
    const auto channels = static_cast<int64_t>(scales.size());
    const size_t rank = x->type.shape ? x->type.shape->size() : 0;
    const int64_t stated = node.get_int("axis", 1);
    const std::optional<size_t> axis =
        channels > 1 && x->type.shape ? ir::normal_axis(node, stated, rank) : ir::find_axis(stated, rank);
    const bool per_axis =
        channels > 1 || (node.input(1)->constant->shape().size() == 1 && axis && (*x->type.shape)[*axis] == 1);
    const ir::Shape shape = per_axis ? ir::Shape{channels} : ir::Shape();
    std::vector<std::byte> zero_bytes;
    for (const int64_t z : zeros) zero_bytes.push_back(static_cast<std::byte>(z + shift));
    ir::Attributes attributes;
    if (per_axis) attributes["axis"] = axis ? static_cast<int64_t>(*axis) : stated;

    const std::string scale = write_as(node.input(1), Tensor::of<float>(shape, scales));
    const std::string zero = write_as(node.input(2), Tensor(codes, shape, std::move(zero_bytes)));
    // The range that a reader without notes takes: fuse_qdq.h has the rule.
    int64_t implied = low;
    std::string quantized;
    if (x->is_constant()) {
      const bool as_codes = writes_codes(node);
      const Tensor q = quantize(node, *x->constant, codes, per_axis && axis ? *axis : 0, as_codes ? qmin : low,
                                as_codes ? qmax : high);
      const bool symmetric = std::all_of(zeros.begin(), zeros.end(), [](int64_t z) { return z == 0; });
      const std::vector<int64_t> values = q.to_ints();
      if (!is_unsigned && symmetric && std::find(values.begin(), values.end(), -128) == values.end()) implied = -127;
      if (as_codes) quantized = write_as(x, q);
    }
    if (quantized.empty()) {
      quantized = fresh_name(node.output()->name + "_quantized");
      const std::string name = fresh_name(node.name + "_QuantizeLinear");
      add_node({"QuantizeLinear", name, {x->name, scale, zero}, {quantized}, attributes});
    }
    add_node({"DequantizeLinear", node.name, {quantized, scale, zero}, {node.output()->name}, attributes});
    if (qmin != implied || qmax != high || state != ir::kFrozen)
      notes_ += str(qmin, " ", qmax, " ", state, " ", escape_line(node.name), "\n");
  }

  // Writes the bias of a quantized product as codes of the accumulator; the name of what they are as floats. Empty:
  // it has none, or no such grid, or one of them does not fit int32.
  std::string add_integer_bias(const Node& node) {
    const Value* bias = node.info().has(ir::trait::kWeighted) ? node.input(2) : nullptr;
    if (!bias || !bias->is_constant() || bias->type.data_type != DataType::kFloat32) return "";
    const Node *activation = quantizer_of(node.input(0)), *weight = quantizer_of(node.input(1));
    if (!activation || !weight || node.kind == OpKind::kConvTranspose) return "";
    const std::vector<float> scale_x = activation->input(1)->constant->to_floats(),
                             scale_w = weight->input(1)->constant->to_floats(), values = bias->constant->to_floats();
    if (scale_x.size() != 1 || (scale_w.size() != 1 && scale_w.size() != values.size())) return "";
    std::vector<int32_t> codes;
    std::vector<float> scales;
    for (size_t c = 0; c < values.size(); ++c) {
      const float w = scale_w[scale_w.size() == 1 ? 0 : c];
      if (!numerics::bias_fits(values[c], scale_x[0], w)) return "";
      codes.push_back(numerics::quantize_bias(values[c], scale_x[0], w));
      scales.push_back(scale_x[0] * w);
    }
    const ir::Shape shape = {static_cast<int64_t>(values.size())};
    // The codes take the name of the floats where nobody else reads those, as weights do: a reader finds the same
    // graph.
    const bool own = bias->users.size() == 1 && !graph_.is_output(bias);
    const std::string codes_name = own ? bias->name : fresh_name(node.name + "_bias"),
                      result = fresh_name(codes_name + "_DequantizeLinear_Output");
    if (own) written_.insert(bias->name);
    out_.initializers.emplace_back(codes_name, Tensor::of<int32_t>(shape, codes));
    add_node(
        {"DequantizeLinear",
         fresh_name(codes_name + "_DequantizeLinear"),
         {codes_name, add_constant(codes_name + "_scale", Tensor::of<float>(shape, scales)),
          add_constant(codes_name + "_zero_point", Tensor::of<int32_t>(shape, std::vector<int32_t>(codes.size())))},
         {result},
         {{"axis", int64_t{0}}}});
    return result;
  }

  // The FakeQuantize that makes a value, unless it merely observes.
  static const Node* quantizer_of(const Value* value) {
    const Node* q = value->producer;
    return ir::is_quantizer(q) && q->get_string("state") != ir::kObserving ? q : nullptr;
  }

  // The constant behind this FakeQuantize is written as codes.
  bool writes_codes(const Node& node) const {
    return options_.quantize_weights && node.input(0)->is_constant() && node.get_string("state") != ir::kObserving;
  }

  // Codes of a constant, in its own shape.
  static Tensor quantize(const Node& node, const Tensor& x, DataType codes, size_t axis, int64_t qmin, int64_t qmax) {
    const std::vector<float> values = x.to_floats(), scales = node.input(1)->constant->to_floats();
    const std::vector<int64_t> zeros = node.input(2)->constant->to_ints();
    size_t inner = 1;
    for (size_t d = axis + 1; d < x.shape().size(); ++d) inner *= static_cast<size_t>(x.shape()[d]);
    std::vector<std::byte> bytes(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t c = i / inner % scales.size();
      const numerics::QuantParams p{scales[c], static_cast<int32_t>(zeros[c]), static_cast<int32_t>(qmin),
                                    static_cast<int32_t>(qmax)};
      bytes[i] = static_cast<std::byte>(numerics::quantize(values[i], p));
    }
    return Tensor(codes, x.shape(), std::move(bytes));
  }

  const ir::Graph& graph_;
  const ExportOptions& options_;
  OutModel out_;
  std::unordered_set<std::string> names_, read_, written_;
  std::unordered_map<const Value*, std::vector<std::pair<std::string, Tensor>>> forms_;
  std::string notes_;
};

}  // namespace

std::string export_bytes(const ir::Graph& graph, const ExportOptions& options) {
  if (options.opset != 13 && (options.opset < 19 || options.opset > 21))
    fail_usage("opset ", options.opset, " cannot be written; supported are 13, 19, 20 and 21");
  if (graph.program && options.half_precision)
    fail_usage("graph '", graph.name, "' cannot be written in float16, since sizes of its outputs come up in a run");
  ir::verify(graph);
  OutModel model = Exporter(graph, options).run();
  if (options.half_precision) narrow(model);
  return serialize(model);
}

void export_model(const ir::Graph& graph, const std::filesystem::path& path, const ExportOptions& options) {
  write_file_atomically(path, export_bytes(graph, options));
}

}  // namespace octet::onnx
