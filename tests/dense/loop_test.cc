// Loops of programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dense/run.h"
#include "program_maker.h"

namespace octet::dense {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ProgramMaker;

ProgramMaker counting(int64_t count, float most, bool bounded = true) {
  ProgramMaker m;
  m.input("x");
  if (bounded) m.constant<int64_t>("count", {}, {count});
  m.constant<float>("step", {}, {1});
  m.constant<float>("most", {}, {most});
  testing::add_counting_loop(m, bounded ? "count" : "", "x", "step", "most");
  m.output("sum");
  m.output("partial");
  return m;
}

std::vector<Tensor> sums(const Program& program, const std::vector<float>& x, const RunOptions& options = {}) {
  validate(program);
  Memory memory;
  return run(program, {memory.of<float>({static_cast<int64_t>(x.size())}, std::span<const float>(x))}, options);
}

std::string error_of(const Program& program) {
  try {
    sums(program, {0}, {.iterations = 1000});
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Loop, HandsOnWhatAnIterationMakesAndKeepsASliceOfEach) {
  const std::vector<Tensor> found = sums(counting(3, 100).program, {1, 10});
  EXPECT_THAT(found.at(0).values<float>(), ElementsAre(4, 13));
  EXPECT_EQ(found.at(1).shape(), (Shape{3, 2}));
  EXPECT_THAT(found.at(1).values<float>(), ElementsAre(2, 11, 3, 12, 4, 13));
}

TEST(Loop, StopsWhereItsConditionSays) {
  const std::vector<Tensor> found = sums(counting(0, 4, false).program, {1});
  EXPECT_THAT(found.at(0).values<float>(), ElementsAre(4));
  EXPECT_THAT(found.at(1).values<float>(), ElementsAre(2, 3, 4));
}

TEST(Loop, MayRunNotOnce) {
  for (const int64_t count : {int64_t{0}, int64_t{-3}}) {
    const std::vector<Tensor> found = sums(counting(count, 100).program, {1, 10});
    EXPECT_THAT(found.at(0).values<float>(), ElementsAre(1, 10));
    EXPECT_EQ(found.at(1).shape(), (Shape{0}));
  }
}

TEST(Loop, DoesNotRunWhereItsConditionIsFalseFromTheStart) {
  ProgramMaker m = counting(3, 100);
  m.constant<int64_t>("none", {}, {0});
  m.program.operations.insert(m.program.operations.begin(),
                              m.operation("Cast", {"none"}, {"never"}, {{"to", int64_t{9}}}));
  m.program.operations.back().inputs[1] = m.value("never");
  EXPECT_THAT(sums(m.program, {1}).at(0).values<float>(), ElementsAre(1));
}

TEST(Loop, EndsWhereItWouldNot) {
  EXPECT_THAT(error_of(counting(0, 1e30f, false).program),
              HasSubstr("node 'sum_node' (Loop): Loops have run 1000 times"));
  Program program = counting(5, 1e30f).program;
  EXPECT_THROW(sums(program, {0}, {.iterations = 4}), UserError);
  EXPECT_NO_THROW(sums(program, {0}, {.iterations = 5}));
}

// A thousand iterations on a tensor of 40 KB, of which one or two live at a time.
TEST(Loop, FreesWhatAnIterationLeaves) {
  ProgramMaker m = counting(1000, 1e30f);
  m.program.operations.back().branches[0].outputs.pop_back();
  m.program.operations.back().outputs.pop_back();
  m.program.outputs.pop_back();
  const std::vector<Tensor> found = sums(m.program, std::vector<float>(10'000, 0.0f), {.memory_bytes = 200'000});
  EXPECT_EQ(found.at(0).values<float>()[0], 1000);
}

TEST(Loop, InALoop) {
  ProgramMaker m;
  m.input("x");
  m.constant<int64_t>("count", {}, {3});
  m.constant<int64_t>("one", {}, {1});
  m.add("Cast", {"one"}, {"always"}, {{"to", int64_t{9}}});
  m.constant<float>("step", {}, {1});
  Operation outer = m.operation("Loop", {"count", "", "x"}, {"y"});
  Operation inner = m.operation("Loop", {"count", "", "row"}, {"row_after"});
  inner.branches.resize(1);
  inner.branches[0].inputs = {m.value("j"), m.value("inner_going"), m.value("z")};
  inner.branches[0].operations = {m.operation("Add", {"z", "step"}, {"z_after"})};
  inner.branches[0].outputs = {m.value("always"), m.value("z_after")};
  outer.branches.resize(1);
  outer.branches[0].inputs = {m.value("i"), m.value("outer_going"), m.value("row")};
  outer.branches[0].operations = {inner};
  outer.branches[0].outputs = {m.value("always"), m.value("row_after")};
  m.program.operations.push_back(outer);
  m.output("y");
  EXPECT_THAT(sums(m.program, {0.5f}).at(0).values<float>(), ElementsAre(9.5f));
}

TEST(Loop, IsCheckedBeforeItRuns) {
  const auto refusal = [](auto change) {
    Program program = counting(3, 100).program;
    change(program.operations.back(), program);
    return error_of(program);
  };
  EXPECT_THAT(refusal([](Operation& o, Program&) { o.branches[0].inputs.pop_back(); }),
              HasSubstr("its body has 2 inputs"));
  EXPECT_THAT(refusal([](Operation& o, Program&) { o.branches.clear(); }), HasSubstr("a body"));
  EXPECT_THAT(refusal([](Operation& o, Program&) { o.inputs[2] = -1; }), HasSubstr("input 2 is absent"));
  EXPECT_THAT(refusal([](Operation& o, Program&) { std::swap(o.branches[0].outputs[0], o.branches[0].outputs[1]); }),
              HasSubstr("whether it goes on is float32, expected bool"));
  EXPECT_THAT(refusal([](Operation& o, Program&) { o.inputs[0] = o.inputs[2]; }),
              HasSubstr("how often it runs is float32, expected int64"));
  EXPECT_THAT(refusal([](Operation& o, Program&) { o.branches[0].outputs[1] = o.branches[0].inputs[0]; }),
              HasSubstr("what the next iteration gets is int64, expected float32"));
  EXPECT_THAT(refusal([](Operation& o, Program& p) { p.outputs[0].value = o.branches[0].inputs[2]; }),
              HasSubstr("made by no operation"));
}

TEST(Loop, ComesBackFromBytes) {
  const std::string bytes = program_bytes(testing::images_program());
  const Program again = parse_program(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(program_bytes(again), bytes);
  EXPECT_EQ(again.operations.back().branches[0].inputs, testing::images_program().operations.back().branches[0].inputs);
  // Engines of before there were Loops are read, and programs without one are written as they were.
  EXPECT_EQ(bytes[0], 2);
  EXPECT_EQ(program_bytes(testing::selecting_program())[0], 1);
  std::string newer = bytes;
  newer[0] = 3;
  EXPECT_THROW(parse_program(std::as_bytes(std::span(newer))), UserError);
}

}  // namespace
}  // namespace octet::dense
