#include "onnx/expand_qlinear.h"

#include <unordered_map>

namespace octet::onnx {
namespace {

using ir::Tensor;
using Nodes = std::vector<SourceNode>;

// A quantized tensor: places of codes, scale and zero point among the inputs.
struct Triple {
  size_t codes, scale, zero_point;
};

class Expansion {
 public:
  Expansion(const SourceNode& node, UpgradeContext& context) : node_(node), context_(context) {}

  std::string input(size_t i) const {
    if (!node_.has_input(i)) fail("its input ", i, " is absent");
    return node_.inputs[i];
  }

  std::string dequantize(const Triple& t, int64_t axis = 0) {
    const std::string& zero = node_.has_input(t.zero_point) ? node_.inputs[t.zero_point] : std::string();
    return dequantize(input(t.codes), input(t.scale), zero, axis);
  }

  // The bias of a QLinear operator: int32 in units of the product of two scales.
  std::string dequantize_bias(size_t bias, size_t x_scale, size_t w_scale, float alpha = 1) {
    const auto codes = context_.constant(input(bias)), x = context_.constant(input(x_scale)),
               w = context_.constant(input(w_scale));
    if (!codes || !x || !w) fail("its bias and scales are computed by the network; they should be constants");
    if (codes->data_type() != ir::DataType::kInt32) fail("its bias '", input(bias), "' should be int32");
    if (x->size() != 1) fail("the scale '", input(x_scale), "' has ", x->size(), " elements, expected one");
    std::vector<float> scales = w->to_floats();
    for (float& s : scales) s = alpha * x->to_floats()[0] * s;
    const ir::Shape shape = scales.size() == 1 ? ir::Shape() : ir::Shape{static_cast<int64_t>(scales.size())};
    const int64_t last = static_cast<int64_t>(codes->shape().size()) - 1;
    return dequantize(input(bias), context_.add_constant(input(bias) + "_scale", Tensor::of<float>(shape, scales)), "",
                      std::max<int64_t>(last, 0));
  }

  // The float operator, with the attributes of the node but those named.
  std::string apply(const std::string& op, std::vector<std::string> inputs,
                    std::initializer_list<const char*> without = {}) {
    SourceNode next{op,
                    context_.fresh_name(node_.name + "_" + op),
                    std::move(inputs),
                    {context_.fresh_name(node_.outputs.at(0) + "_real")},
                    node_.attributes};
    for (const char* key : without) next.attributes.erase(key);
    nodes_.push_back(std::move(next));
    return nodes_.back().outputs[0];
  }

  Nodes quantized(const std::string& real, size_t scale, size_t zero_point) {
    SourceNode last{"QuantizeLinear", node_.name, {real, input(scale)}, node_.outputs, {}};
    if (node_.has_input(zero_point)) last.inputs.push_back(node_.inputs[zero_point]);
    nodes_.push_back(std::move(last));
    return std::move(nodes_);
  }

  // Without a quantizer behind it the operator itself is the last node.
  Nodes unquantized() {
    nodes_.back().name = node_.name, nodes_.back().outputs = node_.outputs;
    return std::move(nodes_);
  }

  int64_t int_attribute(const char* key, int64_t fallback) const {
    const auto it = node_.attributes.find(key);
    if (it == node_.attributes.end()) return fallback;
    const int64_t* value = std::get_if<int64_t>(&it->second);
    if (!value) fail("attribute '", key, "' should be an integer");
    return *value;
  }

  void require_channels_first() const {
    if (int_attribute("channels_last", 0) != 0)
      fail("channels_last=1 is not supported; export the model with its channels first (NCHW)");
  }

  const SourceNode& node() const { return node_; }
  UpgradeContext& context() { return context_; }

 private:
  std::string dequantize(const std::string& codes, const std::string& scale, const std::string& zero, int64_t axis) {
    SourceNode next{"DequantizeLinear",
                    context_.fresh_name(codes + "_DequantizeLinear"),
                    {codes, scale},
                    {context_.fresh_name(codes + "_real")},
                    {{"axis", axis}}};
    if (!zero.empty()) next.inputs.push_back(zero);
    nodes_.push_back(std::move(next));
    return nodes_.back().outputs[0];
  }

  const SourceNode& node_;
  UpgradeContext& context_;
  Nodes nodes_;
};

size_t rank_of(const std::string& value, UpgradeContext& context) {
  const auto shape = context.shape(value);
  if (!shape) fail("the rank of its input '", value, "' is unknown");
  return shape->size();
}

Nodes conv(Expansion& e) {
  std::vector<std::string> inputs{e.dequantize({0, 1, 2}), e.dequantize({3, 4, 5})};
  if (e.node().has_input(8)) inputs.push_back(e.dequantize_bias(8, 1, 4));
  return e.quantized(e.apply("Conv", inputs), 6, 7);
}

Nodes matmul(Expansion& e) {
  const int64_t columns = static_cast<int64_t>(rank_of(e.input(3), e.context())) - 1;
  const std::string a = e.dequantize({0, 1, 2}), b = e.dequantize({3, 4, 5}, columns);
  return e.quantized(e.apply("MatMul", {a, b}), 6, 7);
}

Nodes gemm(Expansion& e) {
  const int64_t columns = e.int_attribute("transB", 0) != 0 ? 0 : 1;
  std::vector<std::string> inputs{e.dequantize({0, 1, 2}), e.dequantize({3, 4, 5}, columns)};
  float alpha = 1;
  if (const auto it = e.node().attributes.find("alpha"); it != e.node().attributes.end()) {
    const float* value = std::get_if<float>(&it->second);
    if (!value) fail("attribute 'alpha' should be a float");
    alpha = *value;
  }
  if (e.node().has_input(6)) inputs.push_back(e.dequantize_bias(6, 1, 4, alpha));
  const std::string y = e.apply("Gemm", inputs);
  return e.node().has_input(7) ? e.quantized(y, 7, 8) : e.unquantized();
}

Nodes two_operands(Expansion& e, const char* op) {
  const std::string a = e.dequantize({0, 1, 2}), b = e.dequantize({3, 4, 5});
  return e.quantized(e.apply(op, {a, b}), 6, 7);
}

Nodes one_operand(Expansion& e, const char* op) {
  e.require_channels_first();
  return e.quantized(e.apply(op, {e.dequantize({0, 1, 2})}, {"channels_last"}), 3, 4);
}

Nodes concat(Expansion& e) {
  const size_t count = e.node().inputs.size();
  if (count < 5 || count % 3 != 2)
    fail("has ", count, " inputs, expected a scale, a zero point and triples of tensors");
  std::vector<std::string> inputs;
  for (size_t i = 2; i < count; i += 3) inputs.push_back(e.dequantize({i, i + 1, i + 2}));
  return e.quantized(e.apply("Concat", inputs), 0, 1);
}

// The attribute "opset" says which Softmax it is: until 12 all axes from `axis` on were normalized together.
Nodes softmax(Expansion& e) {
  const auto opset = static_cast<int>(e.int_attribute("opset", 13));
  SourceNode real{"Softmax",
                  e.context().fresh_name(e.node().name + "_Softmax"),
                  {e.dequantize({0, 1, 2})},
                  {e.context().fresh_name(e.node().outputs.at(0) + "_real")},
                  {}};
  if (e.node().attributes.count("axis")) real.attributes["axis"] = e.int_attribute("axis", -1);
  const std::string y = real.outputs[0];
  // Its rank is only known of the codes, whose shape is the same.
  const size_t rank = rank_of(e.input(0), e.context());
  const int64_t axis = e.int_attribute("axis", opset >= 13 ? -1 : 1);
  const bool last = axis == -1 || axis + 1 == static_cast<int64_t>(rank);
  if (opset < 13 && !last)
    fail("normalizes over all axes from ", axis, " on, as before opset 13; quantize a model of opset 13 or newer");
  real.attributes["axis"] = axis;
  Nodes before = e.quantized(y, 3, 4);
  before.insert(before.end() - 1, std::move(real));
  return before;
}

using Rule = Nodes (*)(Expansion&);

const std::unordered_map<std::string, Rule>& expansion_rules() {
  static const std::unordered_map<std::string, Rule> table = {
      {"QLinearConv", conv},
      {"QLinearMatMul", matmul},
      {"QGemm", gemm},
      {"QLinearAdd", [](Expansion& e) { return two_operands(e, "Add"); }},
      {"QLinearMul", [](Expansion& e) { return two_operands(e, "Mul"); }},
      {"QLinearConcat", concat},
      {"QLinearAveragePool", [](Expansion& e) { return one_operand(e, "AveragePool"); }},
      {"QLinearGlobalAveragePool", [](Expansion& e) { return one_operand(e, "GlobalAveragePool"); }},
      {"QLinearReduceMean", [](Expansion& e) { return one_operand(e, "ReduceMean"); }},
      {"QLinearSigmoid", [](Expansion& e) { return one_operand(e, "Sigmoid"); }},
      {"QLinearLeakyRelu", [](Expansion& e) { return one_operand(e, "LeakyRelu"); }},
      {"QLinearSoftmax", softmax},
  };
  return table;
}

}  // namespace

bool is_qlinear(const std::string& domain, const std::string& op) {
  const bool standard = op == "QLinearConv" || op == "QLinearMatMul";
  if (domain.empty() || domain == "ai.onnx") return standard;
  if (domain != "com.microsoft") return false;
  return (expansion_rules().count(op) > 0 && !standard) || op == "QuantizeLinear" || op == "DequantizeLinear";
}

std::string refused_integer_op(const std::string& op) {
  if (op == "DynamicQuantizeLinear" || op == "MatMulInteger" || op == "ConvInteger" || op == "DynamicQuantizeMatMul" ||
      op == "MatMulIntegerToFloat" || op == "DynamicQuantizeLSTM")
    return "the model is quantized dynamically, with scales that are computed while it runs; the engine needs constant "
           "scales, so quantize the float model with 'octet quantize' or statically with calibration data";
  return "";
}

Nodes expand_qlinear(SourceNode node, UpgradeContext& context) {
  const auto it = expansion_rules().find(node.op);
  if (it == expansion_rules().end()) return {std::move(node)};
  if (node.outputs.size() != 1) fail("has ", node.outputs.size(), " outputs, expected 1");
  Expansion e(node, context);
  return it->second(e);
}

}  // namespace octet::onnx
