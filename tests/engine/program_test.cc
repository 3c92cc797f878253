// Plans with a program behind them: in files, in executors and in the library's interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <octet/engine.h>

#include <filesystem>

#include "engine/engine_file.h"
#include "engine/profiles.h"
#include "engine_test_util.h"
#include "program_plan.h"

namespace octet::testing {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const engine::Plan> parsed(const std::string& bytes) {
  return engine::parse_engine(std::as_bytes(std::span(bytes)), "file");
}

uint32_t version_of(const std::string& bytes) {
  return static_cast<unsigned char>(bytes[8]);
}

TEST(ProgramBehindPlan, ComesBackFromTheFile) {
  const std::string bytes = engine::engine_file_bytes(program_plan());
  EXPECT_EQ(version_of(bytes), engine::kEngineFormatVersion);
  const auto plan = parsed(bytes);
  ASSERT_TRUE(plan->program);
  EXPECT_EQ(dense::program_bytes(*plan->program), dense::program_bytes(*program_plan().program));
  EXPECT_EQ(engine::engine_file_bytes(*plan), bytes);
}

TEST(ProgramBehindPlan, FilesWithoutOneStayInTheFormatThatOlderOnesRead) {
  EXPECT_EQ(version_of(engine::engine_file_bytes(small_plan())), engine::kPlainFormatVersion);
  EXPECT_FALSE(parsed(engine::engine_file_bytes(small_plan()))->program);
}

TEST(ProgramBehindPlan, ProfilesShareIt) {
  engine::Plan wide = program_plan();
  for (engine::Buffer& b : wide.buffers) b.shape = {8};
  wide.steps[0].lists["dims"] = {8};
  engine::plan_memory(wide);
  std::vector<engine::Plan> plans;
  plans.push_back(program_plan()), plans.push_back(std::move(wide));
  const auto plan = parsed(engine::engine_file_bytes(engine::merge_profiles(std::move(plans))));
  ASSERT_EQ(plan->profiles.size(), 1u);
  EXPECT_EQ(plan->profiles[0].program, plan->program);
  engine::Executor executor(engine::profile_of(plan, 1));
  const std::vector<float> x = {0, 0, 0, 0, 0, 0, 0, 0.75f};
  std::vector<float> y(8);
  const float* in[] = {x.data()};
  float* out[] = {y.data()};
  executor.run(in, out);
  EXPECT_EQ(executor.results().at(0).values<int64_t>()[0], 7);
}

TEST(ProgramBehindPlan, ThatDoesNotFitIsRefused) {
  engine::Plan plan = program_plan();
  dense::Program program = *plan.program;
  program.inputs.clear();
  program.operations.clear();
  program.outputs = {{program.constants[0].first, program.constants[0].second.type(), false, {}}};
  plan.program = std::make_shared<const dense::Program>(program);
  EXPECT_THAT(error_of([&] { engine::validate(plan); }), HasSubstr("1 outputs, and the program behind it reads 0"));
  std::string bytes = engine::engine_file_bytes(program_plan());
  const auto at = bytes.find("TopK");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 4, "PotK");
  engine::repair_checksum(std::as_writable_bytes(std::span(bytes)));
  EXPECT_THAT(error_of([&] { parsed(bytes); }), HasSubstr("(PotK): this operator is not supported"));
}

class ProgramApi : public ::testing::Test {
 protected:
  ProgramApi() {
    const std::string bytes = engine::engine_file_bytes(program_plan());
    engine_ = std::make_unique<Engine>(Engine::from_memory(bytes.data(), bytes.size()));
  }
  std::unique_ptr<Engine> engine_;
};

TEST_F(ProgramApi, GivesResultsOfEveryRun) {
  EXPECT_TRUE(engine_->finds_sizes());
  ASSERT_EQ(engine_->outputs().size(), 3u);
  EXPECT_EQ(engine_->outputs()[0].name, "indices");
  EXPECT_EQ(engine_->outputs()[0].type, DataType::kInt64);
  Context context = engine_->create_context({.threads = 1});
  EXPECT_THROW(context.result(0), Error) << "nothing has run";
  std::vector<float> x = {0.1f, 0.9f, 0.2f, 0.7f, 0.3f, 0.4f};
  context.bind_input(0, x.data());
  context.run();
  TensorView indices = context.result(0);
  EXPECT_EQ(indices.type, DataType::kInt64);
  ASSERT_EQ(indices.shape, std::vector<int64_t>{2});
  EXPECT_EQ(static_cast<const int64_t*>(indices.data)[1], 3);
  EXPECT_EQ(static_cast<const float*>(context.result(1).data)[0], 0.9f);
  x.assign(6, 0);
  context.run();
  EXPECT_EQ(context.result(0).size(), 0);
  EXPECT_THROW(context.result(3), Error);
  EXPECT_EQ(context.profile(2).size(), 1u);
}

TEST_F(ProgramApi, RefusesTensorsOfFixedSizes) {
  Context context = engine_->create_context({.threads = 1});
  std::vector<float> x(6), y(6);
  const auto sentence = [](const auto& call) {
    try {
      call();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(sentence([&] { context.bind_output(0, y.data()); }), HasSubstr("read result(index)"));
  EXPECT_THAT(sentence([&] { context.run(x, y); }), HasSubstr("read result(index)"));
  EXPECT_THAT(sentence([&] { engine_->create_throughput(); }), HasSubstr("contexts alone"));
  context.run(std::vector<const float*>{x.data()}, std::vector<float*>{});
  EXPECT_EQ(context.result(0).size(), 0);
}

TEST(Results, OfAPlainEngineAreTheCallersMemory) {
  const std::string bytes = engine::engine_file_bytes(small_plan());
  const Engine engine = Engine::from_memory(bytes.data(), bytes.size());
  Context context = engine.create_context({.threads = 1});
  std::vector<float> y;
  context.run(ramp(90), y);
  EXPECT_EQ(context.result(0).data, y.data());
  EXPECT_EQ(context.result(0).shape, engine.outputs()[0].shape);
}

}  // namespace
}  // namespace octet::testing
