#include "dense/code_products.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "dense/operators.h"

namespace octet::dense {
namespace {

constexpr int64_t kGreatestProduct = 255 * 128;  // of two codes, whatever their zero point

// Where values come from.
class Sources {
 public:
  explicit Sources(const Program& program) : program_(program) {
    for (const auto& [value, tensor] : program.constants) constants_.emplace(value, &tensor);
    for (size_t i = 0; i < program.operations.size(); ++i)
      for (const int v : program.operations[i].outputs) makers_.emplace(v, i);
  }

  const Tensor* constant(int value) const {
    const auto it = constants_.find(value);
    return it == constants_.end() ? nullptr : it->second;
  }
  const Operation* maker(int value) const {
    const auto it = makers_.find(value);
    return it == makers_.end() ? nullptr : &program_.operations[it->second];
  }
  // What makes `value`, where that is a `op` of `value`.
  const Operation* maker(int value, const char* op) const {
    const Operation* found = maker(value);
    return found && found->op == op ? found : nullptr;
  }

 private:
  const Program& program_;
  std::unordered_map<int, const Tensor*> constants_;
  std::unordered_map<int, size_t> makers_;
};

bool all_are(const std::optional<std::vector<int64_t>>& list, int64_t value) {
  return !list || std::all_of(list->begin(), list->end(), [=](int64_t v) { return v == value; });
}

// Every element of the output is made of one of the input's: windows that touch and do not overlap.
bool windows_touch(const AttributeReader& a, const Shape& weights) {
  const auto strides = a.ints_attribute("strides");
  return strides == std::vector<int64_t>{weights[2], weights[3]} && all_are(a.ints_attribute("pads"), 0) &&
         all_are(a.ints_attribute("output_padding"), 0) && all_are(a.ints_attribute("dilations"), 1) &&
         !a.attribute("output_shape") && a.string_attribute("auto_pad", "NOTSET") == "NOTSET" &&
         a.int_attribute("group", 1) == 1;
}

// The axis of the weights' output channels; nothing where the operation is none of those that are computed on codes.
std::optional<int> channel_axis(const Operation& operation, const Shape& weights) {
  const AttributeReader a(operation);
  if (operation.op == "Conv" && weights.size() == 4) return 0;
  if (operation.op == "ConvTranspose" && weights.size() == 4 && windows_touch(a, weights)) return 1;
  if (operation.op == "MatMul" && weights.size() == 2) return 1;
  if (operation.op == "Gemm" && weights.size() == 2 && a.int_attribute("transA", 0) == 0 &&
      a.float_attribute("alpha", 1) == 1 && a.float_attribute("beta", 1) == 1)
    return a.int_attribute("transB", 0) != 0 ? 0 : 1;
  return std::nullopt;
}

// How many products one sum is made of.
int64_t summands(const Operation& operation, const Shape& weights, int axis) {
  const int64_t channels = weights[static_cast<size_t>(axis)];
  const int64_t all = element_count(weights) / std::max<int64_t>(channels, 1);
  return operation.op == "ConvTranspose" ? weights[0] : all;
}

// The form of an operation whose weights have this shape.
std::optional<ProductForm> form_of(const Program& program, size_t index, const Shape& weights, const Sources& sources) {
  const Operation& operation = program.operations[index];
  const std::optional<int> axis = channel_axis(operation, weights);
  if (!axis || element_count(weights) == 0) return std::nullopt;
  const int64_t most = std::numeric_limits<int32_t>::max() / kGreatestProduct;
  if (summands(operation, weights, *axis) > most) return std::nullopt;
  ProductForm form{.operation = index, .x = operation.inputs[0], .weights = operation.inputs[1], .channel_axis = *axis};
  if (operation.inputs.size() < 3 || operation.inputs[2] < 0) return form;
  form.bias = operation.inputs[2];
  const Tensor* bias = sources.constant(form.bias);
  const int64_t channels = weights[static_cast<size_t>(*axis)];
  if (!bias || bias->type() != Type::kFloat || bias->rank() != 1 || bias->size() != channels) return std::nullopt;
  return form;
}

bool may_be_product(const Operation& operation) {
  return (operation.op == "Conv" || operation.op == "ConvTranspose" || operation.op == "Gemm" ||
          operation.op == "MatMul") &&
         operation.outputs.size() == 1;
}

// Of a QuantizeLinear or DequantizeLinear with one scale, a constant.
std::optional<CodeParams> params_of(const Operation& operation, const Sources& sources) {
  const Tensor* scale = sources.constant(operation.inputs[1]);
  const bool has_zero = operation.inputs.size() > 2 && operation.inputs[2] >= 0;
  const Tensor* zero = has_zero ? sources.constant(operation.inputs[2]) : nullptr;
  if (!scale || scale->type() != Type::kFloat || scale->size() != 1 || !zero || zero->size() != 1) return std::nullopt;
  CodeParams out{.scale = scale->values<float>()[0], .zero_point = 0, .type = zero->type()};
  if (out.type == Type::kInt8)
    out.zero_point = zero->values<int8_t>()[0];
  else if (out.type == Type::kUint8)
    out.zero_point = zero->values<uint8_t>()[0];
  else
    return std::nullopt;
  return out.scale > 0 && out.scale <= std::numeric_limits<float>::max() ? std::optional(out) : std::nullopt;
}

// The scales of weights behind a DequantizeLinear; empty where they are not one for each channel, or have zero points.
std::vector<float> scales_of_weights(const Operation& dequantize, const Shape& shape, int axis,
                                     const Sources& sources) {
  const Tensor* scale = sources.constant(dequantize.inputs[1]);
  if (!scale || scale->type() != Type::kFloat) return {};
  if (dequantize.inputs.size() > 2 && dequantize.inputs[2] >= 0) {
    const Tensor* zero = sources.constant(dequantize.inputs[2]);
    if (!zero || zero->type() != Type::kInt8) return {};
    if (std::ranges::any_of(zero->values<int8_t>(), [](int8_t z) { return z != 0; })) return {};
  }
  const auto given = scale->values<float>();
  if (!std::ranges::all_of(given, [](float s) { return s > 0 && s <= std::numeric_limits<float>::max(); })) return {};
  const int64_t channels = shape[static_cast<size_t>(axis)];
  if (given.size() == 1) return std::vector<float>(static_cast<size_t>(channels), given[0]);
  const int64_t stated = AttributeReader(dequantize).int_attribute("axis", 1);
  const int64_t of_file = stated < 0 ? stated + static_cast<int64_t>(shape.size()) : stated;
  if (of_file != axis || scale->rank() != 1 || scale->size() != channels) return {};
  return {given.begin(), given.end()};
}

std::optional<CodeProduct> code_product(const Program& program, size_t index, const Sources& sources) {
  const Operation& operation = program.operations[index];
  const Operation* x = sources.maker(operation.inputs[0], "DequantizeLinear");
  const Operation* w = sources.maker(operation.inputs[1], "DequantizeLinear");
  const Operation* quantize = x ? sources.maker(x->inputs[0], "QuantizeLinear") : nullptr;
  const Tensor* codes = w ? sources.constant(w->inputs[0]) : nullptr;
  if (!quantize || !codes || codes->type() != Type::kInt8) return std::nullopt;
  const std::optional<CodeParams> params = params_of(*x, sources);
  if (!params || params != params_of(*quantize, sources)) return std::nullopt;
  const std::optional<ProductForm> form = form_of(program, index, codes->shape(), sources);
  if (!form) return std::nullopt;
  CodeProduct out{.form = *form, .params = *params, .weight_scales = {}};
  out.form.x = quantize->inputs[0], out.form.weights = w->inputs[0];
  out.weight_scales = scales_of_weights(*w, codes->shape(), form->channel_axis, sources);
  if (out.weight_scales.empty()) return std::nullopt;
  return out;
}

// Adds values, constants and operations.
class Quantizer {
 public:
  explicit Quantizer(Program& program) : program_(program) {}

  int dequantized_weights(int value, const CodedWeights& coded, int axis) {
    const std::string name = program_.values[static_cast<size_t>(value)];
    const auto channels = static_cast<int64_t>(coded.scales.size());
    const std::vector<int8_t> zeros(coded.scales.size(), 0);
    Operation operation{"DequantizeLinear", name + "/dequantize", {}, {}, {{"axis", int64_t{axis}}}, {}};
    operation.inputs = {constant(name + "/codes", coded.codes),
                        constant(name + "/scale", memory_.of<float>({channels}, coded.scales)),
                        constant(name + "/zero_point", memory_.of<int8_t>({channels}, zeros))};
    return add(std::move(operation), name + "/dequantized");
  }

  int dequantized(int value, const CodeParams& params) {
    const std::string name = program_.values[static_cast<size_t>(value)];
    const int scale = constant(name + "/scale", memory_.of<float>({}, std::span(&params.scale, 1)));
    Tensor zero = memory_.make(params.type, {});
    *zero.data() = static_cast<std::byte>(params.zero_point);
    const int zero_point = constant(name + "/zero_point", std::move(zero));
    const int codes =
        add({"QuantizeLinear", name + "/quantize", {value, scale, zero_point}, {}, {}, {}}, name + "/codes");
    return add({"DequantizeLinear", name + "/dequantize", {codes, scale, zero_point}, {}, {}, {}},
               name + "/dequantized");
  }

  std::vector<Operation> operations;

 private:
  int value(std::string name) {
    program_.values.push_back(std::move(name));
    return static_cast<int>(program_.values.size()) - 1;
  }
  int constant(std::string name, Tensor tensor) {
    program_.constants.emplace_back(value(std::move(name)), std::move(tensor));
    return program_.constants.back().first;
  }
  int add(Operation operation, std::string name) {
    operation.outputs = {value(std::move(name))};
    operations.push_back(std::move(operation));
    return operations.back().outputs[0];
  }

  Program& program_;
  Memory memory_{std::numeric_limits<int64_t>::max()};
};

}  // namespace

std::vector<ProductForm> float_products(const Program& program) {
  const Sources sources(program);
  std::vector<ProductForm> out;
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& operation = program.operations[i];
    if (!may_be_product(operation) || !sources.maker(operation.inputs[0])) continue;
    const Tensor* weights = sources.constant(operation.inputs[1]);
    if (!weights || weights->type() != Type::kFloat) continue;
    if (const auto form = form_of(program, i, weights->shape(), sources)) out.push_back(*form);
  }
  return out;
}

std::vector<CodeProduct> code_products(const Program& program) {
  const Sources sources(program);
  std::vector<CodeProduct> out;
  for (size_t i = 0; i < program.operations.size(); ++i)
    if (may_be_product(program.operations[i]))
      if (auto product = code_product(program, i, sources)) out.push_back(std::move(*product));
  return out;
}

void quantize_products(Program& program, const std::map<int, CodeParams>& params,
                       const std::map<int, CodedWeights>& weights) {
  std::map<size_t, ProductForm> forms;
  for (const ProductForm& form : float_products(program))
    if (weights.count(form.weights) > 0) forms.emplace(form.operation, form);
  Quantizer quantizer(program);
  std::map<int, int> dequantized;  // by what they were
  const std::vector<Operation> before = std::move(program.operations);
  for (size_t i = 0; i < before.size(); ++i) {
    Operation operation = before[i];
    if (const auto it = forms.find(i); it != forms.end()) {
      const ProductForm& form = it->second;
      if (dequantized.count(form.x) == 0) dequantized[form.x] = quantizer.dequantized(form.x, params.at(form.x));
      if (dequantized.count(form.weights) == 0)
        dequantized[form.weights] =
            quantizer.dequantized_weights(form.weights, weights.at(form.weights), form.channel_axis);
      operation.inputs[0] = dequantized[form.x], operation.inputs[1] = dequantized[form.weights];
    }
    quantizer.operations.push_back(std::move(operation));
  }
  program.operations = std::move(quantizer.operations);
  drop_unread(program);
  validate(program);
}

void dequantize_products(Program& program) {
  const std::vector<CodeProduct> products = code_products(program);
  std::map<int, int> floats;  // by the codes of weights
  Memory memory(std::numeric_limits<int64_t>::max());
  for (const CodeProduct& product : products) {
    const ProductForm& form = product.form;
    if (floats.count(form.weights) == 0) {
      const Tensor codes =
          std::ranges::find(program.constants, form.weights, [](const auto& c) { return c.first; })->second;
      Tensor values = memory.make<float>(codes.shape());
      const int64_t inner = count_of(codes.shape(), static_cast<size_t>(form.channel_axis) + 1, codes.rank());
      const auto channels = static_cast<int64_t>(product.weight_scales.size());
      for (int64_t i = 0; i < codes.size(); ++i) {
        const auto at = static_cast<size_t>(i), channel = static_cast<size_t>(i / inner % channels);
        values.mutable_values<float>()[at] =
            static_cast<float>(codes.values<int8_t>()[at]) * product.weight_scales[channel];
      }
      floats[form.weights] = static_cast<int>(program.values.size());
      program.values.push_back(program.values[static_cast<size_t>(form.weights)] + "/values");
      program.constants.emplace_back(floats[form.weights], std::move(values));
    }
    Operation& operation = program.operations[form.operation];
    operation.inputs[0] = form.x, operation.inputs[1] = floats[form.weights];
  }
  drop_unread(program);
}

}  // namespace octet::dense
