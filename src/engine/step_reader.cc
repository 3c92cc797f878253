#include "engine/step_reader.h"

#include <cmath>

namespace octet::engine {

void StepReader::arity(size_t inputs, size_t outputs, bool more_inputs) const {
  check(more_inputs ? step_.inputs.size() >= inputs : step_.inputs.size() == inputs, "has ", step_.inputs.size(),
        " inputs, expected ", inputs, more_inputs ? " or more" : "");
  check(step_.outputs.size() == outputs, "has ", step_.outputs.size(), " outputs, expected ", outputs);
}

const Buffer& StepReader::expect(const Buffer& b, Layout layout) const {
  check(b.layout == layout, "buffer '", b.name, "' has the layout ", layout_name(b.layout), ", expected ",
        layout_name(layout));
  return b;
}

const Buffer& StepReader::expect_float(const Buffer& b) const {
  check(b.layout == Layout::kFloatNhwc || b.layout == Layout::kFloatDense, "buffer '", b.name, "' holds ",
        layout_name(b.layout), ", expected floats");
  return b;
}

int64_t StepReader::integer(const std::string& key, int64_t low, int64_t high) const {
  const auto found = step_.ints.find(key);
  check(found != step_.ints.end(), "the number '", key, "' is missing");
  check(found->second >= low && found->second <= high, key, " = ", found->second, " is outside ", low, "..", high);
  return found->second;
}

int64_t StepReader::integer_or(const std::string& key, int64_t fallback, int64_t low, int64_t high) const {
  return has(key) ? integer(key, low, high) : fallback;
}

std::vector<int64_t> StepReader::list(const std::string& key, size_t length, int64_t low, int64_t high) const {
  const auto found = step_.lists.find(key);
  check(found != step_.lists.end(), "the list '", key, "' is missing");
  check(found->second.size() == length, "the list '", key, "' has ", found->second.size(), " numbers, expected ",
        length);
  for (int64_t v : found->second) check(v >= low && v <= high, key, " holds ", v, ", outside ", low, "..", high);
  return found->second;
}

void StepReader::check_walk(const std::string& what, const std::vector<int64_t>& dims,
                            const std::vector<int64_t>& strides, int64_t offset, int64_t size) const {
  // 128 bits: a stride times a dimension may leave 64.
  __int128 low = offset, high = offset;
  for (size_t i = 0; i < dims.size(); ++i) {
    const __int128 reach = static_cast<__int128>(dims[i] - 1) * strides[i];
    (reach < 0 ? low : high) += reach;
  }
  check(low >= 0 && high < size, what, " leaves its buffer of ", size, " elements");
}

float StepReader::real(const std::string& key) const {
  const auto found = step_.floats.find(key);
  check(found != step_.floats.end(), "the number '", key, "' is missing");
  return static_cast<float>(found->second);
}

float StepReader::real_or(const std::string& key, float fallback) const {
  return step_.floats.count(key) > 0 ? real(key) : fallback;
}

float StepReader::positive(const std::string& key) const {
  const float value = real(key);
  check(value > 0, key, " = ", value, " is not positive");
  return value;
}

const ConstantRef& StepReader::reference(const std::string& key) const {
  const auto found = step_.constants.find(key);
  check(found != step_.constants.end(), "the constant '", key, "' is missing");
  return found->second;
}

std::span<const float> StepReader::finite_constant(const std::string& key, int64_t count) const {
  const auto values = constant<float>(key, count);
  for (float v : values) check(std::isfinite(v), "constant '", key, "' holds a value that is not finite");
  return values;
}

}  // namespace octet::engine
