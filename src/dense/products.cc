// Products of matrices.
#include "dense/matrix_product.h"
#include "dense/operators.h"

namespace octet::dense {
namespace {

void require_floats(const Tensor& a, const Tensor& b) {
  require(a.type() == Type::kFloat && b.type() == Type::kFloat, "is there for float32 only");
}

Tensors mat_mul(const Call& call) {
  Tensor a = call.input(0), b = call.input(1);
  require_floats(a, b);
  require(a.rank() > 0 && b.rank() > 0, "an input is no matrix");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = a.with_shape({1, a.size()});
  if (column) b = b.with_shape({b.size(), 1});
  const size_t ra = a.rank(), rb = b.rank();
  const int64_t m = a.shape()[ra - 2], k = a.shape()[ra - 1], n = b.shape()[rb - 1];
  require(k == b.shape()[rb - 2], "the matrices ", shape_text(a.shape()), " and ", shape_text(b.shape()),
          " do not fit each other");
  const Shape stack_a(a.shape().begin(), a.shape().end() - 2), stack_b(b.shape().begin(), b.shape().end() - 2);
  const Shape stack = broadcast(stack_a, stack_b);
  Shape whole = stack, shape = stack;
  whole.insert(whole.end(), {m, n});
  if (!row) shape.push_back(m);
  if (!column) shape.push_back(n);
  Tensor out = call.memory().make<float>(whole);
  walk(stack, {broadcast_steps(stack_a, stack), broadcast_steps(stack_b, stack)},
       [&](int64_t i, const std::vector<int64_t>& at) {
         matrix_product(a.values<float>().data() + at[0] * m * k, b.values<float>().data() + at[1] * k * n,
                        out.mutable_values<float>().data() + i * m * n, m, k, n, call.threads());
       });
  return {out.with_shape(shape)};
}

Tensor transposed(const Tensor& x, Memory& memory) {
  Tensor out = memory.make<float>({x.shape()[1], x.shape()[0]});
  dense::transpose(x.values<float>().data(), out.mutable_values<float>().data(), x.shape()[0], x.shape()[1]);
  return out;
}

Tensors gemm(const Call& call) {
  Tensor a = call.input(0), b = call.input(1);
  require_floats(a, b);
  require(a.rank() == 2 && b.rank() == 2, "an input is no matrix: ", shape_text(a.shape()), " and ",
          shape_text(b.shape()));
  if (call.int_attribute("transA", 0) != 0) a = transposed(a, call.memory());
  if (call.int_attribute("transB", 0) != 0) b = transposed(b, call.memory());
  const int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  require(k == b.shape()[0], "the matrices ", shape_text(a.shape()), " and ", shape_text(b.shape()),
          " do not fit each other");
  const float alpha = call.float_attribute("alpha", 1), beta = call.float_attribute("beta", 1);
  Tensor out = call.memory().make<float>({m, n});
  const auto to = out.mutable_values<float>();
  matrix_product(a.values<float>().data(), b.values<float>().data(), to.data(), m, k, n, call.threads());
  if (alpha != 1)
    for (float& v : to) v *= alpha;
  if (const Tensor* bias = call.optional(2)) {
    require(bias->type() == Type::kFloat, "the bias should be float32");
    const auto from = bias->values<float>();
    walk(out.shape(), {broadcast_steps(bias->shape(), out.shape())}, [&](int64_t i, const std::vector<int64_t>& at) {
      to[static_cast<size_t>(i)] += beta * from[static_cast<size_t>(at[0])];
    });
  }
  return {out};
}

}  // namespace

std::vector<Operator> product_operators() {
  return {{"MatMul", mat_mul, 2, 2}, {"Gemm", gemm, 2, 3, 1, Typing::kFirst, {"alpha", "beta", "transA", "transB"}}};
}

}  // namespace octet::dense
