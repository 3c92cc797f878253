#include "onnx/quantized_constant.h"

#include <algorithm>
#include <cmath>

#include "ir/axes.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::Shape;
using ir::Tensor;

bool is_quantized_type(DataType type) {
  return type == DataType::kInt8 || type == DataType::kUInt8 || type == DataType::kInt32;
}

// Which of the scales an element of a tensor has.
class ScaleIndex {
 public:
  ScaleIndex(const QuantizedConstant& c) : scales_(static_cast<size_t>(c.scale.size())) {
    if (scales_ == 1) return;
    const Shape& shape = c.data.shape();
    for (size_t d = ir::normal_axis(c.axis, shape.size()) + 1; d < shape.size(); ++d)
      inner_ *= static_cast<size_t>(shape[d]);
  }
  size_t operator()(size_t element) const { return element / inner_ % scales_; }

 private:
  size_t scales_, inner_ = 1;
};

DataType code_type(const QuantizedConstant& c) {
  if (c.data.data_type() != DataType::kFloat32) return c.data.data_type();
  return c.zero_point ? c.zero_point->data_type() : DataType::kUInt8;
}

// What a quantizer with the parameters of `c` makes of `x`.
Tensor quantizer_of(const QuantizedConstant& c, ir::OpKind kind, const Tensor& x) {
  const ir::Node node{kind, "", {}, {nullptr}, {{"axis", c.axis}}};
  ir::MemoryBudget budget;  // as many elements as the data
  return ir::evaluate(node, {&x, &c.scale, c.zero_point ? &*c.zero_point : nullptr}, budget)->front();
}

// Scale and zero point number i of all the constants that an operator joins.
struct Parameters {
  std::vector<float> scales;
  std::vector<int64_t> zeros;
  void add(const QuantizedConstant& c) {
    const std::span<const float> more = c.scale.values<float>();
    scales.insert(scales.end(), more.begin(), more.end());
    const std::vector<int64_t> more_zeros = c.zero_point ? c.zero_point->to_ints() : std::vector<int64_t>(more.size());
    zeros.insert(zeros.end(), more_zeros.begin(), more_zeros.end());
  }
  bool equal(int32_t a, int32_t b) const {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    return scales[i] == scales[j] && zeros[i] == zeros[j];
  }
  bool all_equal() const {
    for (size_t i = 1; i < scales.size(); ++i)
      if (scales[i] != scales[0] || zeros[i] != zeros[0]) return false;
    return true;
  }
};

constexpr int32_t kAnyScale = -1;  // of an element that is 0, which every scale has

// For each index of an axis of `shape` the number of its parameters; nothing when elements of one index differ.
std::optional<std::vector<int32_t>> along_axis(const Parameters& all, const Shape& shape, size_t axis,
                                               std::span<const int32_t> numbers) {
  size_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= static_cast<size_t>(shape[d]);
  const auto count = static_cast<size_t>(shape[axis]);
  std::vector<int32_t> out(count, kAnyScale);
  for (size_t i = 0; i < numbers.size(); ++i) {
    int32_t& known = out[i / inner % count];
    if (known == kAnyScale) known = numbers[i];
    if (numbers[i] != kAnyScale && !all.equal(known, numbers[i])) return std::nullopt;
  }
  for (int32_t& number : out) number = std::max(number, 0);
  return out;
}

// The numbers that the scales of a result have, and their axis; `of_element`: the number of each of its elements.
struct Choice {
  std::vector<int32_t> numbers;
  std::optional<size_t> axis;  // nothing: one scale for all
};
std::optional<Choice> choose(const Parameters& all, const Shape& shape, std::span<const int32_t> of_element) {
  const auto first = std::find_if(of_element.begin(), of_element.end(), [](int32_t n) { return n != kAnyScale; });
  const int32_t one = first == of_element.end() ? 0 : *first;
  if (std::all_of(first, of_element.end(), [&](int32_t n) { return n == kAnyScale || all.equal(n, one); }))
    return Choice{{one}, std::nullopt};
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (const auto numbers = along_axis(all, shape, axis, of_element)) return Choice{*numbers, axis};
  return std::nullopt;
}

// Gives `c`, whose data is there, its scales.
void set_parameters(QuantizedConstant& c, const Parameters& all, const Choice& choice, DataType zero_type) {
  const Shape parameter_shape = choice.axis ? Shape{c.data.shape()[*choice.axis]} : Shape();
  c.axis = static_cast<int64_t>(choice.axis.value_or(1));
  std::vector<float> scales;
  std::vector<int64_t> zeros;
  for (const int32_t n : choice.numbers) {
    scales.push_back(all.scales[static_cast<size_t>(n)]);
    zeros.push_back(all.zeros[static_cast<size_t>(n)]);
  }
  c.scale = Tensor::of<float>(parameter_shape, scales);
  if (zero_type == DataType::kInt32) {
    c.zero_point = Tensor::of<int32_t>(parameter_shape, std::vector<int32_t>(zeros.begin(), zeros.end()));
  } else if (zero_type == DataType::kInt8) {
    c.zero_point = Tensor::of<int8_t>(parameter_shape, std::vector<int8_t>(zeros.begin(), zeros.end()));
  } else {
    c.zero_point = Tensor::of<uint8_t>(parameter_shape, std::vector<uint8_t>(zeros.begin(), zeros.end()));
  }
}

// The zeros stand for themselves with every scale.
bool pads_by_zero(const FoldRequest& request) {
  const auto mode = request.attributes.find("mode");
  const auto* stated = mode == request.attributes.end() ? nullptr : std::get_if<std::string>(&mode->second);
  if (mode != request.attributes.end() && (!stated || *stated != "constant")) return false;
  const Tensor* fill = request.inputs.size() > 2 ? request.inputs[2] : nullptr;
  return !fill || (fill->size() == 1 && fill->to_floats()[0] == 0);
}

Tensor scalar_of(DataType type, int64_t value) {
  if (type == DataType::kInt8) return Tensor::scalar(static_cast<int8_t>(value));
  if (type == DataType::kUInt8) return Tensor::scalar(static_cast<uint8_t>(value));
  if (type == DataType::kInt32) return Tensor::scalar(static_cast<int32_t>(value));
  return Tensor::scalar(0.0f);  // floats that a QuantizeLinear reads
}

// For each element of a constant the number of its scale, of which the first is `base`.
Tensor scale_numbers(const QuantizedConstant& c, int32_t base) {
  const ScaleIndex index(c);
  return Tensor::made<int32_t>(c.data.shape(), [&](std::span<int32_t> out) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = base + static_cast<int32_t>(index(i));
  });
}

}  // namespace

Tensor QuantizedConstant::codes() const {
  return data.data_type() == DataType::kFloat32 ? quantizer_of(*this, ir::OpKind::kQuantizeLinear, data) : data;
}

Tensor QuantizedConstant::values() const {
  return quantizer_of(*this, ir::OpKind::kDequantizeLinear, codes());
}

std::optional<QuantizedConstant> quantized_constant(const Tensor& data, const Tensor& scale, const Tensor* zero_point,
                                                    int64_t axis) {
  const bool floats = data.data_type() == DataType::kFloat32;
  if (!floats && !is_quantized_type(data.data_type())) return std::nullopt;
  if (scale.data_type() != DataType::kFloat32 || scale.shape().size() > 1 || scale.size() == 0) return std::nullopt;
  for (const float s : scale.values<float>())
    if (!(s > 0) || !std::isfinite(s)) return std::nullopt;
  if (zero_point) {
    const DataType type = zero_point->data_type();
    if (floats ? type != DataType::kInt8 && type != DataType::kUInt8 : type != data.data_type()) return std::nullopt;
    if (zero_point->size() != scale.size()) return std::nullopt;
  }
  if (scale.size() > 1) {
    const auto normal = ir::find_axis(axis, data.shape().size());
    if (!normal || data.shape()[*normal] != scale.size()) return std::nullopt;
  }
  return QuantizedConstant{data, scale, zero_point ? std::optional(*zero_point) : std::nullopt, axis};
}

std::optional<std::vector<QuantizedConstant>> moved(const FoldRequest& request,
                                                    const std::vector<const QuantizedConstant*>& quantized,
                                                    ir::MemoryBudget& budget) {
  const bool pads = request.op == "Pad";
  if (!only_moves(request.op) || (pads && !pads_by_zero(request))) return std::nullopt;
  Parameters all;
  std::vector<int32_t> bases(quantized.size(), 0);
  DataType data_type = DataType::kUndefined, zero_type = DataType::kUndefined;
  FoldRequest data = request;
  for (size_t i = 0; i < quantized.size(); ++i) {
    const QuantizedConstant* c = quantized[i];
    if (!c) {
      // Floats among them have no scale.
      const Tensor* other = request.inputs[i];
      if (other && other->data_type() == DataType::kFloat32 && !(pads && i == 2)) return std::nullopt;
      continue;
    }
    if (data_type != DataType::kUndefined && (c->data.data_type() != data_type || code_type(*c) != zero_type))
      return std::nullopt;
    data_type = c->data.data_type(), zero_type = code_type(*c), bases[i] = static_cast<int32_t>(all.scales.size());
    all.add(*c);
    data.inputs[i] = &c->data;
  }
  Tensor fill;
  if (pads) {
    if (std::any_of(all.zeros.begin(), all.zeros.end(), [&](int64_t z) { return z != all.zeros.front(); }))
      return std::nullopt;
    fill = scalar_of(data_type, all.zeros.front());
    data.inputs.resize(std::max<size_t>(data.inputs.size(), 3));
    data.inputs[2] = &fill;
  }
  const auto moved_data = fold(data, budget);
  if (!moved_data) return std::nullopt;
  std::vector<std::optional<Choice>> choices(moved_data->size(), Choice{{0}, std::nullopt});
  if (!all.all_equal()) {
    // The same done to the numbers of the scales says which one each element of the result has.
    FoldRequest numbers = data;
    std::vector<Tensor> number_of(quantized.size());
    for (size_t i = 0; i < quantized.size(); ++i)
      if (quantized[i]) number_of[i] = scale_numbers(*quantized[i], bases[i]), numbers.inputs[i] = &number_of[i];
    const Tensor any = Tensor::scalar(kAnyScale);
    if (pads) numbers.inputs[2] = &any;
    ir::MemoryBudget same;  // as many elements as the data, which was charged
    const auto moved_numbers = fold(numbers, same);
    if (!moved_numbers) return std::nullopt;
    for (size_t i = 0; i < choices.size(); ++i)
      choices[i] = choose(all, (*moved_data)[i].shape(), (*moved_numbers)[i].values<int32_t>());
  }
  std::vector<QuantizedConstant> out;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!choices[i]) return std::nullopt;
    QuantizedConstant c;
    c.data = (*moved_data)[i];
    set_parameters(c, all, *choices[i], zero_type);
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace octet::onnx
