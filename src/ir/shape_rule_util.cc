#include "ir/shape_rule_util.h"

#include <algorithm>

namespace octet::ir {

std::string node_text(const Node& node) {
  return str("node '", node.name, "' (", node.info().name, ")");
}

std::string input_text(const Node& node, size_t index) {
  const Value* value = node.input(index);
  if (!value) return str("input ", index, " (absent)");
  const std::string name = value->name.empty() ? "" : "'" + value->name + "' ";
  return str("input ", index, " ", name, type_string(value->type));
}

const Shape* input_shape(const Node& node, size_t index) {
  const Value* value = node.input(index);
  return value && value->type.shape ? &*value->type.shape : nullptr;
}

DataType input_data_type(const Node& node, size_t index) {
  const Value* value = node.input(index);
  return value ? value->type.data_type : DataType::kUndefined;
}

void require_rank(const Node& node, size_t index, size_t min_rank, size_t max_rank) {
  const Shape* shape = input_shape(node, index);
  if (!shape || (shape->size() >= min_rank && shape->size() <= max_rank)) return;
  const std::string expected = min_rank == max_rank   ? str(min_rank)
                               : max_rank == SIZE_MAX ? str(min_rank, " or more")
                                                      : str(min_rank, " to ", max_rank);
  misfit(node, input_text(node, index), " has rank ", shape->size(), ", expected ", expected);
}

void require_same_data_type(const Node& node, size_t first, size_t second) {
  const DataType a = input_data_type(node, first), b = input_data_type(node, second);
  if (a == b || a == DataType::kUndefined || b == DataType::kUndefined) return;
  misfit(node, input_text(node, first), " and ", input_text(node, second), " have different data types");
}

void require_shape(const Node& node, size_t index, const Shape& expected, const char* why) {
  const Shape* actual = input_shape(node, index);
  if (!actual) return;
  bool fits = actual->size() == expected.size();
  for (size_t i = 0; fits && i < expected.size(); ++i)
    fits = (*actual)[i] == expected[i] || (*actual)[i] == kDynamic || expected[i] == kDynamic;
  if (!fits) misfit(node, input_text(node, index), " should have shape ", shape_string(expected), " (", why, ")");
}

std::optional<std::vector<int64_t>> constant_ints(const Node& node, size_t index) {
  const Value* value = node.input(index);
  if (!value || !value->is_constant()) return std::nullopt;
  const DataType type = value->constant->data_type();
  if (type != DataType::kInt64 && type != DataType::kInt32)
    misfit(node, input_text(node, index), " should hold int64 or int32 parameters");
  require_rank(node, index, 0, 1);
  return value->constant->to_ints();
}

std::optional<std::vector<float>> constant_floats(const Node& node, size_t index) {
  const Value* value = node.input(index);
  if (!value || !value->is_constant()) return std::nullopt;
  require_rank(node, index, 0, 1);
  return value->constant->to_floats();
}

bool has_value(const Node& node, size_t index) {
  const Value* value = node.input(index);
  return value && !(value->is_constant() && value->constant->size() == 0);
}

int64_t multiply_dims(const Node& node, int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == kDynamic || b == kDynamic) return kDynamic;
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product) || product > kMaxDimension)
    misfit(node, "a dimension of ", a, " x ", b, " elements is too large");
  return product;
}

int64_t add_dims(const Node& node, int64_t a, int64_t b) {
  if (a == kDynamic || b == kDynamic) return kDynamic;
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum) || sum > kMaxDimension)
    misfit(node, "a dimension of ", a, " + ", b, " elements is too large");
  return sum;
}

Shape broadcast(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t da = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t db = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    // A dynamic dimension beside one above 1 must turn out to be that one (or 1).
    if (da == db || db == 1) {
      out[i] = da;
    } else if (da == 1 || da == kDynamic) {
      out[i] = db;
    } else if (db == kDynamic) {
      out[i] = da;
    } else {
      fail("shapes ", shape_string(a), " and ", shape_string(b), " do not broadcast: ", da, " against ", db,
           " in dimension ", i, " of the result");
    }
  }
  return out;
}

Shape broadcast(const Node& node, const Shape& a, const Shape& b) {
  try {
    return broadcast(a, b);
  } catch (const UserError& e) {
    misfit(node, e.what());
  }
}

void set_output(Node& node, size_t index, DataType data_type, std::optional<Shape> shape) {
  if (shape) {
    int64_t count = 1;
    for (const int64_t d : *shape) {
      OCTET_CHECK(d >= kDynamic, node_text(node), " ", shape_string(*shape));
      if (d > kMaxDimension || (d > 0 && count > kMaxDimension / d) || shape->size() > 64)
        misfit(node, "output ", index, " would have the shape ", shape_string(*shape), ", which is too large");
      if (d > 0) count *= d;
    }
  }
  Value* value = node.output(index);
  if (value) value->type = {data_type, std::move(shape)};
}

void set_unknown(Node& node) {
  set_output(node, 0, input_data_type(node, 0), std::nullopt);
}

}  // namespace octet::ir
