// What the shape rules share: reading input types and constant parameters, setting outputs, and error sentences that
// start with the node. Private to the rules (shape_rules_*.cc), infer.cc, and the evaluations (evaluate_parts.h).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/axes.h"
#include "ir/graph.h"

namespace octet::ir {

// No dimension or element count of a real network comes near this; larger numbers in a file are damage, and the bound
// keeps the rules' arithmetic inside int64.
inline constexpr int64_t kMaxDimension = int64_t{1} << 40;

std::string node_text(const Node& node);                 // "node 'layer1.0.conv1' (Conv)"
std::string input_text(const Node& node, size_t index);  // "input 1 'w' float32[64, 3, 7, 7]"

// UserError "node 'x' (Kind): ...".
template <typename... Args>
[[noreturn]] void misfit(const Node& node, Args&&... args) {
  fail(node_text(node), ": ", std::forward<Args>(args)...);
}

// Shape of an input; nullptr when the input is absent or its rank is unknown.
const Shape* input_shape(const Node& node, size_t index);
DataType input_data_type(const Node& node, size_t index);
// UserError unless the rank of an input, where known, is in [min_rank, max_rank].
void require_rank(const Node& node, size_t index, size_t min_rank, size_t max_rank);
// UserError unless the data types of the inputs `first` and `second`, where known, are equal.
void require_same_data_type(const Node& node, size_t first, size_t second);
// UserError unless an input (where present and of known shape) has exactly these dimensions; kDynamic matches anything.
void require_shape(const Node& node, size_t index, const Shape& expected, const char* why);

// The values of a constant integer input (rank 0 or 1); nothing when it is absent or not constant.
std::optional<std::vector<int64_t>> constant_ints(const Node& node, size_t index);
std::optional<std::vector<float>> constant_floats(const Node& node, size_t index);
// True when an input is there and is not an empty constant (exporters write empty tensors for "absent").
bool has_value(const Node& node, size_t index);

// Products and sums in which kDynamic is contagious. UserError above kMaxDimension.
int64_t multiply_dims(const Node& node, int64_t a, int64_t b);
int64_t add_dims(const Node& node, int64_t a, int64_t b);
// numpy broadcasting. UserError when the shapes do not fit; the first without the node's name.
Shape broadcast(const Shape& a, const Shape& b);
Shape broadcast(const Node& node, const Shape& a, const Shape& b);

// Sets the type of an output that somebody wants; checks the dimensions against kMaxDimension.
void set_output(Node& node, size_t index, DataType data_type, std::optional<Shape> shape);
// Output 0 has the data type of input 0 and a shape that nobody knows.
void set_unknown(Node& node);

}  // namespace octet::ir
