// QuantizeLinear and DequantizeLinear in programs, and the products between them.
#include "dense/code_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "code_programs.h"
#include "dense/operators.h"
#include "one_operation.h"

namespace octet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int> codes_of(const OneOperation& one) {
  const dense::Program program = one.program();
  dense::Program read = program;  // codes are no outputs
  read.operations.push_back({"DequantizeLinear", "read", {program.outputs[0].value, 0}, {}, {}, {}});
  read.values.emplace_back("one"), read.values.emplace_back("read");
  dense::Memory memory;
  const float step = 1;
  read.constants.emplace_back(static_cast<int>(read.values.size()) - 2, memory.of<float>({}, std::span(&step, 1)));
  read.operations.back().inputs[1] = static_cast<int>(read.values.size()) - 2;
  read.operations.back().outputs = {static_cast<int>(read.values.size()) - 1};
  read.outputs[0].value = static_cast<int>(read.values.size()) - 1;
  dense::validate(read);
  const dense::Tensor found = dense::run(read, {}).at(0);
  return {found.values<float>().begin(), found.values<float>().end()};
}

TEST(ProgramCodes, RoundToEvenAndSaturate) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {0.25f, 0.75f, -0.25f, -0.75f, 100, -100, inf, nan};
  OneOperation u8("QuantizeLinear"), s8("QuantizeLinear");
  u8.with<float>({8}, x).with<float>({}, {0.5f}).with<uint8_t>({}, {3});
  EXPECT_THAT(codes_of(u8), ElementsAre(3, 5, 3, 1, 203, 0, 255, 3));
  s8.with<float>({8}, x).with<float>({}, {0.5f}).with<int8_t>({}, {-3});
  EXPECT_THAT(codes_of(s8), ElementsAre(-3, -1, -3, -5, 127, -128, 127, -3));
}

TEST(ProgramCodes, HaveTheTypeThatIsStatedOrUint8) {
  OneOperation plain("QuantizeLinear"), stated("QuantizeLinear", {{"output_dtype", int64_t{3}}});
  plain.with<float>({2}, {-4, 300}).with<float>({}, {1});
  EXPECT_THAT(codes_of(plain), ElementsAre(0, 255));
  stated.with<float>({2}, {-4, 300}).with<float>({}, {1});
  EXPECT_THAT(codes_of(stated), ElementsAre(-4, 127));
}

TEST(ProgramCodes, ScalesOfAnAxis) {
  OneOperation one("DequantizeLinear", {{"axis", int64_t{-2}}});
  one.with<int8_t>({1, 2, 2}, {1, 2, 3, 4}).with<float>({2}, {0.5f, 10}).with<int8_t>({2}, {0, 1});
  EXPECT_THAT(one.floats(), ElementsAre(0.5f, 1, 20, 30));
  OneOperation biases("DequantizeLinear");
  biases.with<int32_t>({2}, {100000, -3}).with<float>({}, {0.5f});
  EXPECT_THAT(biases.floats(), ElementsAre(50000, -1.5f));
}

TEST(ProgramCodes, RefusalsSayWhatIsWrong) {
  OneOperation zero("QuantizeLinear"), half("QuantizeLinear", {{"output_dtype", int64_t{10}}});
  zero.with<float>({1}, {1}).with<float>({}, {1}).with<int32_t>({}, {0});
  EXPECT_THAT(zero.refusal(), HasSubstr("the zero point holds int32"));
  half.with<float>({1}, {1}).with<float>({}, {1});
  EXPECT_THAT(half.refusal(), HasSubstr("'output_dtype' is 10"));
  OneOperation negative("DequantizeLinear"), many("DequantizeLinear", {{"axis", int64_t{0}}}),
      floats("DequantizeLinear");
  negative.with<int8_t>({1}, {1}).with<float>({}, {-1});
  EXPECT_THAT(negative.failure(), HasSubstr("the scale -1 is not positive"));
  many.with<int8_t>({2, 2}, {1, 2, 3, 4}).with<float>({3}, {1, 1, 1});
  EXPECT_THAT(many.failure(), HasSubstr("there are 3 scales for 2 indices of axis 0"));
  floats.with<float>({1}, {1}).with<float>({}, {1});
  EXPECT_THAT(floats.failure(), HasSubstr("is not there for codes of float32"));
  OneOperation codes("QuantizeLinear");
  codes.with<float>({1}, {1}).with<float>({}, {1});
  dense::Program given_out = codes.program();
  given_out.outputs[0].type = dense::Type::kUint8;
  EXPECT_THROW(dense::validate(given_out), UserError);
  OneOperation sum("Neg");
  sum.with<int8_t>({1}, {1});
  EXPECT_THAT(sum.failure() + sum.refusal(), HasSubstr("int8"));
}

TEST(ProgramCodes, ComeBackFromBytes) {
  const dense::Program program = on_codes(product_program("Gemm", {4, 3}, {}, 3), {.scale = 0.01f});
  const std::string bytes = dense::program_bytes(program);
  EXPECT_EQ(dense::program_bytes(dense::parse_program(std::as_bytes(std::span(bytes)))), bytes);
}

struct FormCase {
  const char* op;
  dense::Shape weights;
  dense::Attributes attributes;
  int channel_axis;  // -1: no product on codes
};

TEST(CodeProducts, AreTheFormsThatKernelsHave) {
  using Ints = std::vector<int64_t>;
  const FormCase cases[] = {
      {"Conv", {4, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, 0},
      {"Conv", {4, 3, 3}, {}, -1},
      {"ConvTranspose", {4, 3, 2, 2}, {{"strides", Ints{2, 2}}}, 1},
      {"ConvTranspose", {4, 3, 4, 4}, {{"strides", Ints{2, 2}}}, -1},
      {"ConvTranspose", {4, 3, 2, 2}, {{"strides", Ints{2, 2}}, {"pads", Ints{0, 0, 1, 1}}}, -1},
      {"Gemm", {4, 3}, {}, 1},
      {"Gemm", {4, 3}, {{"transB", int64_t{1}}}, 0},
      {"Gemm", {4, 3}, {{"transA", int64_t{1}}}, -1},
      {"Gemm", {4, 3}, {{"alpha", 0.5f}}, -1},
      {"MatMul", {4, 3}, {}, 1},
      {"MatMul", {2, 4, 3}, {}, -1},
      {"Gemm", {70000, 1}, {}, -1},  // a sum might leave int32
  };
  for (const FormCase& c : cases) {
    const dense::Program program = product_program(c.op, c.weights, c.attributes);
    const auto forms = dense::float_products(program);
    ASSERT_EQ(forms.size(), c.channel_axis < 0 ? 0u : 1u) << c.op << dense::shape_text(c.weights);
    if (forms.empty()) continue;
    EXPECT_EQ(forms[0].channel_axis, c.channel_axis);
    EXPECT_THAT(dense::code_products(program), IsEmpty());
    EXPECT_FALSE(dense::weighted_operations(program).at(0).why_float.empty());
    const dense::Program coded = on_codes(program, {.scale = 0.01f, .zero_point = 5, .type = dense::Type::kUint8});
    const auto products = dense::code_products(coded);
    ASSERT_EQ(products.size(), 1u) << c.op;
    EXPECT_EQ(products[0].form.channel_axis, c.channel_axis);
    EXPECT_EQ(products[0].params.zero_point, 5);
    EXPECT_EQ(coded.values[static_cast<size_t>(products[0].form.x)], "magnitudes");
    EXPECT_THAT(dense::weighted_operations(coded).at(0).why_float, IsEmpty());
    EXPECT_EQ(dense::weighted_operations(coded).at(0).parameters, dense::weighted_operations(program).at(0).parameters);
    EXPECT_THAT(dense::float_products(coded), IsEmpty());
  }
}

TEST(CodeProducts, ReadWhatTheProgramMakes) {
  dense::Program program = product_program("Gemm", {4, 3});
  program.operations.back().inputs[0] = program.inputs[0].value;  // of the plan, which quantizes its own
  EXPECT_THAT(dense::float_products(program), IsEmpty());
}

TEST(CodeProducts, ShareTheCodesOfWhatTheyBothRead) {
  ProgramMaker m;
  m.input("x");
  m.constant<float>("w", {4, 3}, random_floats(12, 1));
  m.add("Abs", {"x"}, {"magnitudes"});
  m.add("Gemm", {"magnitudes", "w"}, {"first"});
  m.add("MatMul", {"magnitudes", "w"}, {"second"});
  m.add("Add", {"first", "second"}, {"y"});
  m.output("y");
  const dense::Program coded = on_codes(m.program, {.scale = 0.01f});
  const auto of = [&](const char* op) {
    return std::count_if(coded.operations.begin(), coded.operations.end(), [&](const auto& o) { return o.op == op; });
  };
  EXPECT_EQ(of("QuantizeLinear"), 1);
  EXPECT_EQ(of("DequantizeLinear"), 2);
  EXPECT_EQ(dense::code_products(coded).size(), 2u);
}

TEST(CodeProducts, NeedTheSameParametersOnBothSides) {
  dense::Program coded = on_codes(product_program("Gemm", {4, 3}), {.scale = 0.01f});
  for (dense::Operation& operation : coded.operations)
    if (operation.op == "QuantizeLinear") {
      dense::Memory memory;
      const float other = 0.02f;
      coded.values.emplace_back("other");
      operation.inputs[1] = static_cast<int>(coded.values.size()) - 1;
      coded.constants.emplace_back(operation.inputs[1], memory.of<float>({}, std::span(&other, 1)));
    }
  dense::validate(coded);
  EXPECT_THAT(dense::code_products(coded), IsEmpty());
}

TEST(CodeProducts, GoBackToFloats) {
  dense::Program coded = codes_program();
  const std::vector<float> x = {0.5f, -1, 0.25f, 1.25f, -0.75f, 0.125f};
  const std::vector<dense::Tensor> inputs = {dense::Tensor::borrowed(dense::Type::kFloat, {2, 3}, x.data())};
  const auto on_codes = dense::run(coded, inputs);
  dense::dequantize_products(coded);
  dense::validate(coded);
  for (const dense::Operation& operation : coded.operations)
    EXPECT_EQ(operation.op.find("Linear"), std::string::npos) << operation.op;
  EXPECT_EQ(dense::float_products(coded).size(), 3u);
  const auto found = dense::run(coded, inputs);
  for (size_t i = 0; i < found.size(); ++i)
    for (size_t k = 0; k < found[i].values<float>().size(); ++k)
      EXPECT_NEAR(found[i].values<float>()[k], on_codes[i].values<float>()[k], 0.1f);
}

}  // namespace
}  // namespace octet::testing
