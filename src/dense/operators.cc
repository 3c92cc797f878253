#include "dense/operators.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace octet::dense {
namespace {

const std::unordered_map<std::string_view, Operator>& table() {
  static const std::unordered_map<std::string_view, Operator> rows = [] {
    std::unordered_map<std::string_view, Operator> all;
    for (const auto& group :
         {elementwise_operators(), activation_operators(), choice_operators(), reduction_operators(),
          gather_operators(), scatter_operators(), selection_operators(), shape_operators(), movement_operators(),
          region_operators(), sampling_operators(), resize_operators(), product_operators(), quantization_operators(),
          convolution_operators(), pooling_operators(), normalization_operators(), recurrent_operators()})
      for (const Operator& row : group) OCTET_CHECK(all.emplace(row.name, row).second, row.name);
    return all;
  }();
  return rows;
}

// Of ONNX's numbers of types.
Type type_of_code(int64_t code) {
  switch (code) {
    case 1:
      return Type::kFloat;
    case 6:
      return Type::kInt32;
    case 7:
      return Type::kInt64;
    case 9:
      return Type::kBool;
    default:
      fail("the type number ", code,
           " is not supported; those of a program behind the plan are float32, int32, int64 "
           "and bool");
  }
}

template <typename T>
const T* attribute_as(const Attributes& attributes, const char* key, const char* what) {
  const auto it = attributes.find(key);
  if (it == attributes.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  if (!value) fail("attribute '", key, "' should be ", what);
  return value;
}

// Of what a QuantizeLinear makes: that of the zero point, or output_dtype where there is none.
Type codes_type(const Operation& operation, const std::vector<Type>& inputs) {
  const int64_t* stated = attribute_as<int64_t>(operation.attributes, "output_dtype", "an integer");
  std::optional<Type> type;
  if (stated && *stated != 0) {
    require(*stated == 2 || *stated == 3, "attribute 'output_dtype' is ", *stated,
            "; codes of a program behind the plan are uint8 (2) or int8 (3)");
    type = *stated == 2 ? Type::kUint8 : Type::kInt8;
  }
  if (operation.inputs.size() < 3 || operation.inputs[2] < 0) return type.value_or(Type::kUint8);
  const Type zero = inputs.at(2);
  require(zero == Type::kInt8 || zero == Type::kUint8, "the zero point holds ", type_name(zero),
          "; codes of a program behind the plan are uint8 or int8");
  require(!type || *type == zero, "attribute 'output_dtype' and the zero point name different types");
  return zero;
}

}  // namespace

const Operator* find_operator(std::string_view name) {
  const auto it = table().find(name);
  return it == table().end() ? nullptr : &it->second;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names{"If", "Loop"};
  for (const auto& [name, row] : table()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

void require_integers(std::string_view op, const std::vector<Type>& inputs) {
  static const std::unordered_map<std::string_view, std::vector<size_t>> places = {{"Gather", {1}},
                                                                                   {"GatherElements", {1}},
                                                                                   {"GatherND", {1}},
                                                                                   {"ScatterElements", {1}},
                                                                                   {"ScatterND", {1}},
                                                                                   {"TopK", {1}},
                                                                                   {"NonMaxSuppression", {2}},
                                                                                   {"RoiAlign", {2}},
                                                                                   {"LSTM", {4}},
                                                                                   {"GRU", {4}},
                                                                                   {"RNN", {4}},
                                                                                   {"Reshape", {1}},
                                                                                   {"Resize", {3}},
                                                                                   {"Squeeze", {1}},
                                                                                   {"Unsqueeze", {1}},
                                                                                   {"ConstantOfShape", {0}},
                                                                                   {"Expand", {1}},
                                                                                   {"Tile", {1}},
                                                                                   {"Split", {1}},
                                                                                   {"Slice", {1, 2, 3, 4}},
                                                                                   {"Pad", {1, 3}},
                                                                                   {"Trilu", {1}},
                                                                                   {"CumSum", {1}},
                                                                                   {"ReduceSum", {1}},
                                                                                   {"ReduceMean", {1}},
                                                                                   {"ReduceMax", {1}},
                                                                                   {"ReduceMin", {1}},
                                                                                   {"ReduceProd", {1}},
                                                                                   {"ReduceL1", {1}},
                                                                                   {"ReduceL2", {1}},
                                                                                   {"ReduceSumSquare", {1}},
                                                                                   {"ReduceLogSum", {1}},
                                                                                   {"ReduceLogSumExp", {1}}};
  const auto it = places.find(op);
  if (it == places.end()) return;
  for (const size_t i : it->second)
    require(i >= inputs.size() || inputs[i] == Type::kInt64 || inputs[i] == Type::kInt32, "input ", i,
            " should hold integers, not ", i < inputs.size() ? type_name(inputs[i]) : "");
}

Type output_type(const Operation& operation, size_t output, const std::vector<Type>& inputs) {
  const Operator* row = find_operator(operation.op);
  OCTET_CHECK(row, operation.op);
  switch (row->typing) {
    case Typing::kFirst:
      return inputs.empty() ? Type::kFloat : inputs[0];
    case Typing::kSecond:
      return inputs.size() < 2 ? Type::kFloat : inputs[1];
    case Typing::kBool:
      return Type::kBool;
    case Typing::kInt64:
      return Type::kInt64;
    case Typing::kTopK:
      return output == 1 ? Type::kInt64 : inputs.empty() ? Type::kFloat : inputs[0];
    case Typing::kTo: {
      const int64_t* to = attribute_as<int64_t>(operation.attributes, "to", "an integer");
      require(to, "attribute 'to' is absent");
      return type_of_code(*to);
    }
    case Typing::kValue: {
      const int64_t* type = attribute_as<int64_t>(operation.attributes, "value_type", "an integer");
      return type ? type_of_code(*type) : Type::kFloat;
    }
    case Typing::kCodes:
      return codes_type(operation, inputs);
    case Typing::kFloat:
      break;
  }
  return Type::kFloat;
}

const Tensor& Call::input(size_t i) const {
  require(i < inputs_.size() && inputs_[i], "input ", i, " is absent");
  return *inputs_[i];
}

std::vector<int64_t> Call::ints(size_t i) const {
  const Tensor& t = input(i);
  if (t.type() == Type::kInt64) return {t.values<int64_t>().begin(), t.values<int64_t>().end()};
  require(t.type() == Type::kInt32, "input ", i, " should hold integers, not ", type_name(t.type()));
  return {t.values<int32_t>().begin(), t.values<int32_t>().end()};
}

std::optional<std::vector<int64_t>> Call::optional_ints(size_t i) const {
  if (!optional(i)) return std::nullopt;
  return ints(i);
}

int64_t Call::one_int(size_t i) const {
  require(input(i).size() == 1, "input ", i, " should be one number, not ", shape_text(input(i).shape()));
  return ints(i)[0];
}

float Call::one_float(size_t i, float fallback) const {
  const Tensor* t = optional(i);
  if (!t) return fallback;
  require(t->type() == Type::kFloat && t->size() == 1, "input ", i, " should be one float32");
  return t->values<float>()[0];
}

const Attribute* AttributeReader::attribute(const char* key) const {
  const auto it = operation_.attributes.find(key);
  return it == operation_.attributes.end() ? nullptr : &it->second;
}

int64_t AttributeReader::int_attribute(const char* key, int64_t fallback) const {
  const int64_t* v = attribute_as<int64_t>(operation_.attributes, key, "an integer");
  return v ? *v : fallback;
}

float AttributeReader::float_attribute(const char* key, float fallback) const {
  const float* v = attribute_as<float>(operation_.attributes, key, "a float");
  return v ? *v : fallback;
}

std::string AttributeReader::string_attribute(const char* key, const std::string& fallback) const {
  const std::string* v = attribute_as<std::string>(operation_.attributes, key, "a string");
  return v ? *v : fallback;
}

std::optional<std::vector<int64_t>> AttributeReader::ints_attribute(const char* key) const {
  const auto* v = attribute_as<std::vector<int64_t>>(operation_.attributes, key, "a list of integers");
  return v ? std::optional(*v) : std::nullopt;
}

std::optional<std::vector<float>> AttributeReader::floats_attribute(const char* key) const {
  const auto* v = attribute_as<std::vector<float>>(operation_.attributes, key, "a list of floats");
  return v ? std::optional(*v) : std::nullopt;
}

std::optional<std::vector<std::string>> AttributeReader::strings_attribute(const char* key) const {
  const auto* v = attribute_as<std::vector<std::string>>(operation_.attributes, key, "a list of strings");
  return v ? std::optional(*v) : std::nullopt;
}

size_t normal_axis(int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  require(axis >= -n && axis < n, "axis ", axis, " is not one of a tensor of rank ", n);
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    require(x == y || x == 1 || y == 1, "the shapes ", shape_text(a), " and ", shape_text(b), " do not fit each other");
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Shape steps_of(const Shape& shape) {
  Shape steps(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) steps[i] = step, step *= shape[i];
  return steps;
}

Shape broadcast_steps(const Shape& shape, const Shape& wide) {
  require(shape.size() <= wide.size(), "the shape ", shape_text(shape), " is not broadcast to ", shape_text(wide));
  const Shape own = steps_of(shape);
  Shape out(wide.size(), 0);
  const size_t extra = wide.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    require(shape[i] == wide[extra + i] || shape[i] == 1, "the shape ", shape_text(shape), " is not broadcast to ",
            shape_text(wide));
    out[extra + i] = shape[i] == 1 ? 0 : own[i];
  }
  return out;
}

int64_t count_of(const Shape& shape, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t i = first; i < last; ++i) count *= shape[i];
  return count;
}

}  // namespace octet::dense
