#include <cmath>
#include <limits>

#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

using ir::Shape;
using ir::Tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Scaled dot products of queries and keys, softmax, and the values that they weigh. Images, heads, tokens and features
// are axes of their own, or heads and features are one that the attributes tell apart.
class Attention {
 public:
  Attention(SourceNode& node, UpgradeContext& context) : node_(node), context_(context), f_(node, context) {}

  Nodes run() {
    for (size_t i = 0; i < 3; ++i)
      if (!node_.has_input(i)) fail("has ", node_.inputs.size(), " inputs, expected queries, keys and values");
    for (size_t i = 4; i < 7; ++i)
      if (node_.has_input(i)) fail("has a cache of keys and values, which is not supported");
    if (node_.outputs.size() > 1) fail("only its first output can be used");
    const int64_t query_heads = take<int64_t>(node_, "q_num_heads").value_or(0),
                  key_heads = take<int64_t>(node_, "kv_num_heads").value_or(0);
    const bool joined = known_shape(node_.inputs[0], context_).size() == 3;
    const Tokens q = tokens(0, query_heads), k = tokens(1, key_heads), v = tokens(2, key_heads);
    const auto scale = take<float>(node_, "scale");
    const bool causal = take<int64_t>(node_, "is_causal").value_or(0) != 0;
    const float cap = take<float>(node_, "softcap").value_or(0);
    take<int64_t>(node_, "softmax_precision");  // float32
    take<int64_t>(node_, "qk_matmul_output_mode");
    require_no_attributes(node_);
    if (!scale && q.shape[3] == ir::kDynamic) fail("has no scale, and the number of features is dynamic");
    const float factor = scale ? *scale : 1 / std::sqrt(static_cast<float>(q.shape[3]));

    const std::string keys = f_("Transpose", {repeated(k, q)}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
    std::string scores = f_("MatMul", {f_("Mul", {q.value, f_.number("scale", factor)}), keys});
    if (node_.has_input(3)) scores = f_("Add", {scores, mask()});
    if (causal) scores = f_("Add", {scores, causal_mask(q.shape[2], k.shape[2])});
    if (cap > 0) {
      const std::string number = f_.number("softcap", cap);
      scores = f_("Mul", {f_("Tanh", {f_("Div", {scores, number})}), number});
    }
    const std::string y = f_("MatMul", {f_("Softmax", {scores}, {{"axis", int64_t{-1}}}), repeated(v, q)});
    if (joined) f_.reshape(f_("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}), {0, 0, -1});
    return f_.nodes();
  }

 private:
  struct Tokens {
    std::string value;
    Shape shape;  // images, heads, tokens, features
  };

  Tokens tokens(size_t input, int64_t heads) {
    const std::string& x = node_.inputs[input];
    const Shape shape = known_shape(x, context_);
    if (shape.size() == 4) return {x, shape};
    if (shape.size() != 3) fail("its input '", x, "' has ", shape.size(), " axes, expected 3 or 4");
    if (heads < 1) fail("q_num_heads and kv_num_heads should be positive numbers");
    if (shape[2] != ir::kDynamic && shape[2] % heads != 0)
      fail(heads, " heads do not divide the ", shape[2], " features of '", x, "'");
    const std::string apart = f_.reshape(x, {0, 0, heads, -1});
    const int64_t features = shape[2] == ir::kDynamic ? ir::kDynamic : shape[2] / heads;
    return {f_("Transpose", {apart}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}),
            {shape[0], heads, shape[1], features}};
  }

  // Keys or values whose heads serve several heads of queries.
  std::string repeated(const Tokens& x, const Tokens& q) {
    const int64_t from = x.shape[1], to = q.shape[1];
    if (from == to) return x.value;
    if (from < 1 || to % from != 0) fail(to, " heads of queries for ", from, " of keys and values");
    const std::string open = f_("Unsqueeze", {x.value, f_.ints("axes", {2})});
    const std::string wide = f_("Expand", {open, f_.ints("heads", {1, 1, to / from, 1, 1})});
    return f_.reshape(wide, reshape_target({x.shape[0], to, x.shape[2], x.shape[3]}, 1));
  }

  // What is added to the scores; false means that a key is not seen.
  std::string mask() {
    const std::string& name = node_.inputs[3];
    if (context_.data_type(name) != ir::DataType::kBool) return name;
    const auto seen = context_.constant(name);
    if (!seen) fail("its mask '", name, "' is bool and computed by the network; it should be a constant or numbers");
    std::vector<float> values;
    for (const std::byte b : seen->bytes()) values.push_back(b == std::byte{0} ? -kInfinity : 0);
    return context_.add_constant(name + "_numbers", Tensor::of<float>(seen->shape(), values));
  }

  std::string causal_mask(int64_t queries, int64_t keys) {
    if (queries == ir::kDynamic || keys == ir::kDynamic)
      fail("is_causal needs the number of tokens, which is dynamic; export the model with fixed sizes");
    if (queries > (int64_t{1} << 14) || keys > (int64_t{1} << 14)) fail("has too many tokens for a causal mask");
    std::vector<float> values;
    for (int64_t row = 0; row < queries; ++row)
      for (int64_t column = 0; column < keys; ++column) values.push_back(column > row ? -kInfinity : 0);
    return context_.add_constant(node_.outputs[0] + "_causal", Tensor::of<float>({queries, keys}, values));
  }

  SourceNode& node_;
  UpgradeContext& context_;
  Formula f_;
};

Nodes attention(SourceNode node, int, UpgradeContext& context) {
  return Attention(node, context).run();
}

}  // namespace

std::vector<UpgradeRow> attention_rules() {
  return {{"Attention", attention}};
}

}  // namespace octet::onnx
