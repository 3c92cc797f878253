#include <gtest/gtest.h>

#include "base/error.h"
#include "dense/operators.h"
#include "program_maker.h"

namespace octet {
namespace {

using dense::Memory;
using dense::Program;
using dense::Tensor;
using dense::Type;
using testing::ProgramMaker;

std::vector<float> floats(const Tensor& t) {
  return {t.values<float>().begin(), t.values<float>().end()};
}

std::vector<int64_t> ints(const Tensor& t) {
  return {t.values<int64_t>().begin(), t.values<int64_t>().end()};
}

std::vector<Tensor> run_on(const Program& program, dense::Shape shape, const std::vector<float>& values,
                           const dense::RunOptions& options = {}) {
  Memory memory;
  return dense::run(program, {memory.of<float>(std::move(shape), values)}, options);
}

std::string refusal(const Program& program) {
  try {
    dense::validate(program);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Program, SizesFollowTheNumbers) {
  const Program program = testing::selecting_program();
  dense::validate(program);
  auto found = run_on(program, {5}, {0.1f, 0.9f, 0.6f, 0.5f, 0.7f});
  EXPECT_EQ(ints(found[0]), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(floats(found[1]), (std::vector<float>{0.9f, 0.7f, 0.6f}));
  EXPECT_EQ(floats(found[2]), std::vector<float>{0.9f});
  found = run_on(program, {2}, {0.1f, 0.2f});  // nothing, and the other branch
  EXPECT_EQ(found[0].shape(), dense::Shape{0});
  EXPECT_EQ(floats(found[2]), std::vector<float>{-1.0f});
}

TEST(Program, IsTheSameFromBytes) {
  const Program program = testing::selecting_program();
  const std::string bytes = program_bytes(program);
  const Program again = dense::parse_program(std::as_bytes(std::span(bytes)));
  dense::validate(again);
  EXPECT_EQ(program_bytes(again), bytes);
  EXPECT_EQ(floats(run_on(again, {3}, {1, 0, 2})[1]), (std::vector<float>{2, 1}));
}

// Every change of a byte is refused, or the program runs: what the fuzzer does at random.
TEST(Program, DamagedLayersAreRefusedOrRun) {
  const std::string bytes = program_bytes(testing::layers_program());
  EXPECT_EQ(dense::run(testing::layers_program(), {Memory().of<float>({2, 3}, std::vector<float>(6, 1))}).size(), 6u);
  for (size_t at = 0; at < bytes.size(); ++at)
    for (const char change : {'\x01', '\x02', '\x80', '\xff'}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      try {
        const Program program = dense::parse_program(std::as_bytes(std::span(damaged)));
        dense::validate(program);
        if (program.inputs.size() == 1 && program.inputs[0].type == Type::kFloat)
          run_on(program, {2, 3}, {0, 1, 2, 3, 4, 5}, dense::RunOptions{.memory_bytes = 1 << 16});
      } catch (const UserError&) {
      }
    }
}

TEST(Program, RefusesBytesThatEndOrFollow) {
  const std::string bytes = program_bytes(testing::selecting_program());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string part = bytes.substr(0, size);
    EXPECT_THROW(dense::parse_program(std::as_bytes(std::span(part))), UserError) << size;
  }
  const std::string more = bytes + "x";
  EXPECT_THROW(dense::parse_program(std::as_bytes(std::span(more))), UserError);
}

TEST(Program, ValidatesWhatRunsTrust) {
  Program twice = testing::selecting_program();
  twice.operations[1].outputs = twice.operations[0].outputs;
  EXPECT_NE(refusal(twice).find("made twice"), std::string::npos) << refusal(twice);
  Program early = testing::selecting_program();
  std::swap(early.operations[0], early.operations[1]);
  EXPECT_NE(refusal(early).find("nothing before it makes"), std::string::npos) << refusal(early);
  Program outside = testing::selecting_program();
  outside.operations[0].inputs[0] = 1000;
  EXPECT_FALSE(refusal(outside).empty());
  Program unknown = testing::selecting_program();
  unknown.operations[0].op = "Einsum";
  EXPECT_NE(refusal(unknown).find("not supported"), std::string::npos) << refusal(unknown);
  Program attribute = testing::selecting_program();
  attribute.operations[0].attributes["odd"] = int64_t{1};
  EXPECT_NE(refusal(attribute).find("'odd'"), std::string::npos) << refusal(attribute);
  Program typed = testing::selecting_program();
  typed.outputs[0].type = Type::kFloat;
  EXPECT_NE(refusal(typed).find("should be float32"), std::string::npos) << refusal(typed);
  Program branches = testing::selecting_program();
  branches.operations.back().branches.pop_back();
  EXPECT_NE(refusal(branches).find("two branches"), std::string::npos) << refusal(branches);
  Program inner = testing::selecting_program();  // made in a branch, read outside
  inner.outputs[2].value = inner.operations.back().branches[0].outputs[0];
  EXPECT_FALSE(refusal(inner).empty());
}

TEST(Program, SaysWhichOperationFails) {
  ProgramMaker m;
  m.input("x");
  m.constant<int64_t>("many", {1}, {9});
  m.add("TopK", {"x", "many"}, {"y"});
  m.output("y");
  dense::validate(m.program);
  try {
    run_on(m.program, {3}, {1, 2, 3});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()), "node 'y_node' (TopK): the 9 largest are wanted of 3");
  }
}

TEST(Program, StaysWithinItsMemory) {
  ProgramMaker m;
  m.input("x");
  m.constant<int64_t>("wide", {2}, {1000, 1000});
  m.add("Expand", {"x", "wide"}, {"y"});
  m.add("ReduceSum", {"y"}, {"z"}, {{"keepdims", int64_t{0}}});
  m.output("z");
  dense::validate(m.program);
  EXPECT_EQ(floats(run_on(m.program, {1}, {2})[0])[0], 2e6f);
  try {
    run_on(m.program, {1}, {2}, dense::RunOptions{.memory_bytes = 1 << 20});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("at most 1048576 are allowed"), std::string::npos) << e.what();
  }
}

TEST(Program, GivesBackWhatNobodyReadsAnyMore) {
  ProgramMaker m;
  m.input("x");
  for (int i = 0; i < 100; ++i)
    m.add("Neg", {i == 0 ? std::string("x") : "y" + std::to_string(i - 1)}, {"y" + std::to_string(i)});
  m.output("y99");
  const std::vector<float> values(1000, 1.0f);
  EXPECT_EQ(floats(run_on(m.program, {1000}, values, dense::RunOptions{.memory_bytes = 3 * 4000})[0]), values);
}

TEST(Program, CountsItsProducts) {
  ProgramMaker m;
  m.input("x");
  m.constant<float>("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  m.constant<float>("b", {3}, {1, 1, 1});
  m.add("Gemm", {"x", "w", "b"}, {"y"});
  m.add("MatMul", {"y", "y2"}, {"z"});
  m.input("y2");
  const auto weighted = dense::weighted_operations(m.program);
  ASSERT_EQ(weighted.size(), 1u);
  EXPECT_EQ(weighted[0].name, "y_node");
  EXPECT_EQ(weighted[0].parameters, 9);
}

TEST(Program, ProductsAreExactForAllSizes) {
  for (const int64_t m : {1, 3, 4, 9})
    for (const int64_t n : {1, 31, 33, 70})
      for (const int64_t k : {1, 7, 513}) {
        ProgramMaker p;
        p.input("a");
        std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
        for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
        for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
        p.constant<float>("b", {k, n}, b);
        p.add("MatMul", {"a", "b"}, {"c"});
        p.output("c");
        const std::vector<float> c = floats(run_on(p.program, {m, k}, a, dense::RunOptions{.threads = 2})[0]);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t d = 0; d < k; ++d)
              sum += a[static_cast<size_t>(i * k + d)] * b[static_cast<size_t>(d * n + j)];
            ASSERT_EQ(c[static_cast<size_t>(i * n + j)], sum) << m << " " << n << " " << k;  // whole numbers
          }
      }
}

TEST(Program, ATensorOfImpossibleSizeIsRefused) {
  Memory memory;
  EXPECT_THROW(memory.make<float>({int64_t{1} << 31, int64_t{1} << 31}), UserError);
  EXPECT_THROW(memory.make<float>({-1}), UserError);
}

}  // namespace
}  // namespace octet
