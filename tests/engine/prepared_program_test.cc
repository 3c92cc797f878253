// Products of programs on codes: what the INT8 kernels give is what the operators of the QDQ form give.
#include "engine/prepared_program.h"

#include <gtest/gtest.h>

#include "../dense/code_programs.h"

namespace octet::testing {
namespace {

using Ints = std::vector<int64_t>;

struct ProductCase {
  const char* what;
  const char* op;
  dense::Shape x, weights;
  dense::Attributes attributes;
  int64_t bias;
};

const std::vector<ProductCase>& cases() {
  static const std::vector<ProductCase> all = {
      {"rows", "Gemm", {37, 20}, {20, 19}, {}, 19},
      {"rows by transposed weights", "Gemm", {3, 70}, {33, 70}, {{"transB", int64_t{1}}}, 33},
      {"one row", "Gemm", {1, 7}, {7, 2}, {}, 2},
      {"many rows", "Gemm", {513, 256}, {256, 64}, {}, 0},
      {"no rows", "Gemm", {0, 7}, {7, 2}, {}, 2},
      {"stacked rows", "MatMul", {2, 5, 9}, {9, 4}, {}, 0},
      {"images", "Conv", {5, 8, 6, 7}, {20, 8, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, 20},
      {"large images", "Conv", {3, 32, 24, 20}, {48, 32, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, 48},
      {"uneven windows",
       "Conv",
       {2, 4, 9, 8},
       {6, 4, 3, 2},
       {{"pads", Ints{2, 0, 0, 1}}, {"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}},
       6},
      {"groups", "Conv", {1, 8, 5, 5}, {12, 2, 3, 3}, {{"group", int64_t{4}}, {"pads", Ints{1, 1, 1, 1}}}, 12},
      {"depthwise", "Conv", {2, 6, 5, 4}, {6, 1, 3, 3}, {{"group", int64_t{6}}}, 0},
      {"same padding", "Conv", {1, 3, 7, 6}, {5, 3, 2, 2}, {{"auto_pad", std::string("SAME_LOWER")}}, 5},
      {"no images", "Conv", {0, 8, 6, 6}, {4, 8, 3, 3}, {}, 4},
      {"windows that touch", "ConvTranspose", {3, 16, 4, 5}, {16, 6, 2, 3}, {{"strides", Ints{2, 3}}}, 6},
  };
  return all;
}

std::vector<float> run_on(const dense::Program& program, const ProductCase& c, Isa isa, int threads) {
  const auto x = random_floats(static_cast<size_t>(dense::element_count(c.x)), 7, -2, 2);
  const engine::PreparedProgram prepared(program, isa);
  const auto found =
      prepared.run({dense::Tensor::borrowed(dense::Type::kFloat, c.x, x.data())}, {.threads = threads}).at(0);
  return {found.values<float>().begin(), found.values<float>().end()};
}

std::vector<dense::CodeParams> params() {
  return {{.scale = 0.0173f, .zero_point = 0, .type = dense::Type::kInt8},
          {.scale = 0.011f, .zero_point = 9, .type = dense::Type::kUint8},
          {.scale = 0.009f, .zero_point = -100, .type = dense::Type::kInt8}};
}

TEST(PreparedProgram, ProductsAreThoseOfTheQdqForm) {
  for (const ProductCase& c : cases())
    for (const dense::CodeParams& p : params()) {
      const dense::Program program = on_codes(product_program(c.op, c.weights, c.attributes, c.bias), p);
      ASSERT_EQ(dense::code_products(program).size(), 1u) << c.what;
      const auto x = random_floats(static_cast<size_t>(dense::element_count(c.x)), 7, -2, 2);
      const auto right = dense::run(program, {dense::Tensor::borrowed(dense::Type::kFloat, c.x, x.data())}).at(0);
      const std::vector<float> found = run_on(program, c, default_isa(), 2);
      ASSERT_EQ(static_cast<int64_t>(found.size()), right.size()) << c.what;
      float largest = 0;
      for (const float v : right.values<float>()) largest = std::max(largest, std::abs(v));
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], right.values<float>()[i], 2e-5f * largest) << c.what << " " << i;
    }
}

TEST(PreparedProgram, BitsAreEqualOnAllInstructionSetsAndThreads) {
  for (const ProductCase& c : cases()) {
    const dense::Program program =
        on_codes(product_program(c.op, c.weights, c.attributes, c.bias), {.scale = 0.0173f, .zero_point = 3});
    const std::vector<float> right = run_on(program, c, Isa::kScalar, 1);
    for (const Isa isa : supported_isas())
      for (const int threads : {1, 3})
        EXPECT_EQ(run_on(program, c, isa, threads), right) << c.what << " " << isa_name(isa);
  }
}

TEST(PreparedProgram, WhatDoesNotFitIsNamed) {
  const dense::Program program = on_codes(product_program("Gemm", {4, 3}), {.scale = 0.01f});
  const engine::PreparedProgram prepared(program, default_isa());
  EXPECT_GT(prepared.weight_bytes(), 0);
  const std::vector<float> x(10);
  try {
    prepared.run({dense::Tensor::borrowed(dense::Type::kFloat, {2, 5}, x.data())}, {});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "node 'y_node' (Gemm on codes): the input has the shape [2, 5], the weights take rows of 4");
  }
}

}  // namespace
}  // namespace octet::testing
