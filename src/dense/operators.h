// The operators of programs: one function each, grouped by idea in files of their own.
#pragma once
#include <optional>
#include <string_view>

#include "dense/program.h"

namespace octet::dense {

// The attributes of an operation. UserError where one is of another kind than is asked for.
class AttributeReader {
 public:
  explicit AttributeReader(const Operation& operation) : operation_(operation) {}

  const Operation& operation() const { return operation_; }
  int64_t int_attribute(const char* key, int64_t fallback) const;
  float float_attribute(const char* key, float fallback) const;
  std::string string_attribute(const char* key, const std::string& fallback) const;
  std::optional<std::vector<int64_t>> ints_attribute(const char* key) const;
  std::optional<std::vector<float>> floats_attribute(const char* key) const;
  std::optional<std::vector<std::string>> strings_attribute(const char* key) const;
  const Attribute* attribute(const char* key) const;

 private:
  const Operation& operation_;
};

// One operation with the tensors that it reads.
class Call : public AttributeReader {
 public:
  Call(const Operation& operation, std::vector<const Tensor*> inputs, Memory& memory, int threads = 1)
      : AttributeReader(operation), inputs_(std::move(inputs)), memory_(memory), threads_(threads) {}

  Memory& memory() const { return memory_; }
  int threads() const { return threads_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return operation().outputs.size(); }
  const Tensor* optional(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  const Tensor& input(size_t i) const;  // UserError where it is absent
  // The input as integers, whatever integer type it has; UserError where it has another.
  std::vector<int64_t> ints(size_t i) const;
  std::optional<std::vector<int64_t>> optional_ints(size_t i) const;
  int64_t one_int(size_t i) const;
  float one_float(size_t i, float fallback) const;  // the fallback where it is absent

 private:
  std::vector<const Tensor*> inputs_;
  Memory& memory_;
  int threads_;
};

using Tensors = std::vector<Tensor>;
using Function = Tensors (*)(const Call&);
// What the type of an output follows from.
enum class Typing { kFirst, kSecond, kBool, kInt64, kTo, kValue, kTopK, kFloat, kCodes };

struct Operator {
  const char* name;
  Function run;
  size_t least_inputs = 1, most_inputs = 1, most_outputs = 1;
  Typing typing = Typing::kFirst;
  std::vector<const char*> attributes = {};
  // What validate() asks beyond names and counts. UserError where the operator is not there for such attributes.
  void (*check)(const AttributeReader&) = nullptr;
};

std::vector<Operator> elementwise_operators();
std::vector<Operator> activation_operators();
std::vector<Operator> choice_operators();  // Where, Clip, Cast, variadic Min and Max ...
std::vector<Operator> reduction_operators();
std::vector<Operator> gather_operators();
std::vector<Operator> scatter_operators();
std::vector<Operator> selection_operators();  // TopK, NonZero, NonMaxSuppression
std::vector<Operator> shape_operators();
std::vector<Operator> movement_operators();  // Transpose, Concat, Slice ...
std::vector<Operator> region_operators();    // RoiAlign
std::vector<Operator> sampling_operators();  // GridSample
std::vector<Operator> resize_operators();
std::vector<Operator> product_operators();
std::vector<Operator> quantization_operators();  // QuantizeLinear, DequantizeLinear
std::vector<Operator> convolution_operators();
std::vector<Operator> pooling_operators();
std::vector<Operator> normalization_operators();
std::vector<Operator> recurrent_operators();  // LSTM, GRU, RNN

// nullptr: there is none. "If" and "Loop" are no rows: run() has them.
const Operator* find_operator(std::string_view name);
std::vector<std::string> operator_names();
// UserError where an input that holds sizes, places or axes has a type without them.
void require_integers(std::string_view op, const std::vector<Type>& inputs);
// The type of an output, from those of the inputs (Type::kFloat for absent ones). UserError for a Cast to none of ours.
Type output_type(const Operation& operation, size_t output, const std::vector<Type>& inputs);

// --- for the functions
// `axis` counted from the front. UserError outside the rank.
size_t normal_axis(int64_t axis, size_t rank);
Shape broadcast(const Shape& a, const Shape& b);
// The step of each axis of `shape` in memory, in elements.
Shape steps_of(const Shape& shape);
// The same for reading a tensor as if it had the shape `wide`: 0 where its one element is repeated.
Shape broadcast_steps(const Shape& shape, const Shape& wide);
// Product of the sizes from axis `first` to before `last`.
int64_t count_of(const Shape& shape, size_t first, size_t last);

// Calls visit(at) for each element of `shape` in order, with where the element is in a tensor of these steps.
template <typename Visit>
void walk(const Shape& shape, const std::vector<Shape>& steps, Visit visit) {
  const int64_t count = element_count(shape);
  std::vector<int64_t> index(shape.size(), 0), at(steps.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(i, at);
    for (size_t d = shape.size(); d-- > 0;) {
      for (size_t t = 0; t < steps.size(); ++t) at[t] += steps[t][d];
      if (++index[d] < shape[d]) break;
      for (size_t t = 0; t < steps.size(); ++t) at[t] -= steps[t][d] * shape[d];
      index[d] = 0;
    }
  }
}

// f(x) of every float of the first input.
template <typename F>
Tensors map_floats(const Call& call, F f) {
  const Tensor& x = call.input(0);
  require(x.type() == Type::kFloat, "is not there for ", type_name(x.type()));
  Tensor out = call.memory().make<float>(x.shape());
  const auto from = x.values<float>();
  const auto to = out.mutable_values<float>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = f(from[i]);
  return {out};
}

// Calls work.template operator()<T>() for the C++ type of `type`. UserError for codes, which only the two operators of
// quantization.cc know.
template <typename Work>
auto dispatch(Type type, Work work) {
  switch (type) {
    case Type::kFloat:
      return work.template operator()<float>();
    case Type::kInt64:
      return work.template operator()<int64_t>();
    case Type::kInt32:
      return work.template operator()<int32_t>();
    case Type::kBool:
      return work.template operator()<bool>();
    case Type::kInt8:
    case Type::kUint8:
      break;
  }
  fail("is not there for ", type_name(type));
}

}  // namespace octet::dense
